-- Makes a ledger of a table that a team already has, in place:
--   webhook_events (event_key PRIMARY KEY, status, attempts, result, locked_until, created_at, updated_at).
--
-- All of it or nothing. Run again it changes nothing: the first line is refused ("duplicate column name: fence"), and
-- with -bail, or in a program, that ends it before its COMMIT. SQLite has no ADD COLUMN IF NOT EXISTS.
-- No table is rebuilt: columns, indexes and triggers of the team's own stay. SQLite reads the rows once, to check them.
--
-- Each rule of table.sql hangs on the column that it came with. Those of the columns that were there before hang on
-- fence: SQLite adds no rule to a column that exists. An old row that breaks one stops the whole, by name: mend it first.
--
-- Programs that still use statements of their own go on working meanwhile: what they insert has fence 0, which no
-- grant of ours has. But the guard is only as good as its weakest writer, so let them finish soon.
--
-- Expected: status spelt in_progress, done, failed; times as text that SQLite reads (with or without T and Z), in UTC.
-- Times kept as seconds or milliseconds since 1970 are rewritten as text here; their programs must stop first.
BEGIN IMMEDIATE;
ALTER TABLE webhook_events ADD COLUMN fence INTEGER NOT NULL DEFAULT 0
    CONSTRAINT webhook_events_event_key
        CHECK (typeof(event_key) = 'text' AND length(CAST(event_key AS BLOB)) BETWEEN 1 AND 321)
    CONSTRAINT webhook_events_status CHECK (status IN ('in_progress', 'done', 'failed'))
    CONSTRAINT webhook_events_attempts CHECK (attempts >= 0)
    CONSTRAINT webhook_events_fence CHECK (typeof(fence) = 'integer' AND fence >= 0);
UPDATE webhook_events SET
    locked_until = CASE WHEN typeof(locked_until) IN ('integer', 'real') THEN strftime('%Y-%m-%d %H:%M:%f',
        CASE WHEN locked_until > 100000000000 THEN locked_until / 1000.0 ELSE locked_until END, 'unixepoch')
        ELSE locked_until END,
    created_at = CASE WHEN typeof(created_at) IN ('integer', 'real') THEN strftime('%Y-%m-%d %H:%M:%f',
        CASE WHEN created_at > 100000000000 THEN created_at / 1000.0 ELSE created_at END, 'unixepoch')
        ELSE created_at END,
    updated_at = CASE WHEN typeof(updated_at) IN ('integer', 'real') THEN strftime('%Y-%m-%d %H:%M:%f',
        CASE WHEN updated_at > 100000000000 THEN updated_at / 1000.0 ELSE updated_at END, 'unixepoch')
        ELSE updated_at END
WHERE typeof(locked_until) IN ('integer', 'real') OR typeof(created_at) IN ('integer', 'real')
    OR typeof(updated_at) IN ('integer', 'real');
ALTER TABLE webhook_events ADD COLUMN fingerprint TEXT
    CONSTRAINT webhook_events_fingerprint
        CHECK (fingerprint IS NULL OR length(CAST(fingerprint AS BLOB)) BETWEEN 1 AND 256);
ALTER TABLE webhook_events ADD COLUMN claim_id TEXT
    CONSTRAINT webhook_events_claim_id
        CHECK (claim_id IS NULL OR length(CAST(claim_id AS BLOB)) BETWEEN 1 AND 128);
ALTER TABLE webhook_events ADD COLUMN previous TEXT
    CONSTRAINT webhook_events_previous CHECK (previous IN ('none', 'failed', 'expired'))
    CONSTRAINT webhook_events_grant
        CHECK (status <> 'in_progress' OR fence = 0 OR (claim_id IS NOT NULL AND previous IS NOT NULL))
    CONSTRAINT webhook_events_lease CHECK (
        CASE WHEN locked_until IS NULL THEN status <> 'in_progress'
            ELSE typeof(locked_until) = 'text' AND julianday(locked_until) IS NOT NULL END
    );
ALTER TABLE webhook_events ADD COLUMN on_expired TEXT NOT NULL DEFAULT 'retake'
    CONSTRAINT webhook_events_on_expired CHECK (on_expired IN ('retake', 'hold'));
-- Not webhook_events_done: a program that knows no outcome may finish what a claim of ours began.
ALTER TABLE webhook_events ADD COLUMN outcome TEXT
    CONSTRAINT webhook_events_outcome
        CHECK (outcome IS NULL OR (outcome IN ('committed', 'cancelled') AND status = 'done'));
ALTER TABLE webhook_events ADD COLUMN result_bytes BLOB
    CONSTRAINT webhook_events_result_bytes CHECK (typeof(result_bytes) IN ('null', 'blob'));
ALTER TABLE webhook_events ADD COLUMN result_type TEXT;
ALTER TABLE webhook_events ADD COLUMN result_status INTEGER
    CONSTRAINT webhook_events_result_status
        CHECK (result_status IS NULL OR (typeof(result_status) = 'integer' AND result_status BETWEEN 100 AND 599))
    CONSTRAINT webhook_events_result
        CHECK (status = 'done' OR (result_bytes IS NULL AND result_type IS NULL AND result_status IS NULL));
ALTER TABLE webhook_events ADD COLUMN error_class TEXT;
ALTER TABLE webhook_events ADD COLUMN error_message TEXT;
ALTER TABLE webhook_events ADD COLUMN reset_at TEXT;
ALTER TABLE webhook_events ADD COLUMN reset_by TEXT;
ALTER TABLE webhook_events ADD COLUMN reset_reason TEXT
    CONSTRAINT webhook_events_reset
        CHECK ((reset_at IS NULL) = (reset_reason IS NULL) AND (reset_reason IS NULL OR reset_reason <> ''));
COMMIT;
