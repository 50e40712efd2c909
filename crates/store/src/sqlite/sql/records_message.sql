SELECT key, type, source, accepted_at, jobs_total, correlation_id, traceparent, content_type, headers, metadata,
       payload_ref, fingerprint, payload,
       EXISTS (SELECT 1 FROM fanouts WHERE fanouts.tenant = messages.tenant AND fanouts.message = messages.id)
FROM messages
WHERE tenant = ?1 AND id = ?2
