SELECT message
FROM keys_new
WHERE seq = ?1 AND tenant = ?2 AND key = ?3
