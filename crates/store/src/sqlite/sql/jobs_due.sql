SELECT kind, state, share, due_at, next_step, NULL, NULL, NULL, attempt, failed_before, created_at, scheduled_at,
       started_at, failures, lost_leases, uncharged, budget_since, budget_held_ms, reason, cancel_requested, abandon,
       commit_heard, evidence_floor, checkpoint, wire_id, owner, id
FROM jobs
WHERE tenant = ?1 AND lane = ?2 AND share = ?3 AND due_at <= ?4 AND next_step IS NOT 'look_up'
ORDER BY due_at, id
