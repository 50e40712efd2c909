UPDATE schedules AS w
SET config = n.config, managed_by = n.managed_by, enabled = n.enabled, owner = n.owner, next_fire_at = n.next_fire_at,
    last_fired_at = n.last_fired_at, paused_at = n.paused_at, paused_by = n.paused_by, paused_reason = n.paused_reason,
    created_at = n.created_at, updated_at = n.updated_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[])
    AS n (tenant, id, config, managed_by, enabled, owner, next_fire_at, last_fired_at, paused_at, paused_by,
          paused_reason, created_at, updated_at)
WHERE w.tenant = n.tenant AND w.id = n.id
