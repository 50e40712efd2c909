INSERT INTO api_keys (tenant, id, name, secret_hash, scopes, created_at, revoked_at)
SELECT n.tenant, n.id, n.name, n.secret_hash, n.scopes, n.created_at, n.revoked_at
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::bigint[], $7::bigint[])
    AS n (tenant, id, name, secret_hash, scopes, created_at, revoked_at)
ON CONFLICT DO NOTHING
