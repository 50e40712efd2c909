-- Lets purge.sql find the oldest settled entries. Optional; without it purge.sql reads the whole table.
CREATE INDEX IF NOT EXISTS webhook_events_settled ON webhook_events (updated_at)
    WHERE status IN ('done', 'failed');
