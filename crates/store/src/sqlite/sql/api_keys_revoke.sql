UPDATE api_keys
SET revoked_at = coalesce(revoked_at, ?3)
WHERE tenant = ?1 AND id = ?2
