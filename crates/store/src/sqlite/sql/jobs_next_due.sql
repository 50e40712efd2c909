SELECT due_at, id
FROM jobs
WHERE tenant = ?1 AND lane = ?2 AND share = ?3 AND due_at IS NOT NULL AND next_step IS NOT 'look_up'
ORDER BY due_at, id
