INSERT INTO schedules (tenant, id, config, managed_by, enabled, owner, next_fire_at, last_fired_at, paused_at,
                       paused_by, paused_reason, created_at, updated_at)
SELECT n.tenant, n.id, n.config, n.managed_by, n.enabled, n.owner, n.next_fire_at, n.last_fired_at, n.paused_at,
       n.paused_by, n.paused_reason, n.created_at, n.updated_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[])
    AS n (tenant, id, config, managed_by, enabled, owner, next_fire_at, last_fired_at, paused_at, paused_by,
          paused_reason, created_at, updated_at)
ON CONFLICT DO NOTHING
