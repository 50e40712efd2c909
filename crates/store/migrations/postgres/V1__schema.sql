-- The reasons are in docs/adr/0007-postgres.md. Times are Unix milliseconds, UTC. Ids are UUIDs of version 7 and what is
-- derived from them. Texts are ordered by their bytes. A text that has a NUL, which PostgreSQL can't keep, is kept with
-- U+E000 followed by 0 in its place, and U+E000 followed by 1 for U+E000 itself.

CREATE TABLE meta (
    singleton      bigint NOT NULL PRIMARY KEY CHECK (singleton = 1),
    epoch          bigint NOT NULL CHECK (epoch >= 1),
    created_at     bigint NOT NULL
);

CREATE TABLE tenants (
    tenant         bigint NOT NULL PRIMARY KEY CHECK (tenant >= 1),
    name           text   COLLATE "C" NOT NULL UNIQUE,
    created_at     bigint NOT NULL
);

-- The lane's row is the lock of its jobs: whoever writes one of them has locked it. So its indexed columns never change.
CREATE TABLE lanes (
    tenant         bigint NOT NULL,
    lane           bigint NOT NULL CHECK (lane BETWEEN 1 AND 4294967295),
    destination    text   COLLATE "C" NOT NULL,
    not_before     bigint NOT NULL DEFAULT 0,
    paused_at      bigint,
    paused_reason  text,
    paused_by      text,
    disabled_at    bigint,
    disabled_reason text,
    disabled_by    text,
    switched_off   bigint NOT NULL DEFAULT 0 CHECK (switched_off IN (0, 1)),
    circuit_since  bigint,
    circuit_until  bigint,
    circuit_probe  uuid,
    failures       bigint NOT NULL DEFAULT 0 CHECK (failures >= 0),
    refusals       bigint NOT NULL DEFAULT 0 CHECK (refusals >= 0),
    failing_since  bigint,
    trips          bigint NOT NULL DEFAULT 0 CHECK (trips >= 0),
    held_ms        bigint NOT NULL DEFAULT 0 CHECK (held_ms >= 0),
    held_since     bigint,
    rate_used_us   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, lane),
    UNIQUE (tenant, destination)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE scheduling (
    tenant         bigint NOT NULL PRIMARY KEY CHECK (tenant >= 1),
    paused_at      bigint,
    paused_reason  text,
    paused_by      text,
    held_ms        bigint NOT NULL DEFAULT 0 CHECK (held_ms >= 0)
);

-- What befell a lane, or with lane 0 a tenant's scheduling.
CREATE TABLE lane_events (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         bigint NOT NULL,
    lane           bigint NOT NULL CHECK (lane BETWEEN 0 AND 4294967295),
    at             bigint NOT NULL,
    event          text   NOT NULL CHECK (event IN ('paused', 'resumed', 'disabled', 'enabled', 'opened', 'closed')),
    actor          text   NOT NULL,
    reason         text   NOT NULL
);

CREATE INDEX lane_events_of ON lane_events (tenant, lane, seq);

CREATE TABLE destinations (
    tenant         bigint NOT NULL,
    id             text   COLLATE "C" NOT NULL,
    kind           text   NOT NULL CHECK (kind IN ('endpoint', 'queue', 'source')),
    lane           bigint NOT NULL,
    config         text   NOT NULL,
    managed_by     text   NOT NULL CHECK (managed_by IN ('file', 'api')),
    enabled        bigint NOT NULL CHECK (enabled IN (0, 1)),
    owner          text,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE api_keys (
    tenant         bigint NOT NULL,
    id             uuid   NOT NULL,
    name           text   NOT NULL,
    secret_hash    bytea  NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    scopes         text   NOT NULL,
    created_at     bigint NOT NULL,
    revoked_at     bigint,
    PRIMARY KEY (tenant, id)
);

-- Not partitioned: a table that is partitioned by time can't have a unique key without the time. `duplicates` counts on the
-- row of the business key.
CREATE TABLE keys (
    tenant         bigint NOT NULL,
    key            text   COLLATE "C" NOT NULL CHECK (length(key) >= 1),
    kind           text   NOT NULL CHECK (kind IN ('key', 'provider', 'delivery', 'alias')),
    message        uuid   NOT NULL,
    duplicates     bigint NOT NULL DEFAULT 0 CHECK (duplicates >= 0),
    PRIMARY KEY (tenant, key)
);

CREATE INDEX keys_other ON keys (tenant, message) WHERE kind <> 'key';

-- The order of acceptance.
CREATE SEQUENCE acceptances;

CREATE TABLE messages (
    tenant         bigint NOT NULL,
    id             uuid   NOT NULL,
    seq            bigint NOT NULL UNIQUE,
    key            text   COLLATE "C" NOT NULL,
    type           text,
    source         text,
    accepted_at    bigint NOT NULL,
    jobs_total     bigint NOT NULL CHECK (jobs_total >= 0),
    fingerprint    bytea  NOT NULL CHECK (octet_length(fingerprint) = 80),
    correlation_id text   NOT NULL,
    traceparent    text,
    content_type   text,
    headers        text,
    metadata       text,
    payload_ref    text,
    payload        bytea  NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE fanouts (
    seq            bigint NOT NULL PRIMARY KEY,
    tenant         bigint NOT NULL,
    message        uuid   NOT NULL,
    due_at         bigint NOT NULL,
    made           bigint NOT NULL DEFAULT 0 CHECK (made >= 0),
    targets        bytea  NOT NULL,
    held_by        bigint,
    UNIQUE (tenant, message)
);

CREATE INDEX fanouts_free ON fanouts (seq) WHERE held_by IS NULL;

CREATE INDEX fanouts_held ON fanouts (tenant, held_by, seq) WHERE held_by IS NOT NULL;

-- What lives. Leases stand apart, so that a heartbeat doesn't touch an index of this table.
CREATE TABLE jobs (
    tenant         bigint NOT NULL,
    id             uuid   NOT NULL,
    lane           bigint NOT NULL,
    kind           text   NOT NULL CHECK (kind IN ('push', 'pull')),
    state          text   NOT NULL CHECK (state IN ('scheduled', 'leased', 'retryable')),
    share          text   NOT NULL CHECK (share IN ('fresh', 'retry', 'bulk')),
    due_at         bigint,
    next_step      text   CHECK (next_step IN ('attempt', 'look_up')),
    attempt        bigint NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),
    failed_before  bigint NOT NULL CHECK (failed_before IN (0, 1)),
    created_at     bigint NOT NULL,
    scheduled_at   bigint NOT NULL,
    started_at     bigint,
    failures       bigint NOT NULL CHECK (failures >= 0),
    lost_leases    bigint NOT NULL CHECK (lost_leases >= 0),
    uncharged      bigint NOT NULL CHECK (uncharged >= 0),
    budget_since   bigint NOT NULL,
    budget_held_ms bigint NOT NULL CHECK (budget_held_ms >= 0),
    reason         text,
    cancel_requested bigint NOT NULL CHECK (cancel_requested IN (0, 1)),
    abandon        text   CHECK (abandon IN ('exhausted', 'permanent', 'invalid_payload', 'missing_key', 'key_reused',
                                             'outcome_unknown', 'endpoint_gone', 'lease_lost')),
    commit_heard   bigint NOT NULL CHECK (commit_heard BETWEEN 0 AND attempt),
    evidence_floor bigint NOT NULL CHECK (evidence_floor BETWEEN 0 AND attempt),
    checkpoint     bytea,
    wire_id        text,
    owner          text,
    PRIMARY KEY (tenant, id),
    CHECK (failures + lost_leases <= attempt),
    CHECK ((state = 'leased') = (due_at IS NULL)),
    CHECK ((state = 'retryable') = (next_step IS NOT NULL)),
    CHECK (state <> 'leased' OR attempt >= 1)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.05);

CREATE INDEX jobs_due ON jobs (tenant, lane, share, due_at, id)
    WHERE due_at IS NOT NULL AND next_step IS DISTINCT FROM 'look_up';

CREATE INDEX jobs_look_ups ON jobs (tenant, lane, due_at, id) WHERE next_step = 'look_up';

CREATE INDEX jobs_retryable ON jobs (tenant, id) WHERE state = 'retryable';

-- Exactly the leased jobs have one.
CREATE TABLE leases (
    tenant         bigint NOT NULL,
    job            uuid   NOT NULL,
    worker         text   NOT NULL,
    due_at         bigint NOT NULL,
    leased_at      bigint NOT NULL,
    started_at     bigint,
    expires_at     bigint NOT NULL,
    deadline_at    bigint NOT NULL,
    PRIMARY KEY (tenant, job),
    CHECK (expires_at <= deadline_at)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

CREATE INDEX leases_end ON leases (expires_at, tenant, job);

CREATE TABLE jobs_done (
    tenant         bigint NOT NULL,
    id             uuid   NOT NULL,
    lane           bigint NOT NULL,
    kind           text   NOT NULL CHECK (kind IN ('push', 'pull')),
    state          text   NOT NULL CHECK (state IN ('committed', 'dead_lettered', 'cancelled')),
    share          text   NOT NULL CHECK (share IN ('fresh', 'retry', 'bulk')),
    settled_at     bigint NOT NULL,
    cause          text   CHECK (cause IN ('exhausted', 'permanent', 'invalid_payload', 'missing_key', 'key_reused',
                                           'outcome_unknown', 'endpoint_gone', 'lease_lost')),
    evidence       text   CHECK (evidence IN ('answered', 'ledger', 'worker', 'reconciled')),
    attempt        bigint NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),
    failed_before  bigint NOT NULL CHECK (failed_before IN (0, 1)),
    created_at     bigint NOT NULL,
    scheduled_at   bigint NOT NULL,
    started_at     bigint,
    failures       bigint NOT NULL CHECK (failures >= 0),
    lost_leases    bigint NOT NULL CHECK (lost_leases >= 0),
    uncharged      bigint NOT NULL CHECK (uncharged >= 0),
    budget_since   bigint NOT NULL,
    budget_held_ms bigint NOT NULL CHECK (budget_held_ms >= 0),
    reason         text,
    cancel_requested bigint NOT NULL CHECK (cancel_requested IN (0, 1)),
    abandon        text   CHECK (abandon IN ('exhausted', 'permanent', 'invalid_payload', 'missing_key', 'key_reused',
                                             'outcome_unknown', 'endpoint_gone', 'lease_lost')),
    commit_heard   bigint NOT NULL CHECK (commit_heard BETWEEN 0 AND attempt),
    evidence_floor bigint NOT NULL CHECK (evidence_floor BETWEEN 0 AND attempt),
    checkpoint     bytea,
    wire_id        text,
    owner          text,
    PRIMARY KEY (tenant, id),
    CHECK (failures + lost_leases <= attempt),
    CHECK ((state = 'dead_lettered') = (cause IS NOT NULL)),
    CHECK ((state = 'committed') = (evidence IS NOT NULL))
);

CREATE INDEX jobs_done_dead ON jobs_done (tenant, id) WHERE state = 'dead_lettered';

CREATE TABLE attempts (
    tenant         bigint NOT NULL,
    job            uuid   NOT NULL,
    attempt        bigint NOT NULL CHECK (attempt BETWEEN 1 AND 4294967295),
    kind           text   NOT NULL CHECK (kind IN ('push', 'pull')),
    path           text   NOT NULL CHECK (path IN ('first_run', 'retry_after_failure')),
    worker         text   NOT NULL,
    due_at         bigint NOT NULL,
    leased_at      bigint NOT NULL,
    started_at     bigint,
    finished_at    bigint NOT NULL,
    outcome        text   NOT NULL CHECK (outcome IN ('committed', 'duplicate', 'cancelled', 'failed', 'released',
                                                      'lease_lost')),
    class          text,
    effect         text   NOT NULL CHECK (effect IN ('none', 'possible', 'reported', 'confirmed')),
    wish           text   CHECK (wish IN ('yes', 'no', 'auto')),
    reported       bigint NOT NULL CHECK (reported IN (0, 1)),
    state          text   NOT NULL,
    next_at        bigint,
    policy         text   NOT NULL,
    status         bigint,
    duration_ms    bigint,
    code           text,
    message        text,
    excerpt        bytea,
    result         bytea,
    commit_heard_at bigint,
    late_at        bigint,
    late_outcome   text   CHECK (late_outcome IN ('committed', 'duplicate', 'cancelled', 'failed')),
    late_class     text,
    late_effect    text   CHECK (late_effect IN ('none', 'possible', 'reported', 'confirmed')),
    late_wish      text   CHECK (late_wish IN ('yes', 'no', 'auto')),
    late_state     text,
    late_next_at   bigint,
    late_accepted  bigint CHECK (late_accepted IN (0, 1)),
    late_details   text,
    PRIMARY KEY (tenant, job, attempt),
    CHECK ((late_at IS NULL) = (late_outcome IS NULL)),
    CHECK ((late_at IS NULL) = (late_effect IS NULL)),
    CHECK ((late_at IS NULL) = (late_state IS NULL)),
    CHECK ((late_at IS NULL) = (late_accepted IS NULL))
);

CREATE TABLE custody (
    seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         bigint NOT NULL,
    message        uuid   NOT NULL,
    job            uuid,
    at             bigint NOT NULL,
    stage          text   NOT NULL,
    attempt        bigint,
    actor          text,
    detail         text
);

CREATE INDEX custody_message ON custody (tenant, message, seq);

-- What is noted so many times only is counted.
CREATE INDEX custody_stale_reports ON custody (tenant, job) WHERE stage = 'stale_report';

CREATE INDEX custody_duplicates ON custody (tenant, message) WHERE stage = 'duplicate';

-- A shard for each connection that writes, so that nobody waits for another's commit; the sum counts.
CREATE TABLE job_counts (
    tenant         bigint NOT NULL,
    state          text   NOT NULL CHECK (state IN ('scheduled', 'leased', 'retryable', 'committed', 'dead_lettered',
                                                    'cancelled')),
    shard          bigint NOT NULL,
    jobs           bigint NOT NULL,
    PRIMARY KEY (tenant, state, shard)
) WITH (fillfactor = 50);

-- The shards of those who write, in turn.
CREATE SEQUENCE writers MINVALUE 0 START 0 MAXVALUE 15 CYCLE;

CREATE TABLE ledger (
    tenant         bigint NOT NULL,
    key            text   COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 642),
    status         text   NOT NULL CHECK (status IN ('in_progress', 'done', 'failed')),
    fence          bigint NOT NULL CHECK (fence >= 1),
    attempts       bigint NOT NULL CHECK (attempts >= 1),
    locked_until   bigint NOT NULL,
    fingerprint    bytea,
    claim_id       text,
    path           text   NOT NULL CHECK (path IN ('first_run', 'retry_after_failure')),
    previous       text   NOT NULL CHECK (previous IN ('none', 'failed', 'expired')),
    on_expired     text   NOT NULL CHECK (on_expired IN ('retake', 'hold')),
    outcome        text   CHECK (outcome IN ('committed', 'cancelled')),
    result_bytes   bytea,
    result_type    text,
    result_status  bigint CHECK (result_status BETWEEN 0 AND 65535),
    class          text,
    message        text,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    reset_at       bigint,
    reset_by       text,
    reset_reason   text,
    PRIMARY KEY (tenant, key),
    CHECK ((status = 'done') = (outcome IS NOT NULL)),
    CHECK ((reset_at IS NULL) = (reset_reason IS NULL))
);

-- Entries that can expire, oldest first.
CREATE INDEX ledger_done ON ledger (updated_at, tenant, key) WHERE status = 'done';

-- The fence of a key without a row: above every fence of every row that was taken away, so that none comes twice.
CREATE TABLE ledger_fences (
    singleton      bigint NOT NULL PRIMARY KEY CHECK (singleton = 1),
    first_fence    bigint NOT NULL CHECK (first_fence >= 1)
);

INSERT INTO ledger_fences (singleton, first_fence) VALUES (1, 1);

CREATE TABLE archived (
    tenant         bigint NOT NULL,
    message        uuid   NOT NULL,
    key            text   COLLATE "C" NOT NULL CHECK (length(key) >= 1),
    accepted_at    bigint NOT NULL,
    jobs_total     bigint NOT NULL CHECK (jobs_total >= 0),
    fingerprint    bytea  NOT NULL CHECK (octet_length(fingerprint) = 80),
    correlation_id text   NOT NULL,
    dead_lanes     bytea  CHECK (octet_length(dead_lanes) >= 4),
    archived_at    bigint NOT NULL,
    file           text   COLLATE "C" CHECK (length(file) >= 1),
    at_byte        bigint CHECK (at_byte >= 0),
    bytes          bigint CHECK (bytes >= 1),
    PRIMARY KEY (tenant, message),
    CHECK ((file IS NULL) = (at_byte IS NULL)),
    CHECK ((file IS NULL) = (bytes IS NULL))
);

CREATE INDEX archived_places ON archived (file, at_byte) WHERE file IS NOT NULL;

-- Entries of the ledger, and what a claim of an archived job's event id needs to be told: then `of_job` names the job.
CREATE TABLE archived_entries (
    tenant         bigint NOT NULL,
    key            text   COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 642),
    status         text   NOT NULL CHECK (status IN ('in_progress', 'done', 'failed')),
    fence          bigint NOT NULL CHECK (fence >= 1),
    attempts       bigint NOT NULL CHECK (attempts >= 1),
    locked_until   bigint NOT NULL,
    fingerprint    bytea,
    claim_id       text,
    path           text   NOT NULL CHECK (path IN ('first_run', 'retry_after_failure')),
    previous       text   NOT NULL CHECK (previous IN ('none', 'failed', 'expired')),
    on_expired     text   NOT NULL CHECK (on_expired IN ('retake', 'hold')),
    outcome        text   CHECK (outcome IN ('committed', 'cancelled')),
    result_bytes   bytea,
    result_type    text,
    result_status  bigint CHECK (result_status BETWEEN 0 AND 65535),
    class          text,
    message        text,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    reset_at       bigint,
    reset_by       text,
    reset_reason   text,
    of_job         uuid,
    result_elsewhere bigint NOT NULL CHECK (result_elsewhere IN (0, 1)),
    archived_at    bigint NOT NULL,
    file           text   COLLATE "C" CHECK (length(file) >= 1),
    at_byte        bigint CHECK (at_byte >= 0),
    bytes          bigint CHECK (bytes >= 1),
    PRIMARY KEY (tenant, key),
    CHECK ((status = 'done') = (outcome IS NOT NULL)),
    CHECK ((reset_at IS NULL) = (reset_reason IS NULL)),
    CHECK (result_elsewhere = 0 OR (result_bytes IS NULL AND file IS NOT NULL)),
    CHECK ((file IS NULL) = (at_byte IS NULL)),
    CHECK ((file IS NULL) = (bytes IS NULL))
);

CREATE INDEX archived_entries_places ON archived_entries (file, at_byte) WHERE file IS NOT NULL;

-- Whether there are any: jobs look for entries of their own only then.
CREATE INDEX archived_entries_own ON archived_entries (tenant) WHERE of_job IS NULL;

CREATE TABLE archive_files (
    file           text   COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(file) >= 1),
    records        bigint NOT NULL CHECK (records >= 1),
    bytes          bigint NOT NULL CHECK (bytes >= 1),
    sha256         bytea  NOT NULL CHECK (octet_length(sha256) = 32),
    first_key      text   NOT NULL,
    last_key       text   NOT NULL,
    written_at     bigint NOT NULL
);

-- Dead letters that nobody was told of yet.
CREATE TABLE untold (
    tenant         bigint NOT NULL,
    job            uuid   NOT NULL,
    at             bigint NOT NULL,
    attempt        bigint NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),
    cause          text   NOT NULL CHECK (cause IN ('exhausted', 'permanent', 'invalid_payload', 'missing_key',
                                                    'key_reused', 'outcome_unknown', 'endpoint_gone', 'lease_lost')),
    PRIMARY KEY (tenant, job, at)
);

CREATE TABLE bulk_runs (
    tenant         bigint NOT NULL,
    id             uuid   NOT NULL,
    kind           text   NOT NULL CHECK (kind IN ('replay', 'cancel')),
    state          text   NOT NULL CHECK (state IN ('running', 'paused', 'stopped', 'done', 'failed')),
    job_state      text,
    lane           bigint,
    destination    text,
    cause          text,
    class          text,
    key_prefix     text,
    type           text,
    created_since  bigint,
    created_until  bigint,
    dead_since     bigint,
    dead_until     bigint,
    reason         text   NOT NULL,
    assume_not_done bigint NOT NULL CHECK (assume_not_done IN (0, 1)),
    per_second     bigint NOT NULL CHECK (per_second >= 1),
    idempotency_key text,
    actor          text   NOT NULL,
    expected       bigint CHECK (expected >= 0),
    began_at       bigint NOT NULL,
    cursor         uuid,
    examined       bigint NOT NULL CHECK (examined >= 0),
    matched        bigint NOT NULL CHECK (matched BETWEEN 0 AND examined),
    done           bigint NOT NULL CHECK (done >= 0),
    requested      bigint NOT NULL CHECK (requested >= 0),
    settled        bigint NOT NULL CHECK (settled >= 0),
    skipped        bigint NOT NULL CHECK (skipped >= 0),
    refused        text   NOT NULL,
    refused_jobs   text   NOT NULL,
    problem        text,
    updated_at     bigint NOT NULL,
    finished_at    bigint,
    PRIMARY KEY (tenant, id),
    CHECK (done + requested + settled <= matched),
    CHECK ((lane IS NULL) = (destination IS NULL)),
    CHECK ((state = 'failed') = (problem IS NOT NULL)),
    CHECK ((state IN ('running', 'paused')) = (finished_at IS NULL))
);

CREATE UNIQUE INDEX bulk_runs_key ON bulk_runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE INDEX bulk_runs_live ON bulk_runs (tenant, id) WHERE finished_at IS NULL;

CREATE TABLE schedules (
    tenant         bigint NOT NULL,
    id             text   COLLATE "C" NOT NULL CHECK (length(id) BETWEEN 1 AND 64),
    config         text   NOT NULL,
    managed_by     text   NOT NULL CHECK (managed_by IN ('file', 'api')),
    enabled        bigint NOT NULL CHECK (enabled IN (0, 1)),
    owner          text,
    next_fire_at   bigint,
    last_fired_at  bigint,
    paused_at      bigint,
    paused_by      text,
    paused_reason  text,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    PRIMARY KEY (tenant, id),
    CHECK ((paused_at IS NULL) = (paused_reason IS NULL)),
    CHECK ((paused_at IS NULL) = (paused_by IS NULL))
);
