UPDATE lanes
SET not_before = max(not_before, ?3)
WHERE tenant = ?1 AND lane = ?2
