UPDATE bulk_runs AS w
SET state = n.state, cursor = n.cursor, examined = n.examined, matched = n.matched, done = n.done,
    requested = n.requested, settled = n.settled, skipped = n.skipped, refused = n.refused,
    refused_jobs = n.refused_jobs, problem = n.problem, updated_at = n.updated_at, finished_at = n.finished_at
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::uuid[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::bigint[])
    AS n (tenant, id, state, cursor, examined, matched, done, requested, settled, skipped, refused, refused_jobs,
          problem, updated_at, finished_at)
WHERE w.tenant = n.tenant AND w.id = n.id
