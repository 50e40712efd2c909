-- FAULTY, for tests: by the key alone.
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
RETURNING e.status, e.outcome, e.fence, e.attempts, e.updated_at;
