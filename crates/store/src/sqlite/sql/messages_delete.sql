DELETE FROM messages
WHERE tenant = ?1 AND id = ?2
