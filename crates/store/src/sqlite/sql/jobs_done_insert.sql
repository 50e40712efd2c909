INSERT INTO jobs_done (tenant, id, lane, kind, state, share, settled_at, cause, evidence, attempt, failed_before,
                       created_at, scheduled_at, started_at, failures, lost_leases, uncharged, budget_since,
                       budget_held_ms, reason, cancel_requested, abandon, commit_heard, evidence_floor, checkpoint,
                       wire_id, owner)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
        ?25, ?26, ?27)
