-- What a lane may do stands in its row: see posthaste_core::lane.

ALTER TABLE lanes ADD COLUMN paused_by TEXT;
ALTER TABLE lanes ADD COLUMN disabled_at INTEGER;
ALTER TABLE lanes ADD COLUMN disabled_reason TEXT;
ALTER TABLE lanes ADD COLUMN disabled_by TEXT;
ALTER TABLE lanes ADD COLUMN switched_off INTEGER NOT NULL DEFAULT 0 CHECK (switched_off IN (0, 1));
ALTER TABLE lanes ADD COLUMN circuit_since INTEGER;
ALTER TABLE lanes ADD COLUMN circuit_until INTEGER;
ALTER TABLE lanes ADD COLUMN circuit_probe BLOB CHECK (length(circuit_probe) = 16);
ALTER TABLE lanes ADD COLUMN failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0);
ALTER TABLE lanes ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0 CHECK (refusals >= 0);
ALTER TABLE lanes ADD COLUMN failing_since INTEGER;
ALTER TABLE lanes ADD COLUMN trips INTEGER NOT NULL DEFAULT 0 CHECK (trips >= 0);
ALTER TABLE lanes ADD COLUMN held_since INTEGER;
ALTER TABLE lanes ADD COLUMN rate_used_us INTEGER NOT NULL DEFAULT 0;

-- Destinations that take no part are held since they were changed last.
UPDATE lanes
SET switched_off = 1,
    held_since = (SELECT updated_at FROM destinations AS d
                  WHERE d.tenant = lanes.tenant AND d.id = lanes.destination)
WHERE EXISTS (SELECT 1 FROM destinations AS d
              WHERE d.tenant = lanes.tenant AND d.id = lanes.destination AND d.enabled = 0);

-- Whether a tenant's new work may begin.
CREATE TABLE scheduling (
    tenant         INTEGER NOT NULL PRIMARY KEY CHECK (tenant >= 1),
    paused_at      INTEGER,
    paused_reason  TEXT,
    paused_by      TEXT,
    held_ms        INTEGER NOT NULL DEFAULT 0 CHECK (held_ms >= 0)
) STRICT;

-- What befell a lane, or with lane 0 a tenant's scheduling: custody that is nobody's job alone.
CREATE TABLE lane_events (
    seq            INTEGER NOT NULL PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    lane           INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 4294967295),
    at             INTEGER NOT NULL,
    event          TEXT    NOT NULL CHECK (event IN ('paused', 'resumed', 'disabled', 'enabled', 'opened', 'closed')),
    actor          TEXT    NOT NULL,
    reason         TEXT    NOT NULL
) STRICT;

CREATE INDEX lane_events_of ON lane_events (tenant, lane);

-- A fan-out of a source that was paused when the message came: its jobs are made when the source goes on.
ALTER TABLE fanouts ADD COLUMN held_by INTEGER;

CREATE INDEX fanouts_free ON fanouts (seq) WHERE held_by IS NULL;

CREATE INDEX fanouts_held ON fanouts (tenant, held_by) WHERE held_by IS NOT NULL;
