DELETE FROM custody
WHERE tenant = ?1 AND message = ?2
