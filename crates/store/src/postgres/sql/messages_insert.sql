INSERT INTO messages (tenant, id, seq, key, type, source, accepted_at, jobs_total, fingerprint, correlation_id,
                      traceparent, content_type, headers, metadata, payload_ref, payload)
SELECT n.tenant, n.id, n.seq, n.key, n.type, n.source, n.accepted_at, n.jobs_total, n.fingerprint, n.correlation_id,
       n.traceparent, n.content_type, n.headers, n.metadata, n.payload_ref, n.payload
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
            $9::bytea[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::bytea[])
    AS n (tenant, id, seq, key, type, source, accepted_at, jobs_total, fingerprint, correlation_id, traceparent,
          content_type, headers, metadata, payload_ref, payload)
