-- The receiver's ledger: one row guards one effect.
--
-- It belongs in the database that the effect is written to: effect and "done" must commit together.
-- A team that already has a table of this name runs adopt.sql instead. index.sql makes purge.sql quick.
--
-- Every rule that a statement keeps is also a CHECK, so that a row written by hand, or by a program with a fault, is an
-- error and never mistaken for a duplicate.
CREATE TABLE IF NOT EXISTS webhook_events (
    event_key text NOT NULL PRIMARY KEY,
    status text NOT NULL,
    -- Grants so far.
    attempts integer NOT NULL DEFAULT 0,
    -- For programs that kept their answer here before; ours is in result_bytes, since jsonb does not keep bytes.
    result jsonb,
    -- Until when the last grant is in force.
    locked_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Proof of the last grant; grows with each grant and reset, and never restarts for a key: see claim.sql.
    -- 0: written by a program that knows no fences.
    fence bigint NOT NULL DEFAULT 0,
    -- What the payload was, such as its SHA-256 in hexadecimal.
    fingerprint text,
    -- The caller's token: names the request that got the last grant.
    claim_id text,
    -- What the last grant followed.
    previous text,
    -- What becomes of a grant that runs out: the next claim takes it over, or a person must end it.
    on_expired text NOT NULL DEFAULT 'retake',
    -- What "done" means: the effect happened, or it no longer applied.
    outcome text,
    -- What duplicates are answered, byte for byte.
    result_bytes bytea,
    result_type text,
    result_status integer,
    -- Why the last grant failed.
    error_class text,
    error_message text,
    -- The last reset.
    reset_at timestamptz,
    reset_by text,
    reset_reason text,
    CONSTRAINT webhook_events_event_key CHECK (octet_length(event_key) BETWEEN 1 AND 321),
    CONSTRAINT webhook_events_status CHECK (status IN ('in_progress', 'done', 'failed')),
    CONSTRAINT webhook_events_attempts CHECK (attempts >= 0),
    CONSTRAINT webhook_events_lease CHECK (status <> 'in_progress' OR locked_until IS NOT NULL),
    CONSTRAINT webhook_events_fence CHECK (fence >= 0),
    CONSTRAINT webhook_events_grant
        CHECK (status <> 'in_progress' OR fence = 0 OR (claim_id IS NOT NULL AND previous IS NOT NULL)),
    CONSTRAINT webhook_events_fingerprint CHECK (octet_length(fingerprint) BETWEEN 1 AND 256),
    CONSTRAINT webhook_events_claim_id CHECK (octet_length(claim_id) BETWEEN 1 AND 128),
    CONSTRAINT webhook_events_previous CHECK (previous IN ('none', 'failed', 'expired')),
    CONSTRAINT webhook_events_on_expired CHECK (on_expired IN ('retake', 'hold')),
    CONSTRAINT webhook_events_outcome
        CHECK (outcome IN ('committed', 'cancelled') AND status = 'done' OR outcome IS NULL),
    CONSTRAINT webhook_events_done CHECK (status <> 'done' OR fence = 0 OR outcome IS NOT NULL),
    CONSTRAINT webhook_events_result
        CHECK (status = 'done' OR (result_bytes IS NULL AND result_type IS NULL AND result_status IS NULL)),
    CONSTRAINT webhook_events_result_status CHECK (result_status BETWEEN 100 AND 599),
    CONSTRAINT webhook_events_reset
        CHECK ((reset_at IS NULL) = (reset_reason IS NULL) AND (reset_reason <> '' OR reset_reason IS NULL))
);
