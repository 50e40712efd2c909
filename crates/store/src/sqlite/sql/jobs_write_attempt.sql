-- What a lease changes, and a start: the common part of jobs_write, at half its cost.
UPDATE jobs
SET state = ?3, due_at = ?4, next_step = ?5, attempt = ?6, started_at = ?7, worker = ?8, lease_due_at = ?9,
    leased_at = ?10, lease_started_at = ?11, expires_at = ?12, deadline_at = ?13
WHERE tenant = ?1 AND id = ?2
