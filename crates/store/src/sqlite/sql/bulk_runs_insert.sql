INSERT INTO bulk_runs (tenant, id, kind, state, job_state, lane, destination, cause, class, key_prefix, type, created_since,
                       created_until, dead_since, dead_until, reason, assume_not_done, per_second, idempotency_key, actor,
                       expected, began_at, examined, matched, done, requested, settled, skipped, refused, refused_jobs,
                       updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, 0, 0, 0, 0, 0,
        0, '{}', '[]', ?22)
