SELECT tenant, id
FROM jobs_done INDEXED BY jobs_done_dead
WHERE state = 'dead_lettered' AND (tenant, id) > (?1, ?2)
ORDER BY tenant, id
LIMIT ?3
