-- The next lane that has any.
SELECT tenant, lane
FROM jobs INDEXED BY jobs_look_ups
WHERE next_step = 'look_up' AND (tenant, lane) > (?1, ?2)
ORDER BY tenant, lane
LIMIT 1
