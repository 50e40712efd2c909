DELETE FROM leases
WHERE tenant = ?1 AND job = ?2
