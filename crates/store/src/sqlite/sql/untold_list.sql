SELECT tenant, job, at, attempt, cause
FROM untold
ORDER BY tenant, job, at
LIMIT ?1
