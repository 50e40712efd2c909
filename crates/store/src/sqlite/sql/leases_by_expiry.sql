SELECT tenant, job, expires_at
FROM leases
ORDER BY expires_at, tenant, job
LIMIT ?1
