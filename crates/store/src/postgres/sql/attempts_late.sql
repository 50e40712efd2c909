UPDATE attempts AS w
SET late_at = n.late_at, late_outcome = n.late_outcome, late_class = n.late_class, late_effect = n.late_effect,
    late_wish = n.late_wish, late_state = n.late_state, late_next_at = n.late_next_at, late_accepted = n.late_accepted,
    late_details = n.late_details, commit_heard_at = n.commit_heard_at
FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::bigint[])
    AS n (tenant, job, attempt, late_at, late_outcome, late_class, late_effect, late_wish, late_state, late_next_at,
          late_accepted, late_details, commit_heard_at)
WHERE w.tenant = n.tenant AND w.job = n.job AND w.attempt = n.attempt AND w.late_at IS NULL
