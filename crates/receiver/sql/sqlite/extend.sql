-- Keeps a grant in force for longer, from now. No row: it is over, stop working.
--
--   :event_key TEXT
--   :fence     INTEGER; from the claim
--   :lease_ms  INTEGER
--
-- On a connection of its own, committed at once: others must see it while the effect goes on. While the effect's
-- transaction writes, SQLite lets nobody else write, so extend before it begins.
--
-- Why it is so:
-- * A grant that ran out is not revived: somebody may have looked and be about to take it over. Finishing is still
--   accepted until then.
UPDATE webhook_events SET
    locked_until = strftime('%Y-%m-%d %H:%M:%f', julianday('now') + :lease_ms / 86400000.0),
    updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE event_key = :event_key
    AND fence = :fence
    AND status = 'in_progress'
    AND julianday(locked_until) > julianday('now')
RETURNING status, fence, attempts, locked_until;
