SELECT max(lane)
FROM lanes
WHERE tenant = ?1
