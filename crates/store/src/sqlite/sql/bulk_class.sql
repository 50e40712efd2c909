SELECT class
FROM attempts
WHERE tenant = ?1 AND job = ?2
ORDER BY attempt DESC
LIMIT 1
