INSERT INTO destinations (tenant, id, kind, lane, config, managed_by, enabled, owner, created_at, updated_at)
SELECT n.tenant, n.id, n.kind, n.lane, n.config, n.managed_by, n.enabled, n.owner, n.created_at, n.updated_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[],
            $9::bigint[], $10::bigint[])
    AS n (tenant, id, kind, lane, config, managed_by, enabled, owner, created_at, updated_at)
ON CONFLICT DO NOTHING
