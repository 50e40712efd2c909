SELECT message
FROM keys
WHERE tenant = ?1 AND key = ?2
