INSERT INTO archived_entries (tenant, key, status, fence, attempts, locked_until, fingerprint, claim_id, path, previous,
                              on_expired, outcome, result_bytes, result_type, result_status, class, message, created_at,
                              updated_at, reset_at, reset_by, reset_reason, of_job, result_elsewhere, archived_at, file,
                              at_byte, bytes)
SELECT n.tenant, n.key, n.status, n.fence, n.attempts, n.locked_until, n.fingerprint, n.claim_id, n.path, n.previous,
       n.on_expired, n.outcome, n.result_bytes, n.result_type, n.result_status, n.class, n.message, n.created_at,
       n.updated_at, n.reset_at, n.reset_by, n.reset_reason, n.of_job, n.result_elsewhere, n.archived_at, n.file,
       n.at_byte, n.bytes
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::text[],
            $9::text[], $10::text[], $11::text[], $12::text[], $13::bytea[], $14::text[], $15::bigint[], $16::text[],
            $17::text[], $18::bigint[], $19::bigint[], $20::bigint[], $21::text[], $22::text[], $23::uuid[],
            $24::bigint[], $25::bigint[], $26::text[], $27::bigint[], $28::bigint[])
    AS n (tenant, key, status, fence, attempts, locked_until, fingerprint, claim_id, path, previous, on_expired,
          outcome, result_bytes, result_type, result_status, class, message, created_at, updated_at, reset_at, reset_by,
          reset_reason, of_job, result_elsewhere, archived_at, file, at_byte, bytes)
ON CONFLICT DO NOTHING
