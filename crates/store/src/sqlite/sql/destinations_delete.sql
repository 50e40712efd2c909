DELETE FROM destinations
WHERE tenant = ?1 AND id = ?2 AND kind = ?3
