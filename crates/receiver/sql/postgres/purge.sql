-- Takes out settled entries that nothing was heard of for long, oldest first, and returns them for an archive.
--
--   $1 keep_ms bigint; at least an hour, whatever is said
--   $2 limit   bigint; rows at a time; go on until none come back
--
-- keep_ms must cover the longest time in which a sender may still come with the key: all its retries and a replay by
-- hand. An entry that is gone does not guard: the next delivery of its key is a first run.
--
-- Why it is so:
-- * What is in progress stays, however old: nobody knows yet what became of it.
-- * SKIP LOCKED: a purge never waits for a claim. A row that changed meanwhile is looked at again under its lock.
-- * At least an hour: so a later row's fence, which starts at the clock, is above all that the row here had.
WITH old AS (
    SELECT o.event_key
    FROM webhook_events AS o
    WHERE o.status IN ('done', 'failed')
        AND o.updated_at < clock_timestamp() - greatest($1::bigint, 3600000) * interval '1 millisecond'
    ORDER BY o.updated_at
    LIMIT $2::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM webhook_events AS e USING old
WHERE e.event_key = old.event_key
RETURNING e.*;
