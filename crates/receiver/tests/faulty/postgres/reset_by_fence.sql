-- FAULTY, for tests: whatever the status has become.
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
    AND $3::text IS NOT NULL
RETURNING e.status, e.fence, e.attempts, e.updated_at;
