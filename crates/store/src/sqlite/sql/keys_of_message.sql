-- The business key is in the message's own row.
SELECT kind, key
FROM keys INDEXED BY keys_other
WHERE tenant = ?1 AND message = ?2 AND kind <> 'key'
ORDER BY key
