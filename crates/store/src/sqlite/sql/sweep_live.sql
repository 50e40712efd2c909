SELECT tenant, id
FROM jobs INDEXED BY jobs_retryable
WHERE state = 'retryable' AND (tenant, id) > (?1, ?2)
ORDER BY tenant, id
LIMIT ?3
