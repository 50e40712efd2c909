-- Reports that the effect happened, or surely never will. One row: counted. No row: ROLL THE EFFECT BACK.
--
--   $1 event_key     text
--   $2 fence         bigint; from the claim
--   $3 outcome       text; 'committed', or 'cancelled': it no longer applied
--   $4 result_bytes  bytea or NULL; what duplicates are answered, byte for byte
--   $5 result_type   text or NULL; its media type
--   $6 result_status integer or NULL; the HTTP status it is answered with
--
-- It must run in the transaction that the effect is written in: a crash between the two, were they apart, would leave an
-- effect without its entry. As the last statement before COMMIT, others are answered at once until then; as the first,
-- it locks the row, so that no takeover comes between, and others wait. Both are safe.
--
-- Why it is so:
-- * It compares the fence: a worker whose grant was taken over or reset finds no row, and rolls back.
-- * The lease is not asked: late is fine as long as nobody else was granted the key.
-- * It counts from failed with the same fence too: a fail that was said in error, and nobody began anew.
-- * Said again (the answer to COMMIT was lost) it finds itself, changes nothing and answers yes. The first result stays.
UPDATE webhook_events AS e SET
    status = 'done',
    outcome = $3::text,
    result_bytes = CASE WHEN e.status = 'done' THEN e.result_bytes ELSE $4::bytea END,
    result_type = CASE WHEN e.status = 'done' THEN e.result_type ELSE $5::text END,
    result_status = CASE WHEN e.status = 'done' THEN e.result_status ELSE $6::integer END,
    error_class = NULL,
    error_message = NULL,
    updated_at = CASE WHEN e.status = 'done' THEN e.updated_at ELSE clock_timestamp() END
WHERE e.event_key = $1::text
    AND e.fence = $2::bigint
    AND (e.status IN ('in_progress', 'failed') OR (e.status = 'done' AND e.outcome = $3::text))
RETURNING e.status, e.outcome, e.fence, e.attempts, e.updated_at;
