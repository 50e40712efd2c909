-- Lets a person have the effect done anew. No row: the entry is not as it was seen; look again.
--
--   :event_key TEXT
--   :fence     INTEGER; as seen
--   :status    TEXT; as seen
--   :reason    TEXT; kept
--   :by        TEXT or NULL; who; kept
--
-- Why it is so:
-- * It names the fence and the status that were seen: the fence alone is not enough, since an entry that became done
--   meanwhile has the same one, and would be done twice.
-- * The row stays, failed, its fence one higher: a worker from before stays fenced off. A row that were deleted would
--   let it in again.
UPDATE webhook_events SET
    status = 'failed',
    fence = fence + 1,
    claim_id = NULL,
    outcome = NULL,
    result = NULL,
    result_bytes = NULL,
    result_type = NULL,
    result_status = NULL,
    reset_at = strftime('%Y-%m-%d %H:%M:%f', 'now'),
    reset_by = :by,
    reset_reason = :reason,
    updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE event_key = :event_key
    AND fence = :fence
    AND status = :status
RETURNING status, fence, attempts, updated_at;
