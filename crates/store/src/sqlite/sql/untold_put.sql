INSERT INTO untold (tenant, job, at, attempt, cause) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant, job, at) DO UPDATE SET attempt = excluded.attempt, cause = excluded.cause
