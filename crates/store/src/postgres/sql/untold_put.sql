INSERT INTO untold (tenant, job, at, attempt, cause)
SELECT n.tenant, n.job, n.at, n.attempt, n.cause
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[])
    AS n (tenant, job, at, attempt, cause)
ON CONFLICT (tenant, job, at) DO UPDATE
SET attempt = excluded.attempt, cause = excluded.cause
