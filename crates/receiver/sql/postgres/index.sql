-- Lets purge.sql find the oldest settled entries. Optional; without it purge.sql reads the whole table.
--
-- CONCURRENTLY keeps claims going while it is built, and for that must run outside a transaction.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhook_events_settled ON webhook_events (updated_at)
    WHERE status IN ('done', 'failed');
