-- The reasons are in docs/adr/0001-schema.md. Times are Unix milliseconds, UTC. Ids are 16 bytes, UUIDv7.
--
-- Words are compared one by one: for `IN` with three or more, SQLite builds a table at each write (measured: a third of
-- its time).

CREATE TABLE meta (
    singleton      INTEGER NOT NULL PRIMARY KEY CHECK (singleton = 1),
    epoch          INTEGER NOT NULL CHECK (epoch >= 1),
    created_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE tenants (
    tenant         INTEGER NOT NULL PRIMARY KEY CHECK (tenant >= 1),
    name           TEXT    NOT NULL UNIQUE,
    created_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE lanes (
    tenant         INTEGER NOT NULL,
    lane           INTEGER NOT NULL CHECK (lane BETWEEN 1 AND 4294967295),
    destination    TEXT    NOT NULL,
    not_before     INTEGER NOT NULL DEFAULT 0,
    paused_at      INTEGER,
    paused_reason  TEXT,
    held_ms        INTEGER NOT NULL DEFAULT 0 CHECK (held_ms >= 0),
    PRIMARY KEY (tenant, lane),
    UNIQUE (tenant, destination)
) STRICT, WITHOUT ROWID;

CREATE TABLE destinations (
    tenant         INTEGER NOT NULL,
    id             TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind = 'endpoint' OR kind = 'queue' OR kind = 'source'),
    lane           INTEGER NOT NULL,
    config         TEXT    NOT NULL,
    managed_by     TEXT    NOT NULL CHECK (managed_by IN ('file', 'api')),
    enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    owner          TEXT,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    tenant         INTEGER NOT NULL,
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    name           TEXT    NOT NULL,
    secret_hash    BLOB    NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    scopes         TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    revoked_at     INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    tenant         INTEGER NOT NULL,
    key            TEXT    NOT NULL CHECK (length(key) >= 1),
    kind           TEXT    NOT NULL CHECK (kind = 'key' OR kind = 'provider' OR kind = 'delivery' OR kind = 'alias'),
    message        BLOB    NOT NULL CHECK (length(message) = 16),
    duplicates     INTEGER NOT NULL DEFAULT 0 CHECK (duplicates >= 0),
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

-- Names as they come, until they go into `keys` in the order of that tree. The writer knows which names are here.
CREATE TABLE keys_new (
    seq            INTEGER NOT NULL PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    key            TEXT    NOT NULL CHECK (length(key) >= 1),
    kind           TEXT    NOT NULL CHECK (kind = 'key'),
    message        BLOB    NOT NULL CHECK (length(message) = 16),
    duplicates     INTEGER NOT NULL DEFAULT 0 CHECK (duplicates >= 0)
) STRICT;

CREATE INDEX keys_other ON keys (tenant, message) WHERE kind <> 'key';

CREATE TABLE messages (
    seq            INTEGER NOT NULL PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    key            TEXT    NOT NULL,
    type           TEXT,
    source         TEXT,
    accepted_at    INTEGER NOT NULL,
    jobs_total     INTEGER NOT NULL CHECK (jobs_total >= 0),
    fingerprint    BLOB    NOT NULL CHECK (length(fingerprint) = 80),
    correlation_id TEXT    NOT NULL,
    traceparent    TEXT,
    content_type   TEXT,
    headers        TEXT,
    metadata       TEXT,
    payload_ref    TEXT,
    payload        BLOB    NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

-- `seq` is the message's: the oldest is first. `targets` comes last, so that moving `made` on leaves it where it is.
CREATE TABLE fanouts (
    seq            INTEGER NOT NULL PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    message        BLOB    NOT NULL CHECK (length(message) = 16),
    due_at         INTEGER NOT NULL,
    made           INTEGER NOT NULL DEFAULT 0 CHECK (made >= 0),
    targets        BLOB    NOT NULL,
    UNIQUE (tenant, message)
) STRICT;

CREATE TABLE jobs (
    tenant         INTEGER NOT NULL,
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    lane           INTEGER NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('push', 'pull')),
    state          TEXT    NOT NULL CHECK (state = 'scheduled' OR state = 'leased' OR state = 'retryable'),
    share          TEXT    NOT NULL CHECK (share = 'fresh' OR share = 'retry' OR share = 'bulk'),
    due_at         INTEGER,
    next_step      TEXT    CHECK (next_step IN ('attempt', 'look_up')),
    attempt        INTEGER NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),
    failed_before  INTEGER NOT NULL CHECK (failed_before IN (0, 1)),
    created_at     INTEGER NOT NULL,
    scheduled_at   INTEGER NOT NULL,
    started_at     INTEGER,
    failures       INTEGER NOT NULL CHECK (failures >= 0),
    lost_leases    INTEGER NOT NULL CHECK (lost_leases >= 0),
    uncharged      INTEGER NOT NULL CHECK (uncharged >= 0),
    budget_since   INTEGER NOT NULL,
    budget_held_ms INTEGER NOT NULL CHECK (budget_held_ms >= 0),
    reason         TEXT,
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    abandon        TEXT    CHECK (abandon = 'exhausted' OR abandon = 'permanent' OR abandon = 'invalid_payload'
                                  OR abandon = 'missing_key' OR abandon = 'key_reused'
                                  OR abandon = 'outcome_unknown' OR abandon = 'endpoint_gone'
                                  OR abandon = 'lease_lost'),
    commit_heard   INTEGER NOT NULL CHECK (commit_heard BETWEEN 0 AND attempt),
    evidence_floor INTEGER NOT NULL CHECK (evidence_floor BETWEEN 0 AND attempt),
    checkpoint     BLOB,
    wire_id        TEXT,
    owner          TEXT,
    worker         TEXT,
    lease_due_at   INTEGER,
    leased_at      INTEGER,
    lease_started_at INTEGER,
    expires_at     INTEGER,
    deadline_at    INTEGER,
    PRIMARY KEY (tenant, id),
    CHECK (failures + lost_leases <= attempt),
    CHECK ((state = 'leased') = (due_at IS NULL)),
    CHECK ((state = 'retryable') = (next_step IS NOT NULL)),
    CHECK (state <> 'leased' OR attempt >= 1),
    CHECK (CASE state
           WHEN 'leased' THEN worker IS NOT NULL AND lease_due_at IS NOT NULL AND leased_at IS NOT NULL
                              AND expires_at IS NOT NULL AND deadline_at IS NOT NULL
           ELSE worker IS NULL AND lease_due_at IS NULL AND leased_at IS NULL AND lease_started_at IS NULL
                AND expires_at IS NULL AND deadline_at IS NULL
           END),
    CHECK (expires_at <= deadline_at)
) STRICT, WITHOUT ROWID;

-- What waits for an attempt: a million look-ups that are owed must not stand in the way of one.
CREATE INDEX jobs_due ON jobs (tenant, lane, share, due_at) WHERE due_at IS NOT NULL AND next_step IS NOT 'look_up';

-- Leases by their end.
CREATE INDEX jobs_leased ON jobs (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE jobs_done (
    tenant         INTEGER NOT NULL,
    id             BLOB    NOT NULL CHECK (length(id) = 16),
    lane           INTEGER NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind IN ('push', 'pull')),
    state          TEXT    NOT NULL CHECK (state = 'committed' OR state = 'dead_lettered' OR state = 'cancelled'),
    share          TEXT    NOT NULL CHECK (share = 'fresh' OR share = 'retry' OR share = 'bulk'),
    settled_at     INTEGER NOT NULL,
    cause          TEXT    CHECK (cause = 'exhausted' OR cause = 'permanent' OR cause = 'invalid_payload'
                                  OR cause = 'missing_key' OR cause = 'key_reused' OR cause = 'outcome_unknown'
                                  OR cause = 'endpoint_gone' OR cause = 'lease_lost'),
    evidence       TEXT    CHECK (evidence = 'answered' OR evidence = 'ledger' OR evidence = 'worker'
                                  OR evidence = 'reconciled'),
    attempt        INTEGER NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),
    failed_before  INTEGER NOT NULL CHECK (failed_before IN (0, 1)),
    created_at     INTEGER NOT NULL,
    scheduled_at   INTEGER NOT NULL,
    started_at     INTEGER,
    failures       INTEGER NOT NULL CHECK (failures >= 0),
    lost_leases    INTEGER NOT NULL CHECK (lost_leases >= 0),
    uncharged      INTEGER NOT NULL CHECK (uncharged >= 0),
    budget_since   INTEGER NOT NULL,
    budget_held_ms INTEGER NOT NULL CHECK (budget_held_ms >= 0),
    reason         TEXT,
    cancel_requested INTEGER NOT NULL CHECK (cancel_requested IN (0, 1)),
    abandon        TEXT    CHECK (abandon = 'exhausted' OR abandon = 'permanent' OR abandon = 'invalid_payload'
                                  OR abandon = 'missing_key' OR abandon = 'key_reused'
                                  OR abandon = 'outcome_unknown' OR abandon = 'endpoint_gone'
                                  OR abandon = 'lease_lost'),
    commit_heard   INTEGER NOT NULL CHECK (commit_heard BETWEEN 0 AND attempt),
    evidence_floor INTEGER NOT NULL CHECK (evidence_floor BETWEEN 0 AND attempt),
    checkpoint     BLOB,
    wire_id        TEXT,
    owner          TEXT,
    PRIMARY KEY (tenant, id),
    CHECK (failures + lost_leases <= attempt),
    CHECK ((state = 'dead_lettered') = (cause IS NOT NULL)),
    CHECK ((state = 'committed') = (evidence IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_done_dead ON jobs_done (tenant, id) WHERE state = 'dead_lettered';

CREATE TABLE attempts (
    tenant         INTEGER NOT NULL,
    job            BLOB    NOT NULL CHECK (length(job) = 16),
    attempt        INTEGER NOT NULL CHECK (attempt BETWEEN 1 AND 4294967295),
    kind           TEXT    NOT NULL CHECK (kind IN ('push', 'pull')),
    path           TEXT    NOT NULL CHECK (path IN ('first_run', 'retry_after_failure')),
    worker         TEXT    NOT NULL,
    due_at         INTEGER NOT NULL,
    leased_at      INTEGER NOT NULL,
    started_at     INTEGER,
    finished_at    INTEGER NOT NULL,
    outcome        TEXT    NOT NULL CHECK (outcome = 'committed' OR outcome = 'duplicate' OR outcome = 'cancelled'
                                           OR outcome = 'failed' OR outcome = 'released'
                                           OR outcome = 'lease_lost'),
    class          TEXT,
    effect         TEXT    NOT NULL CHECK (effect = 'none' OR effect = 'possible' OR effect = 'reported'
                                           OR effect = 'confirmed'),
    wish           TEXT    CHECK (wish = 'yes' OR wish = 'no' OR wish = 'auto'),
    reported       INTEGER NOT NULL CHECK (reported IN (0, 1)),
    state          TEXT    NOT NULL,
    next_at        INTEGER,
    policy         TEXT    NOT NULL,
    status         INTEGER,
    duration_ms    INTEGER,
    code           TEXT,
    message        TEXT,
    excerpt        BLOB,
    result         BLOB,
    commit_heard_at INTEGER,
    late_at        INTEGER,
    late_outcome   TEXT    CHECK (late_outcome = 'committed' OR late_outcome = 'duplicate'
                                  OR late_outcome = 'cancelled' OR late_outcome = 'failed'),
    late_class     TEXT,
    late_effect    TEXT    CHECK (late_effect = 'none' OR late_effect = 'possible' OR late_effect = 'reported'
                                  OR late_effect = 'confirmed'),
    late_wish      TEXT    CHECK (late_wish = 'yes' OR late_wish = 'no' OR late_wish = 'auto'),
    late_state     TEXT,
    late_next_at   INTEGER,
    late_accepted  INTEGER CHECK (late_accepted IN (0, 1)),
    late_details   TEXT,
    PRIMARY KEY (tenant, job, attempt),
    CHECK ((late_at IS NULL) = (late_outcome IS NULL)),
    CHECK ((late_at IS NULL) = (late_effect IS NULL)),
    CHECK ((late_at IS NULL) = (late_state IS NULL)),
    CHECK ((late_at IS NULL) = (late_accepted IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE custody (
    seq            INTEGER NOT NULL PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    message        BLOB    NOT NULL CHECK (length(message) = 16),
    job            BLOB    CHECK (length(job) = 16),
    at             INTEGER NOT NULL,
    stage          TEXT    NOT NULL,
    attempt        INTEGER,
    actor          TEXT,
    detail         TEXT
) STRICT;

CREATE INDEX custody_message ON custody (tenant, message);

CREATE TABLE job_counts (
    tenant         INTEGER NOT NULL,
    state          TEXT    NOT NULL CHECK (state = 'scheduled' OR state = 'leased' OR state = 'retryable'
                                           OR state = 'committed' OR state = 'dead_lettered'
                                           OR state = 'cancelled'),
    jobs           INTEGER NOT NULL CHECK (jobs >= 0),
    PRIMARY KEY (tenant, state)
) STRICT, WITHOUT ROWID;
