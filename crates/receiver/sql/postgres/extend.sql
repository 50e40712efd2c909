-- Keeps a grant in force for longer, from now. No row: it is over, stop working.
--
--   $1 event_key text
--   $2 fence     bigint; from the claim
--   $3 lease_ms  bigint
--
-- On a connection of its own, committed at once: others must see it while the effect is still being written.
--
-- Why it is so:
-- * A grant that ran out is not revived: somebody may have looked and be about to take it over. Finishing is still
--   accepted until then.
UPDATE webhook_events AS e SET
    locked_until = clock_timestamp() + $3::bigint * interval '1 millisecond',
    updated_at = clock_timestamp()
WHERE e.event_key = $1::text
    AND e.fence = $2::bigint
    AND e.status = 'in_progress'
    AND e.locked_until > clock_timestamp()
RETURNING e.status, e.fence, e.attempts, e.locked_until;
