-- Lets a person have the effect done anew. No row: the entry is not as it was seen; look again.
--
--   $1 event_key text
--   $2 fence     bigint; as seen
--   $3 status    text; as seen
--   $4 reason    text; kept
--   $5 by        text or NULL; who; kept
--
-- Why it is so:
-- * It names the fence and the status that were seen: the fence alone is not enough, since an entry that became done
--   meanwhile has the same one, and would be done twice.
-- * The row stays, failed, its fence one higher: a worker from before stays fenced off. A row that were deleted would
--   let it in again.
UPDATE webhook_events AS e SET
    status = 'failed',
    fence = e.fence + 1,
    claim_id = NULL,
    outcome = NULL,
    result = NULL,
    result_bytes = NULL,
    result_type = NULL,
    result_status = NULL,
    reset_at = clock_timestamp(),
    reset_by = $5::text,
    reset_reason = $4::text,
    updated_at = clock_timestamp()
WHERE e.event_key = $1::text
    AND e.fence = $2::bigint
    AND e.status = $3::text
RETURNING e.status, e.fence, e.attempts, e.updated_at;
