DELETE FROM attempts
WHERE tenant = ?1 AND job BETWEEN ?2 AND ?3
