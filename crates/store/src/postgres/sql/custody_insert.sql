INSERT INTO custody (tenant, message, job, at, stage, attempt, actor, detail)
SELECT n.tenant, n.message, n.job, n.at, n.stage, n.attempt, n.actor, n.detail
FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::text[])
    AS n (tenant, message, job, at, stage, attempt, actor, detail)
