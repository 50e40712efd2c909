UPDATE meta
SET epoch = epoch
WHERE singleton = 1
