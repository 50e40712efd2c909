-- Three seeks a lane. Shares are compared one by one, so that each finds its own end of the index.
SELECT tenant, lane, max(not_before, ifnull(circuit_until, not_before)),
       (SELECT min(due_at)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'fresh' AND due_at IS NOT NULL
          AND next_step IS NOT 'look_up'),
       (SELECT min(due_at)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'retry' AND due_at IS NOT NULL
          AND next_step IS NOT 'look_up'),
       (SELECT min(due_at)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'bulk' AND due_at IS NOT NULL
          AND next_step IS NOT 'look_up'),
       (SELECT paused_at FROM scheduling WHERE scheduling.tenant = lanes.tenant)
FROM lanes
WHERE paused_at IS NULL AND disabled_at IS NULL AND switched_off = 0
ORDER BY tenant, lane
