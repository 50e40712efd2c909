INSERT INTO keys (tenant, key, kind, message)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant, key) DO NOTHING
