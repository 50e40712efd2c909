DELETE FROM untold WHERE tenant = ?1 AND job = ?2 AND at = ?3
