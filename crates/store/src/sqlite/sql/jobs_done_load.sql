-- The message's id is the job's but for its last 32 bits: ?3 to ?4.
SELECT jobs_done.kind, jobs_done.state, jobs_done.share, NULL, NULL, jobs_done.settled_at, jobs_done.cause,
       jobs_done.evidence, jobs_done.attempt, jobs_done.failed_before, jobs_done.created_at, jobs_done.scheduled_at,
       jobs_done.started_at, jobs_done.failures, jobs_done.lost_leases, jobs_done.uncharged, jobs_done.budget_since,
       jobs_done.budget_held_ms, jobs_done.reason, jobs_done.cancel_requested, jobs_done.abandon,
       jobs_done.commit_heard, jobs_done.evidence_floor, jobs_done.checkpoint, jobs_done.wire_id, jobs_done.owner,
       messages.id, messages.key, messages.accepted_at,
       NULL, NULL, NULL, NULL, NULL, NULL
FROM jobs_done
LEFT JOIN messages ON messages.tenant = jobs_done.tenant AND messages.id BETWEEN ?3 AND ?4
WHERE jobs_done.tenant = ?1 AND jobs_done.id = ?2
