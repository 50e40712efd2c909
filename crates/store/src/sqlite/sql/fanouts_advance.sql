UPDATE fanouts
SET made = ?2
WHERE seq = ?1
