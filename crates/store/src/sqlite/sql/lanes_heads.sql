-- Three seeks a lane. Shares are compared one by one, so that each finds its own end of the index.
SELECT tenant, lane, max(not_before, min(coalesce(fresh, 9223372036854775807), coalesce(retry, 9223372036854775807),
                                         coalesce(bulk, 9223372036854775807)))
FROM (SELECT tenant, lane, not_before,
             (SELECT min(due_at) FROM jobs
              WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'fresh'
                AND due_at IS NOT NULL AND next_step IS NOT 'look_up') AS fresh,
             (SELECT min(due_at) FROM jobs
              WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'retry'
                AND due_at IS NOT NULL AND next_step IS NOT 'look_up') AS retry,
             (SELECT min(due_at) FROM jobs
              WHERE jobs.tenant = lanes.tenant AND jobs.lane = lanes.lane AND share = 'bulk'
                AND due_at IS NOT NULL AND next_step IS NOT 'look_up') AS bulk
      FROM lanes
      WHERE paused_at IS NULL)
WHERE coalesce(fresh, retry, bulk) IS NOT NULL
ORDER BY tenant, lane
