DELETE FROM jobs
WHERE tenant = ?1 AND id = ?2
