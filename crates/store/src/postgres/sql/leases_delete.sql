DELETE FROM leases AS w
USING unnest($1::bigint[], $2::uuid[])
    AS n (tenant, job)
WHERE w.tenant = n.tenant AND w.job = n.job
