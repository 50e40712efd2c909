INSERT INTO fanouts (seq, tenant, message, due_at, made, targets, held_by)
SELECT n.seq, n.tenant, n.message, n.due_at, n.made, n.targets, n.held_by
FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[])
    AS n (seq, tenant, message, due_at, made, targets, held_by)
