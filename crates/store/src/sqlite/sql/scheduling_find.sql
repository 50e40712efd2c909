SELECT paused_at, paused_reason, paused_by, held_ms
FROM scheduling
WHERE tenant = ?1
