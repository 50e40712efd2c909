UPDATE bulk_runs
SET state = ?3, cursor = ?4, examined = ?5, matched = ?6, done = ?7, requested = ?8, settled = ?9, skipped = ?10,
    refused = ?11, refused_jobs = ?12, problem = ?13, updated_at = ?14, finished_at = ?15
WHERE tenant = ?1 AND id = ?2
