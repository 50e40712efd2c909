UPDATE api_keys AS w
SET revoked_at = n.revoked_at
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[])
    AS n (tenant, id, revoked_at)
WHERE w.tenant = n.tenant AND w.id = n.id
