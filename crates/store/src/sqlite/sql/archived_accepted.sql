-- As messages_accepted. No fan-out runs.
SELECT key, accepted_at, jobs_total, fingerprint, 0
FROM archived
WHERE tenant = ?1 AND message = ?2
