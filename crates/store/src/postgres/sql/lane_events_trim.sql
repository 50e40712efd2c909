-- Of each lane the newest $3 stay.
DELETE FROM lane_events AS w
USING unnest($1::bigint[], $2::bigint[])
    AS n (tenant, lane)
WHERE w.tenant = n.tenant AND w.lane = n.lane
  AND w.seq <= (SELECT old.seq
                FROM lane_events AS old
                WHERE old.tenant = n.tenant AND old.lane = n.lane
                ORDER BY old.seq DESC
                OFFSET $3
                LIMIT 1)
