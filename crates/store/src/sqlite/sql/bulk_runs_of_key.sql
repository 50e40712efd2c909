SELECT tenant, id, kind, state, job_state, lane, destination, cause, class, key_prefix, type, created_since, created_until,
       dead_since, dead_until, reason, assume_not_done, per_second, idempotency_key, actor, expected, began_at, cursor,
       examined, matched, done, requested, settled, skipped, refused, refused_jobs, problem, updated_at, finished_at
FROM bulk_runs
WHERE tenant = ?1 AND idempotency_key = ?2
