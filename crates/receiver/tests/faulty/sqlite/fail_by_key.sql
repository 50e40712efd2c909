-- FAULTY, for tests: by the key alone.
UPDATE webhook_events SET
    outcome = NULL, result_bytes = NULL, result_type = NULL, result_status = NULL,
    status = 'failed',
    error_class = CASE WHEN status = 'failed' THEN error_class ELSE :class END,
    error_message = CASE WHEN status = 'failed' THEN error_message ELSE substr(:message, 1, 1000) END,
    updated_at = CASE WHEN status = 'failed' THEN updated_at ELSE strftime('%Y-%m-%d %H:%M:%f', 'now') END
WHERE event_key = :event_key
RETURNING status, fence, attempts, updated_at;
