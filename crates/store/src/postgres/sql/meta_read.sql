SELECT epoch
FROM meta
WHERE singleton = 1
