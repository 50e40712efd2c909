INSERT INTO bulk_runs (tenant, id, kind, job_state, lane, destination, cause, class, key_prefix, type, created_since,
                       created_until, dead_since, dead_until, reason, assume_not_done, per_second, idempotency_key,
                       actor, expected, began_at, state, cursor, examined, matched, done, requested, settled, skipped,
                       refused, refused_jobs, problem, updated_at, finished_at)
SELECT n.tenant, n.id, n.kind, n.job_state, n.lane, n.destination, n.cause, n.class, n.key_prefix, n.type,
       n.created_since, n.created_until, n.dead_since, n.dead_until, n.reason, n.assume_not_done, n.per_second,
       n.idempotency_key, n.actor, n.expected, n.began_at, n.state, n.cursor, n.examined, n.matched, n.done,
       n.requested, n.settled, n.skipped, n.refused, n.refused_jobs, n.problem, n.updated_at, n.finished_at
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[],
            $16::bigint[], $17::bigint[], $18::text[], $19::text[], $20::bigint[], $21::bigint[], $22::text[],
            $23::uuid[], $24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[], $28::bigint[], $29::bigint[],
            $30::text[], $31::text[], $32::text[], $33::bigint[], $34::bigint[])
    AS n (tenant, id, kind, job_state, lane, destination, cause, class, key_prefix, type, created_since, created_until,
          dead_since, dead_until, reason, assume_not_done, per_second, idempotency_key, actor, expected, began_at,
          state, cursor, examined, matched, done, requested, settled, skipped, refused, refused_jobs, problem,
          updated_at, finished_at)
ON CONFLICT DO NOTHING
