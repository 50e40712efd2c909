-- Whether a name that both tables have means two messages.
SELECT 1
FROM keys_new
JOIN keys ON keys.tenant = keys_new.tenant AND keys.key = keys_new.key
WHERE keys_new.seq = ?1 AND keys.message <> keys_new.message
