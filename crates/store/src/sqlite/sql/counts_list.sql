SELECT tenant, state, jobs
FROM job_counts
WHERE jobs > 0
ORDER BY tenant, state
