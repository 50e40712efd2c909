-- The receiver's ledger: one row guards one effect.
--
-- It belongs in the database that the effect is written to: effect and "done" must commit together.
-- A team that already has a table of this name runs adopt.sql instead. index.sql makes purge.sql quick.
--
-- Times are UTC, as text: 2026-12-01 09:00:00.000. Every rule that a statement keeps is also a CHECK, so that a row
-- written by hand, or by a program with a fault, is an error and never mistaken for a duplicate.
CREATE TABLE IF NOT EXISTS webhook_events (
    event_key TEXT NOT NULL PRIMARY KEY,
    status TEXT NOT NULL,
    -- Grants so far.
    attempts INTEGER NOT NULL DEFAULT 0,
    -- For programs that kept their answer here before; ours is in result_bytes.
    result TEXT,
    -- Until when the last grant is in force.
    locked_until TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
    -- Proof of the last grant; grows with each grant and reset, and never restarts for a key: see claim.sql.
    -- 0: written by a program that knows no fences.
    fence INTEGER NOT NULL DEFAULT 0,
    -- What the payload was, such as its SHA-256 in hexadecimal.
    fingerprint TEXT,
    -- The caller's token: names the request that got the last grant.
    claim_id TEXT,
    -- What the last grant followed.
    previous TEXT,
    -- What becomes of a grant that runs out: the next claim takes it over, or a person must end it.
    on_expired TEXT NOT NULL DEFAULT 'retake',
    -- What "done" means: the effect happened, or it no longer applied.
    outcome TEXT,
    -- What duplicates are answered, byte for byte.
    result_bytes BLOB,
    result_type TEXT,
    result_status INTEGER,
    -- Why the last grant failed.
    error_class TEXT,
    error_message TEXT,
    -- The last reset.
    reset_at TEXT,
    reset_by TEXT,
    reset_reason TEXT,
    CONSTRAINT webhook_events_event_key
        CHECK (typeof(event_key) = 'text' AND length(CAST(event_key AS BLOB)) BETWEEN 1 AND 321),
    CONSTRAINT webhook_events_status CHECK (status IN ('in_progress', 'done', 'failed')),
    CONSTRAINT webhook_events_attempts CHECK (typeof(attempts) = 'integer' AND attempts >= 0),
    CONSTRAINT webhook_events_lease CHECK (
        CASE WHEN locked_until IS NULL THEN status <> 'in_progress'
            ELSE typeof(locked_until) = 'text' AND julianday(locked_until) IS NOT NULL END
    ),
    CONSTRAINT webhook_events_fence CHECK (typeof(fence) = 'integer' AND fence >= 0),
    CONSTRAINT webhook_events_grant
        CHECK (status <> 'in_progress' OR fence = 0 OR (claim_id IS NOT NULL AND previous IS NOT NULL)),
    CONSTRAINT webhook_events_fingerprint
        CHECK (fingerprint IS NULL OR length(CAST(fingerprint AS BLOB)) BETWEEN 1 AND 256),
    CONSTRAINT webhook_events_claim_id
        CHECK (claim_id IS NULL OR length(CAST(claim_id AS BLOB)) BETWEEN 1 AND 128),
    CONSTRAINT webhook_events_previous CHECK (previous IN ('none', 'failed', 'expired')),
    CONSTRAINT webhook_events_on_expired CHECK (on_expired IN ('retake', 'hold')),
    CONSTRAINT webhook_events_outcome
        CHECK (outcome IS NULL OR (outcome IN ('committed', 'cancelled') AND status = 'done')),
    CONSTRAINT webhook_events_done CHECK (status <> 'done' OR fence = 0 OR outcome IS NOT NULL),
    CONSTRAINT webhook_events_result
        CHECK (status = 'done' OR (result_bytes IS NULL AND result_type IS NULL AND result_status IS NULL)),
    CONSTRAINT webhook_events_result_bytes CHECK (typeof(result_bytes) IN ('null', 'blob')),
    CONSTRAINT webhook_events_result_status
        CHECK (result_status IS NULL OR (typeof(result_status) = 'integer' AND result_status BETWEEN 100 AND 599)),
    CONSTRAINT webhook_events_reset
        CHECK ((reset_at IS NULL) = (reset_reason IS NULL) AND (reset_reason IS NULL OR reset_reason <> ''))
);
