UPDATE attempts
SET late_at = ?4, late_outcome = ?5, late_class = ?6, late_effect = ?7, late_wish = ?8, late_state = ?9,
    late_next_at = ?10, late_accepted = ?11, late_details = ?12, commit_heard_at = coalesce(commit_heard_at, ?13)
WHERE tenant = ?1 AND job = ?2 AND attempt = ?3 AND late_at IS NULL
