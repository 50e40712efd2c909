-- The receiver's ledger, for those who ask for it over HTTP, and for keys of jobs that somebody else claimed or reset.
-- What the columns mean stands in posthaste_core::ledger.

CREATE TABLE ledger (
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
    PRIMARY KEY (tenant, key),
    CHECK ((status = 'done') = (outcome IS NOT NULL)),
    CHECK ((reset_at IS NULL) = (reset_reason IS NULL))
) STRICT, WITHOUT ROWID;

-- The fence of a key without a row: above every fence of every row that was taken away, so that none comes twice.
CREATE TABLE ledger_fences (
    singleton      INTEGER NOT NULL PRIMARY KEY CHECK (singleton = 1),
    first_fence    INTEGER NOT NULL CHECK (first_fence >= 1)
) STRICT;

INSERT INTO ledger_fences (singleton, first_fence) VALUES (1, 1);
