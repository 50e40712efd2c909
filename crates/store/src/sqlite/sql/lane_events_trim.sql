DELETE FROM lane_events
WHERE seq IN (SELECT seq FROM lane_events WHERE tenant = ?1 AND lane = ?2 ORDER BY seq DESC LIMIT 10 OFFSET ?3)
