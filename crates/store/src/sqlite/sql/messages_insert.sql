INSERT INTO messages (tenant, id, key, type, source, accepted_at, jobs_total, fingerprint, correlation_id, traceparent,
                      content_type, headers, metadata, payload_ref, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
