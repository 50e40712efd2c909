INSERT INTO keys (tenant, key, kind, message, duplicates)
SELECT tenant, key, kind, message, duplicates
FROM keys_new
WHERE seq = ?1
ON CONFLICT (tenant, key) DO NOTHING
