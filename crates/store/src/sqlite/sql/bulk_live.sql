SELECT id, state, NULL, created_at, NULL
FROM jobs
WHERE tenant = ?1 AND id > ?2
ORDER BY id
LIMIT ?3
