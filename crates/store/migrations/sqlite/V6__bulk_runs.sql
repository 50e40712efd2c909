-- An operator's order for many jobs: what was asked, how far it is, what it did. See docs/adr/0006-recovery-bulk.md.
-- `cursor` is the last job that was looked at; `refused` counts by code, `refused_jobs` names the first.

CREATE TABLE bulk_runs (
    tenant         INTEGER NOT NULL,
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    kind           TEXT    NOT NULL CHECK (kind = 'replay' OR kind = 'cancel'),
    state          TEXT    NOT NULL CHECK (state = 'running' OR state = 'paused' OR state = 'stopped'
                                           OR state = 'done' OR state = 'failed'),
    job_state      TEXT,
    lane           INTEGER,
    destination    TEXT,
    cause          TEXT,
    class          TEXT,
    key_prefix     TEXT,
    type           TEXT,
    created_since  INTEGER,
    created_until  INTEGER,
    dead_since     INTEGER,
    dead_until     INTEGER,
    reason         TEXT    NOT NULL,
    assume_not_done INTEGER NOT NULL CHECK (assume_not_done IN (0, 1)),
    per_second     INTEGER NOT NULL CHECK (per_second >= 1),
    idempotency_key TEXT,
    actor          TEXT    NOT NULL,
    expected       INTEGER CHECK (expected >= 0),
    began_at       INTEGER NOT NULL,
    cursor         BLOB    CHECK (length(cursor) = 16),
    examined       INTEGER NOT NULL CHECK (examined >= 0),
    matched        INTEGER NOT NULL CHECK (matched BETWEEN 0 AND examined),
    done           INTEGER NOT NULL CHECK (done >= 0),
    requested      INTEGER NOT NULL CHECK (requested >= 0),
    settled        INTEGER NOT NULL CHECK (settled >= 0),
    skipped        INTEGER NOT NULL CHECK (skipped >= 0),
    refused        TEXT    NOT NULL,
    refused_jobs   TEXT    NOT NULL,
    problem        TEXT,
    updated_at     INTEGER NOT NULL,
    finished_at    INTEGER,
    PRIMARY KEY (tenant, id),
    CHECK (done + requested + settled <= matched),
    CHECK ((lane IS NULL) = (destination IS NULL)),
    CHECK ((state = 'failed') = (problem IS NOT NULL)),
    CHECK ((state = 'running' OR state = 'paused') = (finished_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX bulk_runs_key ON bulk_runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- What runs or is paused.
CREATE INDEX bulk_runs_live ON bulk_runs (tenant, id) WHERE finished_at IS NULL;
