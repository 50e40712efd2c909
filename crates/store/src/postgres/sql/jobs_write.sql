UPDATE jobs AS w
SET state = n.state, share = n.share, due_at = n.due_at, next_step = n.next_step, attempt = n.attempt,
    failed_before = n.failed_before, started_at = n.started_at, failures = n.failures, lost_leases = n.lost_leases,
    uncharged = n.uncharged, budget_since = n.budget_since, budget_held_ms = n.budget_held_ms, reason = n.reason,
    cancel_requested = n.cancel_requested, abandon = n.abandon, commit_heard = n.commit_heard,
    evidence_floor = n.evidence_floor, checkpoint = n.checkpoint
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[],
            $16::bigint[], $17::text[], $18::bigint[], $19::bigint[], $20::bytea[])
    AS n (tenant, id, state, share, due_at, next_step, attempt, failed_before, started_at, failures, lost_leases,
          uncharged, budget_since, budget_held_ms, reason, cancel_requested, abandon, commit_heard, evidence_floor,
          checkpoint)
WHERE w.tenant = n.tenant AND w.id = n.id
