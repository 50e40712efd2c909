SELECT tenant, id, name, secret_hash, scopes, created_at, revoked_at
FROM api_keys
ORDER BY tenant, id
