SELECT payload, content_type
FROM messages
WHERE tenant = ?1 AND id = ?2
