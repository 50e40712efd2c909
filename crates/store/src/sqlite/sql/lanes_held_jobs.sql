-- From the index alone, share by share.
SELECT (SELECT count(*)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'fresh' AND due_at <= ?1
          AND next_step IS NOT 'look_up')
     + (SELECT count(*)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'retry' AND due_at <= ?1
          AND next_step IS NOT 'look_up')
     + (SELECT count(*)
        FROM jobs
        WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'bulk' AND due_at <= ?1
          AND next_step IS NOT 'look_up')
FROM lanes
WHERE held_since IS NOT NULL
