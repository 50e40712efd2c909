DELETE FROM schedules
WHERE tenant = ?1 AND id = ?2
