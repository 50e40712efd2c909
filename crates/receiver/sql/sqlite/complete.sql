-- Reports that the effect happened, or surely never will. One row: counted. No row: ROLL THE EFFECT BACK.
--
--   :event_key     TEXT
--   :fence         INTEGER; from the claim
--   :outcome       TEXT; 'committed', or 'cancelled': it no longer applied
--   :result_bytes  BLOB or NULL; what duplicates are answered, byte for byte
--   :result_type   TEXT or NULL; its media type
--   :result_status INTEGER or NULL; the HTTP status it is answered with
--
-- It must run in the transaction that the effect is written in (BEGIN IMMEDIATE): a crash between the two, were they
-- apart, would leave an effect without its entry.
--
-- Why it is so:
-- * It compares the fence: a worker whose grant was taken over or reset finds no row, and rolls back.
-- * The lease is not asked: late is fine as long as nobody else was granted the key.
-- * It counts from failed with the same fence too: a fail that was said in error, and nobody began anew.
-- * Said again (it is not known whether COMMIT took hold) it finds itself, changes nothing and answers yes. The first
--   result stays.
UPDATE webhook_events SET
    status = 'done',
    outcome = :outcome,
    result_bytes = CASE WHEN status = 'done' THEN result_bytes ELSE :result_bytes END,
    result_type = CASE WHEN status = 'done' THEN result_type ELSE :result_type END,
    result_status = CASE WHEN status = 'done' THEN result_status ELSE :result_status END,
    error_class = NULL,
    error_message = NULL,
    updated_at = CASE WHEN status = 'done' THEN updated_at ELSE strftime('%Y-%m-%d %H:%M:%f', 'now') END
WHERE event_key = :event_key
    AND fence = :fence
    AND (status IN ('in_progress', 'failed') OR (status = 'done' AND outcome = :outcome))
RETURNING status, outcome, fence, attempts, updated_at;
