DELETE FROM custody AS w
USING unnest($1::bigint[], $2::uuid[])
    AS n (tenant, message)
WHERE w.tenant = n.tenant AND w.message = n.message
