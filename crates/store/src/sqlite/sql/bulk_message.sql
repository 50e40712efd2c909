-- The message's id is the job's but for its last 32 bits: ?2 to ?3.
SELECT key, type
FROM messages
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
