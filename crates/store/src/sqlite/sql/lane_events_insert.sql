INSERT INTO lane_events (tenant, lane, at, event, actor, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
