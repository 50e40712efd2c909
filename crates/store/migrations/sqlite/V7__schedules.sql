-- What fires when. `next_fire_at` is moved on by whoever finds it as expected, so that a firing is taken once. The reasons
-- are in docs/adr/0006-recovery-schedules.md.

CREATE TABLE schedules (
    tenant         INTEGER NOT NULL,
    id             TEXT    NOT NULL CHECK (length(id) BETWEEN 1 AND 64),
    config         TEXT    NOT NULL,
    managed_by     TEXT    NOT NULL CHECK (managed_by = 'file' OR managed_by = 'api'),
    enabled        INTEGER NOT NULL CHECK (enabled = 0 OR enabled = 1),
    owner          TEXT,
    next_fire_at   INTEGER,
    last_fired_at  INTEGER,
    paused_at      INTEGER,
    paused_by      TEXT,
    paused_reason  TEXT,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id),
    CHECK ((paused_at IS NULL) = (paused_reason IS NULL)),
    CHECK ((paused_at IS NULL) = (paused_by IS NULL))
) STRICT, WITHOUT ROWID;
