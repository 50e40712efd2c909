-- Never below zero: a row that somebody took away by hand must not stop the store.
INSERT INTO job_counts (tenant, state, jobs)
VALUES (?1, ?2, max(0, ?3))
ON CONFLICT (tenant, state) DO UPDATE
SET jobs = max(0, jobs + ?3)
