SELECT due_at, id
FROM jobs INDEXED BY jobs_look_ups
WHERE tenant = ?1 AND lane = ?2 AND next_step = 'look_up'
ORDER BY due_at, id
LIMIT ?3
