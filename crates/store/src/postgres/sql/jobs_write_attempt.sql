-- What a lease changes, and a start: the common part of jobs_write.
UPDATE jobs AS w
SET state = n.state, due_at = n.due_at, next_step = n.next_step, attempt = n.attempt, started_at = n.started_at
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[])
    AS n (tenant, id, state, due_at, next_step, attempt, started_at)
WHERE w.tenant = n.tenant AND w.id = n.id
