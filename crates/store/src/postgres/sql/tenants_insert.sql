INSERT INTO tenants (tenant, name, created_at)
SELECT n.tenant, n.name, n.created_at
FROM unnest($1::bigint[], $2::text[], $3::bigint[])
    AS n (tenant, name, created_at)
ON CONFLICT DO NOTHING
