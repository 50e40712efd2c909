SELECT status, fence, attempts, locked_until, fingerprint, claim_id, path, previous, on_expired, outcome, result_bytes,
       result_type, result_status, class, message, created_at, updated_at, reset_at, reset_by, reset_reason, of_job,
       result_elsewhere, file, at_byte, bytes
FROM archived_entries
WHERE tenant = ?1 AND key = ?2
