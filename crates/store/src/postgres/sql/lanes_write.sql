UPDATE lanes AS w
SET not_before = n.not_before, paused_at = n.paused_at, paused_reason = n.paused_reason, paused_by = n.paused_by,
    disabled_at = n.disabled_at, disabled_reason = n.disabled_reason, disabled_by = n.disabled_by,
    switched_off = n.switched_off, circuit_since = n.circuit_since, circuit_until = n.circuit_until,
    circuit_probe = n.circuit_probe, failures = n.failures, refusals = n.refusals, failing_since = n.failing_since,
    trips = n.trips, held_ms = n.held_ms, held_since = n.held_since, rate_used_us = n.rate_used_us
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[],
            $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::uuid[], $14::bigint[], $15::bigint[],
            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[])
    AS n (tenant, lane, not_before, paused_at, paused_reason, paused_by, disabled_at, disabled_reason, disabled_by,
          switched_off, circuit_since, circuit_until, circuit_probe, failures, refusals, failing_since, trips, held_ms,
          held_since, rate_used_us)
WHERE w.tenant = n.tenant AND w.lane = n.lane
