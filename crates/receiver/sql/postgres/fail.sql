-- Reports that the effect surely did not happen, so that the next claim may try at once. No row: it was not counted,
-- and nothing need be done.
--
--   $1 event_key text
--   $2 fence     bigint; from the claim
--   $3 class     text or NULL; what kind of failure
--   $4 message   text or NULL; for people; cut at 1,000 characters
--
-- Only after the effect's transaction was surely rolled back. If that is not sure (the answer to COMMIT was lost), say
-- nothing: the lease ends by itself.
--
-- Why it is so:
-- * It compares the fence: a worker whose grant was taken over can't fail the new one.
-- * It compares the status: a done entry is final, also for the very worker that completed it and missed the answer.
-- * Said again it answers yes and changes nothing.
UPDATE webhook_events AS e SET
    status = 'failed',
    error_class = CASE WHEN e.status = 'failed' THEN e.error_class ELSE $3::text END,
    error_message = CASE WHEN e.status = 'failed' THEN e.error_message ELSE left($4::text, 1000) END,
    updated_at = CASE WHEN e.status = 'failed' THEN e.updated_at ELSE clock_timestamp() END
WHERE e.event_key = $1::text
    AND e.fence = $2::bigint
    AND e.status IN ('in_progress', 'failed')
RETURNING e.status, e.fence, e.attempts, e.updated_at;
