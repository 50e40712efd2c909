DELETE FROM untold AS w
USING unnest($1::bigint[], $2::uuid[], $3::bigint[])
    AS n (tenant, job, at)
WHERE w.tenant = n.tenant AND w.job = n.job AND w.at = n.at
