UPDATE attempts
SET commit_heard_at = coalesce(commit_heard_at, ?4)
WHERE tenant = ?1 AND job = ?2 AND attempt = ?3
