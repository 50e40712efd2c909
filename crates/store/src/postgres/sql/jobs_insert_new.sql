-- A job as most begin: the common part of jobs_insert.
INSERT INTO jobs (tenant, id, lane, kind, share, due_at, created_at, scheduled_at, budget_since, budget_held_ms,
                  wire_id, owner, state, attempt, failed_before, failures, lost_leases, uncharged, cancel_requested,
                  commit_heard, evidence_floor)
SELECT n.tenant, n.id, n.lane, n.kind, n.share, n.due_at, n.created_at, n.scheduled_at, n.budget_since,
       n.budget_held_ms, n.wire_id, n.owner, 'scheduled', 0, 0, 0, 0, 0, 0, 0, 0
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[], $12::text[])
    AS n (tenant, id, lane, kind, share, due_at, created_at, scheduled_at, budget_since, budget_held_ms, wire_id, owner)
