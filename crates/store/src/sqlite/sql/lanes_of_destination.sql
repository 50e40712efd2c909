SELECT lane
FROM lanes
WHERE tenant = ?1 AND destination = ?2
