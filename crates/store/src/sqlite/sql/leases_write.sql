UPDATE leases
SET started_at = ?3, expires_at = ?4
WHERE tenant = ?1 AND job = ?2
