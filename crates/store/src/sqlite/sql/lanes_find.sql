SELECT destination, not_before, paused_at, held_ms
FROM lanes
WHERE tenant = ?1 AND lane = ?2
