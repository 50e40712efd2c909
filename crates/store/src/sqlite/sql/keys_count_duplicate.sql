UPDATE keys
SET duplicates = duplicates + 1
WHERE tenant = ?1 AND key = ?2
RETURNING duplicates
