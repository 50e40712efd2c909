INSERT INTO leases (tenant, job, worker, due_at, leased_at, started_at, expires_at, deadline_at)
SELECT n.tenant, n.job, n.worker, n.due_at, n.leased_at, n.started_at, n.expires_at, n.deadline_at
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS n (tenant, job, worker, due_at, leased_at, started_at, expires_at, deadline_at)
