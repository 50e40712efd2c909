SELECT tenant, id, name, secret_hash, scopes, created_at, revoked_at
FROM api_keys
WHERE secret_hash = ?1
