-- FAULTY, for tests: by key and status, without the fence.
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
    AND status = 'in_progress'
RETURNING status, outcome, fence, attempts, updated_at;
