INSERT INTO api_keys (tenant, id, name, secret_hash, scopes, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
