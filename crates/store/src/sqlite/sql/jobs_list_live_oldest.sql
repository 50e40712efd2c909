SELECT id
FROM jobs
WHERE tenant = ?1 AND id > ?2 AND (?3 IS NULL OR lane = ?3) AND (?4 IS NULL OR state = ?4)
ORDER BY id
LIMIT ?5
