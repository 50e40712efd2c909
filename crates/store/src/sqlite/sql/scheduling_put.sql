INSERT INTO scheduling (tenant, paused_at, paused_reason, paused_by, held_ms)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant) DO UPDATE
SET paused_at = excluded.paused_at, paused_reason = excluded.paused_reason, paused_by = excluded.paused_by,
    held_ms = excluded.held_ms
