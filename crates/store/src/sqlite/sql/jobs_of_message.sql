-- A message's jobs, by lane, wherever they live.
SELECT id, lane, state, scheduled_at, due_at
FROM jobs
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
UNION ALL
SELECT id, lane, state, scheduled_at, NULL
FROM jobs_done
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
ORDER BY id
LIMIT ?4
