SELECT tenant, key, at_byte, bytes
FROM archived_entries
WHERE file = ?1 AND at_byte > ?2 AND of_job IS NULL
ORDER BY at_byte
LIMIT ?3
