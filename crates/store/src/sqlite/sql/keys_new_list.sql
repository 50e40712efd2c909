SELECT seq, tenant, key
FROM keys_new
ORDER BY seq
