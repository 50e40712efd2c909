UPDATE jobs
SET state = ?3, share = ?4, due_at = ?5, next_step = ?6, attempt = ?7, failed_before = ?8, started_at = ?9,
    failures = ?10, lost_leases = ?11, uncharged = ?12, budget_since = ?13, budget_held_ms = ?14, reason = ?15,
    cancel_requested = ?16, abandon = ?17, commit_heard = ?18, evidence_floor = ?19, checkpoint = ?20,
    worker = ?21, lease_due_at = ?22, leased_at = ?23, lease_started_at = ?24, expires_at = ?25, deadline_at = ?26
WHERE tenant = ?1 AND id = ?2
