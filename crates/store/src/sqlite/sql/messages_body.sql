SELECT id, key, type, content_type, metadata, traceparent, correlation_id, headers, payload_ref, accepted_at, payload
FROM messages
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
