INSERT INTO jobs_done (tenant, id, lane, kind, state, share, settled_at, cause, evidence, attempt, failed_before,
                       created_at, scheduled_at, started_at, failures, lost_leases, uncharged, budget_since,
                       budget_held_ms, reason, cancel_requested, abandon, commit_heard, evidence_floor, checkpoint,
                       wire_id, owner)
SELECT n.tenant, n.id, n.lane, n.kind, n.state, n.share, n.settled_at, n.cause, n.evidence, n.attempt, n.failed_before,
       n.created_at, n.scheduled_at, n.started_at, n.failures, n.lost_leases, n.uncharged, n.budget_since,
       n.budget_held_ms, n.reason, n.cancel_requested, n.abandon, n.commit_heard, n.evidence_floor, n.checkpoint,
       n.wire_id, n.owner
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
            $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::text[], $21::bigint[], $22::text[],
            $23::bigint[], $24::bigint[], $25::bytea[], $26::text[], $27::text[])
    AS n (tenant, id, lane, kind, state, share, settled_at, cause, evidence, attempt, failed_before, created_at,
          scheduled_at, started_at, failures, lost_leases, uncharged, budget_since, budget_held_ms, reason,
          cancel_requested, abandon, commit_heard, evidence_floor, checkpoint, wire_id, owner)
