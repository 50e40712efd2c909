UPDATE scheduling AS w
SET paused_at = n.paused_at, paused_reason = n.paused_reason, paused_by = n.paused_by, held_ms = n.held_ms
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])
    AS n (tenant, paused_at, paused_reason, paused_by, held_ms)
WHERE w.tenant = n.tenant
