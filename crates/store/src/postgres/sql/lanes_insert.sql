INSERT INTO lanes (tenant, lane, destination, not_before, paused_at, paused_reason, paused_by, disabled_at,
                   disabled_reason, disabled_by, switched_off, circuit_since, circuit_until, circuit_probe, failures,
                   refusals, failing_since, trips, held_ms, held_since, rate_used_us)
SELECT n.tenant, n.lane, n.destination, n.not_before, n.paused_at, n.paused_reason, n.paused_by, n.disabled_at,
       n.disabled_reason, n.disabled_by, n.switched_off, n.circuit_since, n.circuit_until, n.circuit_probe, n.failures,
       n.refusals, n.failing_since, n.trips, n.held_ms, n.held_since, n.rate_used_us
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[],
            $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::uuid[], $15::bigint[],
            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[])
    AS n (tenant, lane, destination, not_before, paused_at, paused_reason, paused_by, disabled_at, disabled_reason,
          disabled_by, switched_off, circuit_since, circuit_until, circuit_probe, failures, refusals, failing_since,
          trips, held_ms, held_since, rate_used_us)
ON CONFLICT DO NOTHING
