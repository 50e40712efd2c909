-- Below zero in one shard is nothing: the sum counts.
INSERT INTO job_counts (tenant, state, shard, jobs)
SELECT n.tenant, n.state, n.shard, n.jobs
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])
    AS n (tenant, state, shard, jobs)
ON CONFLICT (tenant, state, shard) DO UPDATE
SET jobs = job_counts.jobs + excluded.jobs
