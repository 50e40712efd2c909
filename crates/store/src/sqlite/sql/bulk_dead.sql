SELECT id, state, cause, created_at, settled_at
FROM jobs_done INDEXED BY jobs_done_dead
WHERE tenant = ?1 AND id > ?2 AND state = 'dead_lettered'
ORDER BY id
LIMIT ?3
