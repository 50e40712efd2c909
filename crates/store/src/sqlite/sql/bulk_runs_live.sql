SELECT count(*)
FROM bulk_runs INDEXED BY bulk_runs_live
WHERE tenant = ?1 AND id > x'' AND finished_at IS NULL
