-- Reports that the effect surely did not happen, so that the next claim may try at once. No row: it was not counted,
-- and nothing need be done.
--
--   :event_key TEXT
--   :fence     INTEGER; from the claim
--   :class     TEXT or NULL; what kind of failure
--   :message   TEXT or NULL; for people; cut at 1,000 characters
--
-- Only after the effect's transaction was surely rolled back. If that is not sure, say nothing: the lease ends by itself.
--
-- Why it is so:
-- * It compares the fence: a worker whose grant was taken over can't fail the new one.
-- * It compares the status: a done entry is final, also for the very worker that completed it and missed the answer.
-- * Said again it answers yes and changes nothing.
UPDATE webhook_events SET
    status = 'failed',
    error_class = CASE WHEN status = 'failed' THEN error_class ELSE :class END,
    error_message = CASE WHEN status = 'failed' THEN error_message ELSE substr(:message, 1, 1000) END,
    updated_at = CASE WHEN status = 'failed' THEN updated_at ELSE strftime('%Y-%m-%d %H:%M:%f', 'now') END
WHERE event_key = :event_key
    AND fence = :fence
    AND status IN ('in_progress', 'failed')
RETURNING status, fence, attempts, updated_at;
