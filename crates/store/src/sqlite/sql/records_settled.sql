-- Only settled jobs are here: a message with fewer of them than it has jobs lives.
SELECT state, settled_at
FROM jobs_done
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
