INSERT INTO leases (tenant, job, worker, due_at, leased_at, started_at, expires_at, deadline_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
