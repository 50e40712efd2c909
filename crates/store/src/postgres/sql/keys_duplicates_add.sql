UPDATE keys AS w
SET duplicates = w.duplicates + n.duplicates
FROM unnest($1::bigint[], $2::text[], $3::bigint[])
    AS n (tenant, key, duplicates)
WHERE w.tenant = n.tenant AND w.key = n.key
