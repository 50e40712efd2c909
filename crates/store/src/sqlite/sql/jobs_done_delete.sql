DELETE FROM jobs_done
WHERE tenant = ?1 AND id = ?2
