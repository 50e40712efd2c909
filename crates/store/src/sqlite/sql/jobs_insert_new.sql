-- A job as it begins: the common part of jobs_insert, at two thirds of its cost.
INSERT INTO jobs (tenant, id, lane, kind, state, share, due_at, attempt, failed_before, created_at, scheduled_at, failures,
                  lost_leases, uncharged, budget_since, budget_held_ms, cancel_requested, commit_heard, evidence_floor,
                  wire_id, owner)
VALUES (?1, ?2, ?3, ?4, 'scheduled', ?5, ?6, 0, 0, ?7, ?8, 0, 0, 0, ?9, ?10, 0, 0, 0, ?11, ?12)
