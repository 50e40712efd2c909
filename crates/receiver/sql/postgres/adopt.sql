-- Makes a ledger of a table that a team already has, in place:
--   webhook_events (event_key PRIMARY KEY, status, attempts, result, locked_until, created_at, updated_at).
--
-- One statement, so all of it or nothing; running it again changes nothing. Constant defaults and NOT VALID mean that
-- no row is read or rewritten: the lock is exclusive, but held for an instant. SET lock_timeout = '2s' before it keeps
-- it from queueing behind a long transaction, and others from queueing behind it; if it times out, run it again.
--
-- Programs that still use statements of their own go on working meanwhile: what they insert has fence 0, which no
-- grant of ours has. But the guard is only as good as its weakest writer, so let them finish soon.
--
-- Expected: event_key and status of a text type, times of type timestamptz, status spelt in_progress, done, failed.
-- A row that breaks a rule stays as it is; a claim that meets it gets an error (23514), not an answer. These lines
-- find such rows beforehand, reading the table under a lock that lets others work:
--   ALTER TABLE webhook_events VALIDATE CONSTRAINT webhook_events_status; and so on for each name below.
ALTER TABLE webhook_events
    ADD COLUMN IF NOT EXISTS result jsonb,
    ADD COLUMN IF NOT EXISTS fence bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS fingerprint text,
    ADD COLUMN IF NOT EXISTS claim_id text,
    ADD COLUMN IF NOT EXISTS previous text,
    ADD COLUMN IF NOT EXISTS on_expired text NOT NULL DEFAULT 'retake',
    ADD COLUMN IF NOT EXISTS outcome text,
    ADD COLUMN IF NOT EXISTS result_bytes bytea,
    ADD COLUMN IF NOT EXISTS result_type text,
    ADD COLUMN IF NOT EXISTS result_status integer,
    ADD COLUMN IF NOT EXISTS error_class text,
    ADD COLUMN IF NOT EXISTS error_message text,
    ADD COLUMN IF NOT EXISTS reset_at timestamptz,
    ADD COLUMN IF NOT EXISTS reset_by text,
    ADD COLUMN IF NOT EXISTS reset_reason text,
    DROP CONSTRAINT IF EXISTS webhook_events_event_key,
    ADD CONSTRAINT webhook_events_event_key CHECK (octet_length(event_key) BETWEEN 1 AND 321) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_status,
    ADD CONSTRAINT webhook_events_status CHECK (status IN ('in_progress', 'done', 'failed')) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_attempts,
    ADD CONSTRAINT webhook_events_attempts CHECK (attempts >= 0) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_lease,
    ADD CONSTRAINT webhook_events_lease CHECK (status <> 'in_progress' OR locked_until IS NOT NULL) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_fence,
    ADD CONSTRAINT webhook_events_fence CHECK (fence >= 0) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_grant,
    ADD CONSTRAINT webhook_events_grant
        CHECK (status <> 'in_progress' OR fence = 0 OR (claim_id IS NOT NULL AND previous IS NOT NULL)) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_fingerprint,
    ADD CONSTRAINT webhook_events_fingerprint CHECK (octet_length(fingerprint) BETWEEN 1 AND 256) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_claim_id,
    ADD CONSTRAINT webhook_events_claim_id CHECK (octet_length(claim_id) BETWEEN 1 AND 128) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_previous,
    ADD CONSTRAINT webhook_events_previous CHECK (previous IN ('none', 'failed', 'expired')) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_on_expired,
    ADD CONSTRAINT webhook_events_on_expired CHECK (on_expired IN ('retake', 'hold')) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_outcome,
    ADD CONSTRAINT webhook_events_outcome
        CHECK (outcome IN ('committed', 'cancelled') AND status = 'done' OR outcome IS NULL) NOT VALID,
    -- Not webhook_events_done: a program that knows no outcome may finish what a claim of ours began.
    DROP CONSTRAINT IF EXISTS webhook_events_result,
    ADD CONSTRAINT webhook_events_result
        CHECK (status = 'done' OR (result_bytes IS NULL AND result_type IS NULL AND result_status IS NULL)) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_result_status,
    ADD CONSTRAINT webhook_events_result_status CHECK (result_status BETWEEN 100 AND 599) NOT VALID,
    DROP CONSTRAINT IF EXISTS webhook_events_reset,
    ADD CONSTRAINT webhook_events_reset
        CHECK ((reset_at IS NULL) = (reset_reason IS NULL) AND (reset_reason <> '' OR reset_reason IS NULL)) NOT VALID;
