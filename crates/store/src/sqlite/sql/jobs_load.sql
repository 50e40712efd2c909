-- The message's id is the job's but for its last 32 bits: ?3 to ?4.
SELECT jobs.kind, jobs.state, jobs.share, jobs.due_at, jobs.next_step, NULL, NULL, NULL, jobs.attempt,
       jobs.failed_before, jobs.created_at, jobs.scheduled_at, jobs.started_at, jobs.failures, jobs.lost_leases,
       jobs.uncharged, jobs.budget_since, jobs.budget_held_ms, jobs.reason, jobs.cancel_requested, jobs.abandon,
       jobs.commit_heard, jobs.evidence_floor, jobs.checkpoint, jobs.wire_id, jobs.owner,
       messages.id, messages.key, messages.accepted_at,
       jobs.worker, jobs.lease_due_at, jobs.leased_at, jobs.lease_started_at, jobs.expires_at, jobs.deadline_at
FROM jobs
LEFT JOIN messages ON messages.tenant = jobs.tenant AND messages.id BETWEEN ?3 AND ?4
WHERE jobs.tenant = ?1 AND jobs.id = ?2
