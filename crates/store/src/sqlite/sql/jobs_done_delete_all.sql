DELETE FROM jobs_done
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
