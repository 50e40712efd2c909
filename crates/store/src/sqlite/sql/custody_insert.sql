INSERT INTO custody (tenant, message, job, at, stage, attempt, actor, detail)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
