-- FAULTY, for tests: by key and fence, without the status.
UPDATE webhook_events AS e SET
    outcome = NULL, result_bytes = NULL, result_type = NULL, result_status = NULL,
    status = 'failed',
    error_class = CASE WHEN e.status = 'failed' THEN e.error_class ELSE $3::text END,
    error_message = CASE WHEN e.status = 'failed' THEN e.error_message ELSE left($4::text, 1000) END,
    updated_at = CASE WHEN e.status = 'failed' THEN e.updated_at ELSE clock_timestamp() END
WHERE e.event_key = $1::text
    AND e.fence = $2::bigint
RETURNING e.status, e.fence, e.attempts, e.updated_at;
