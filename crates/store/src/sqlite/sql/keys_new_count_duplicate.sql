UPDATE keys_new
SET duplicates = duplicates + 1
WHERE seq = ?1 AND tenant = ?2 AND key = ?3
RETURNING duplicates
