SELECT at, event, actor, reason
FROM lane_events
WHERE tenant = ?1 AND lane = ?2
ORDER BY seq
