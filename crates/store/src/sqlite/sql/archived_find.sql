SELECT key, accepted_at, jobs_total, correlation_id, archived_at, file, at_byte, bytes, dead_lanes
FROM archived
WHERE tenant = ?1 AND message = ?2
