-- FAULTY, for tests: whatever the status has become.
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
    AND :status IS NOT NULL
RETURNING status, fence, attempts, updated_at;
