INSERT INTO archived_entries (tenant, key, status, fence, attempts, locked_until, fingerprint, claim_id, path, previous,
                              on_expired, outcome, result_bytes, result_type, result_status, class, message, created_at,
                              updated_at, reset_at, reset_by, reset_reason, of_job, result_elsewhere, archived_at, file,
                              at_byte, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25,
        ?26, ?27, ?28)
ON CONFLICT (tenant, key) DO UPDATE
SET status = ?3, fence = ?4, attempts = ?5, locked_until = ?6, fingerprint = ?7, claim_id = ?8, path = ?9, previous = ?10,
    on_expired = ?11, outcome = ?12, result_bytes = ?13, result_type = ?14, result_status = ?15, class = ?16,
    message = ?17, created_at = ?18, updated_at = ?19, reset_at = ?20, reset_by = ?21, reset_reason = ?22, of_job = ?23,
    result_elsewhere = ?24, archived_at = ?25, file = ?26, at_byte = ?27, bytes = ?28
