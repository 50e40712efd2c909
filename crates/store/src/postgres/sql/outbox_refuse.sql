UPDATE outbox AS o SET problem = r.problem
FROM unnest($1::bigint[], $2::text[]) AS r (id, problem)
WHERE o.id = r.id
