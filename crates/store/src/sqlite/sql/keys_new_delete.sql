DELETE FROM keys_new
WHERE seq <= ?1
