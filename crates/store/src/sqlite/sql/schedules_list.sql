SELECT tenant, id, config, managed_by, enabled, owner, next_fire_at, last_fired_at, paused_at, paused_by, paused_reason,
       created_at, updated_at
FROM schedules
ORDER BY tenant, id
