SELECT kind, state, share, NULL, NULL, settled_at, cause, evidence, attempt, failed_before, created_at, scheduled_at,
       started_at, failures, lost_leases, uncharged, budget_since, budget_held_ms, reason, cancel_requested, abandon,
       commit_heard, evidence_floor, checkpoint, wire_id, owner, id
FROM jobs_done
WHERE tenant = ?1 AND id BETWEEN ?2 AND ?3
ORDER BY id
