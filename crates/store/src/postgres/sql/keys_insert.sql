INSERT INTO keys (tenant, key, kind, message, duplicates)
SELECT n.tenant, n.key, n.kind, n.message, n.duplicates
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::uuid[], $5::bigint[])
    AS n (tenant, key, kind, message, duplicates)
ON CONFLICT DO NOTHING
