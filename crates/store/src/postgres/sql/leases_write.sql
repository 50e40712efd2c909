UPDATE leases AS w
SET worker = n.worker, due_at = n.due_at, leased_at = n.leased_at, started_at = n.started_at, expires_at = n.expires_at,
    deadline_at = n.deadline_at
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS n (tenant, job, worker, due_at, leased_at, started_at, expires_at, deadline_at)
WHERE w.tenant = n.tenant AND w.job = n.job
