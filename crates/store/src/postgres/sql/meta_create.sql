INSERT INTO meta (singleton, epoch, created_at)
VALUES (1, 1, $1)
ON CONFLICT (singleton) DO NOTHING
