-- What stays of what is archived: enough to know a key again, and where the rest is. See docs/adr/0004-retention.md.
-- A place is a file, and where in its text a line begins and how long it is; without a file the rest is gone for good.

CREATE TABLE archived (
    tenant         INTEGER NOT NULL,
    message        BLOB    NOT NULL CHECK (length(message) = 16),
    key            TEXT    NOT NULL CHECK (length(key) >= 1),
    accepted_at    INTEGER NOT NULL,
    jobs_total     INTEGER NOT NULL CHECK (jobs_total >= 0),
    fingerprint    BLOB    NOT NULL CHECK (length(fingerprint) = 80),
    correlation_id TEXT    NOT NULL,
    dead_lanes     BLOB    CHECK (length(dead_lanes) >= 4),
    archived_at    INTEGER NOT NULL,
    file           TEXT    CHECK (length(file) >= 1),
    at_byte        INTEGER CHECK (at_byte >= 0),
    bytes          INTEGER CHECK (bytes >= 1),
    PRIMARY KEY (tenant, message),
    CHECK ((file IS NULL) = (at_byte IS NULL)),
    CHECK ((file IS NULL) = (bytes IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX archived_places ON archived (file, at_byte) WHERE file IS NOT NULL;

-- Entries of the ledger, and what a claim of an archived job's event id needs to be told: then `of_job` names the job.
CREATE TABLE archived_entries (
    tenant         INTEGER NOT NULL,
    key            TEXT    NOT NULL CHECK (length(key) BETWEEN 1 AND 321),
    status         TEXT    NOT NULL CHECK (status = 'in_progress' OR status = 'done' OR status = 'failed'),
    fence          INTEGER NOT NULL CHECK (fence >= 1),
    attempts       INTEGER NOT NULL CHECK (attempts >= 1),
    locked_until   INTEGER NOT NULL,
    fingerprint    BLOB,
    claim_id       TEXT,
    path           TEXT    NOT NULL CHECK (path = 'first_run' OR path = 'retry_after_failure'),
    previous       TEXT    NOT NULL CHECK (previous = 'none' OR previous = 'failed' OR previous = 'expired'),
    on_expired     TEXT    NOT NULL CHECK (on_expired = 'retake' OR on_expired = 'hold'),
    outcome        TEXT    CHECK (outcome = 'committed' OR outcome = 'cancelled'),
    result_bytes   BLOB,
    result_type    TEXT,
    result_status  INTEGER CHECK (result_status BETWEEN 0 AND 65535),
    class          TEXT,
    message        TEXT,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    reset_at       INTEGER,
    reset_by       TEXT,
    reset_reason   TEXT,
    of_job         BLOB    CHECK (length(of_job) = 16),
    result_elsewhere INTEGER NOT NULL CHECK (result_elsewhere IN (0, 1)),
    archived_at    INTEGER NOT NULL,
    file           TEXT    CHECK (length(file) >= 1),
    at_byte        INTEGER CHECK (at_byte >= 0),
    bytes          INTEGER CHECK (bytes >= 1),
    PRIMARY KEY (tenant, key),
    CHECK ((status = 'done') = (outcome IS NOT NULL)),
    CHECK ((reset_at IS NULL) = (reset_reason IS NULL)),
    CHECK (result_elsewhere = 0 OR (result_bytes IS NULL AND file IS NOT NULL)),
    CHECK ((file IS NULL) = (at_byte IS NULL)),
    CHECK ((file IS NULL) = (bytes IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX archived_entries_places ON archived_entries (file, at_byte) WHERE file IS NOT NULL;

CREATE TABLE archive_files (
    file           TEXT    NOT NULL PRIMARY KEY CHECK (length(file) >= 1),
    records        INTEGER NOT NULL CHECK (records >= 1),
    bytes          INTEGER NOT NULL CHECK (bytes >= 1),
    sha256         BLOB    NOT NULL CHECK (length(sha256) = 32),
    first_key      TEXT    NOT NULL,
    last_key       TEXT    NOT NULL,
    written_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Entries that can expire, oldest first.
CREATE INDEX ledger_done ON ledger (updated_at, tenant, key) WHERE status = 'done';

-- Whether there are any: jobs look for entries of their own only then.
CREATE INDEX archived_entries_own ON archived_entries (tenant) WHERE of_job IS NULL;
