INSERT INTO lane_events (tenant, lane, at, event, actor, reason)
SELECT n.tenant, n.lane, n.at, n.event, n.actor, n.reason
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[])
    AS n (tenant, lane, at, event, actor, reason)
