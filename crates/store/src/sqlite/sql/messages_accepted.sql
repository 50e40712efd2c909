SELECT key, accepted_at, jobs_total, fingerprint,
       EXISTS (SELECT 1 FROM fanouts WHERE fanouts.tenant = messages.tenant AND fanouts.message = messages.id)
FROM messages
WHERE tenant = ?1 AND id = ?2
