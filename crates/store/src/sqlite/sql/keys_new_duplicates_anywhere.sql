-- Reads the whole table: only where the name went into `keys` after this read's snapshot was taken.
SELECT duplicates
FROM keys_new
WHERE tenant = ?1 AND key = ?2
