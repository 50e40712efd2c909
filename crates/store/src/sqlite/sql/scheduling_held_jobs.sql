SELECT (SELECT count(*)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'fresh'
          AND due_at BETWEEN scheduling.paused_at AND ?1 AND next_step IS NOT 'look_up')
FROM scheduling
JOIN lanes ON lanes.tenant = scheduling.tenant
WHERE scheduling.paused_at IS NOT NULL AND lanes.held_since IS NULL
