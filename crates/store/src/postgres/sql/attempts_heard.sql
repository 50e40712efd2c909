UPDATE attempts AS w
SET commit_heard_at = n.commit_heard_at
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[])
    AS n (tenant, job, attempt, commit_heard_at)
WHERE w.tenant = n.tenant AND w.job = n.job AND w.attempt = n.attempt
