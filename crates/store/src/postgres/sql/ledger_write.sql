UPDATE ledger AS w
SET status = n.status, fence = n.fence, attempts = n.attempts, locked_until = n.locked_until,
    fingerprint = n.fingerprint, claim_id = n.claim_id, path = n.path, previous = n.previous, on_expired = n.on_expired,
    outcome = n.outcome, result_bytes = n.result_bytes, result_type = n.result_type, result_status = n.result_status,
    class = n.class, message = n.message, created_at = n.created_at, updated_at = n.updated_at, reset_at = n.reset_at,
    reset_by = n.reset_by, reset_reason = n.reset_reason
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::text[],
            $9::text[], $10::text[], $11::text[], $12::text[], $13::bytea[], $14::text[], $15::bigint[], $16::text[],
            $17::text[], $18::bigint[], $19::bigint[], $20::bigint[], $21::text[], $22::text[])
    AS n (tenant, key, status, fence, attempts, locked_until, fingerprint, claim_id, path, previous, on_expired,
          outcome, result_bytes, result_type, result_status, class, message, created_at, updated_at, reset_at, reset_by,
          reset_reason)
WHERE w.tenant = n.tenant AND w.key = n.key
