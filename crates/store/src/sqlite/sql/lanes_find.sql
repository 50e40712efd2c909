SELECT destination, not_before, paused_at, paused_reason, paused_by, disabled_at, disabled_reason, disabled_by,
       switched_off, circuit_since, circuit_until, circuit_probe, failures, refusals, failing_since, trips, held_ms,
       held_since, rate_used_us
FROM lanes
WHERE tenant = ?1 AND lane = ?2
