SELECT id
FROM jobs_done INDEXED BY jobs_done_dead
WHERE tenant = ?1 AND id > ?2 AND (?3 IS NULL OR lane = ?3) AND state = 'dead_lettered'
ORDER BY id
LIMIT ?4
