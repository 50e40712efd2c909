SELECT attempt, kind, path, worker, due_at, leased_at, started_at, finished_at, outcome, class, effect, wish, reported, state,
       next_at, policy, status, duration_ms, code, message, excerpt, result, commit_heard_at, late_at, late_outcome,
       late_class, late_effect, late_wish, late_state, late_next_at, late_accepted,
       late_details
FROM attempts
WHERE tenant = ?1 AND job = ?2 AND attempt = ?3
