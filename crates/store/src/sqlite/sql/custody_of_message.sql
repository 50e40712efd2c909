SELECT job, at, stage, attempt, actor, detail
FROM custody
WHERE tenant = ?1 AND message = ?2
ORDER BY seq
LIMIT ?3
