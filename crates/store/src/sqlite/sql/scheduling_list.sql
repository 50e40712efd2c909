SELECT tenant, paused_at, paused_reason, paused_by, held_ms
FROM scheduling
ORDER BY tenant
