-- A message whose jobs would have the same ids.
SELECT 1
FROM messages
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
