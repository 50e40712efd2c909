UPDATE destinations AS w
SET kind = n.kind, lane = n.lane, config = n.config, managed_by = n.managed_by, enabled = n.enabled, owner = n.owner,
    created_at = n.created_at, updated_at = n.updated_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[],
            $9::bigint[], $10::bigint[])
    AS n (tenant, id, kind, lane, config, managed_by, enabled, owner, created_at, updated_at)
WHERE w.tenant = n.tenant AND w.id = n.id
