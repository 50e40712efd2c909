-- Takes out settled entries that nothing was heard of for long, oldest first, and returns them for an archive.
--
--   :keep_ms INTEGER; at least an hour, whatever is said
--   :limit   INTEGER; rows at a time; go on until none come back
--
-- keep_ms must cover the longest time in which a sender may still come with the key: all its retries and a replay by
-- hand. An entry that is gone does not guard: the next delivery of its key is a first run.
--
-- Why it is so:
-- * What is in progress stays, however old: nobody knows yet what became of it.
-- * At least an hour: so a later row's fence, which starts at the clock, is above all that the row here had.
DELETE FROM webhook_events
WHERE event_key IN (
    SELECT event_key
    FROM webhook_events
    WHERE status IN ('done', 'failed')
        AND updated_at < strftime('%Y-%m-%d %H:%M:%f', julianday('now') - max(:keep_ms, 3600000) / 86400000.0)
    ORDER BY updated_at
    LIMIT :limit
)
RETURNING *;
