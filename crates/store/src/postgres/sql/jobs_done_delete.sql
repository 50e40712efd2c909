DELETE FROM jobs_done AS w
USING unnest($1::bigint[], $2::uuid[])
    AS n (tenant, id)
WHERE w.tenant = n.tenant AND w.id = n.id
