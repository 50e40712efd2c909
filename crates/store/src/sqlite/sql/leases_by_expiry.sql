SELECT tenant, id, expires_at
FROM jobs
WHERE expires_at IS NOT NULL
ORDER BY expires_at, tenant, id
LIMIT ?1
