UPDATE lanes
SET not_before = ?3, paused_at = ?4, paused_reason = ?5, paused_by = ?6, disabled_at = ?7, disabled_reason = ?8,
    disabled_by = ?9, switched_off = ?10, circuit_since = ?11, circuit_until = ?12, circuit_probe = ?13,
    failures = ?14, refusals = ?15, failing_since = ?16, trips = ?17, held_ms = ?18, held_since = ?19,
    rate_used_us = ?20
WHERE tenant = ?1 AND lane = ?2
