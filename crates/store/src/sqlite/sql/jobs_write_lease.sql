-- What an extension changes, and nothing else.
UPDATE jobs
SET lease_started_at = ?3, expires_at = ?4
WHERE tenant = ?1 AND id = ?2
