INSERT INTO schedules (
    tenant, id, config, managed_by, enabled, owner, next_fire_at, last_fired_at, paused_at, paused_by, paused_reason,
    created_at, updated_at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (tenant, id) DO UPDATE
SET config = excluded.config, managed_by = excluded.managed_by, enabled = excluded.enabled, owner = excluded.owner,
    next_fire_at = excluded.next_fire_at, last_fired_at = excluded.last_fired_at, paused_at = excluded.paused_at,
    paused_by = excluded.paused_by, paused_reason = excluded.paused_reason, updated_at = excluded.updated_at
