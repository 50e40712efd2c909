INSERT INTO attempts (tenant, job, attempt, kind, path, worker, due_at, leased_at, started_at, finished_at, outcome,
                      class, effect, wish, reported, state, next_at, policy, status, duration_ms, code, message,
                      excerpt, result, commit_heard_at, late_at, late_outcome, late_class, late_effect, late_wish,
                      late_state, late_next_at, late_accepted, late_details)
SELECT n.tenant, n.job, n.attempt, n.kind, n.path, n.worker, n.due_at, n.leased_at, n.started_at, n.finished_at,
       n.outcome, n.class, n.effect, n.wish, n.reported, n.state, n.next_at, n.policy, n.status, n.duration_ms, n.code,
       n.message, n.excerpt, n.result, n.commit_heard_at, n.late_at, n.late_outcome, n.late_class, n.late_effect,
       n.late_wish, n.late_state, n.late_next_at, n.late_accepted, n.late_details
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::text[],
            $17::bigint[], $18::text[], $19::bigint[], $20::bigint[], $21::text[], $22::text[], $23::bytea[],
            $24::bytea[], $25::bigint[], $26::bigint[], $27::text[], $28::text[], $29::text[], $30::text[], $31::text[],
            $32::bigint[], $33::bigint[], $34::text[])
    AS n (tenant, job, attempt, kind, path, worker, due_at, leased_at, started_at, finished_at, outcome, class, effect,
          wish, reported, state, next_at, policy, status, duration_ms, code, message, excerpt, result, commit_heard_at,
          late_at, late_outcome, late_class, late_effect, late_wish, late_state, late_next_at, late_accepted,
          late_details)
