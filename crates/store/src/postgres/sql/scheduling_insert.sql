INSERT INTO scheduling (tenant, paused_at, paused_reason, paused_by, held_ms)
SELECT n.tenant, n.paused_at, n.paused_reason, n.paused_by, n.held_ms
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])
    AS n (tenant, paused_at, paused_reason, paused_by, held_ms)
ON CONFLICT DO NOTHING
