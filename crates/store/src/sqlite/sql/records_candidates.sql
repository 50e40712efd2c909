SELECT seq, tenant, id, accepted_at, jobs_total
FROM messages
WHERE seq > ?1
ORDER BY seq
LIMIT ?2
