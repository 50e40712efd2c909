SELECT tenant, message, key, at_byte, bytes
FROM archived
WHERE file = ?1 AND at_byte > ?2
ORDER BY at_byte
LIMIT ?3
