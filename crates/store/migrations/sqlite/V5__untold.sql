-- Dead letters that nobody was told of yet. The reasons are in docs/adr/0006-recovery-intake.md.

CREATE TABLE untold (
    tenant         INTEGER NOT NULL,
    job            BLOB    NOT NULL CHECK (length(job) = 16),
    at             INTEGER NOT NULL,
    attempt        INTEGER NOT NULL CHECK (attempt BETWEEN 0 AND 4294967295),
    cause          TEXT    NOT NULL CHECK (cause = 'exhausted' OR cause = 'permanent' OR cause = 'invalid_payload'
                                           OR cause = 'missing_key' OR cause = 'key_reused'
                                           OR cause = 'outcome_unknown' OR cause = 'endpoint_gone'
                                           OR cause = 'lease_lost'),
    PRIMARY KEY (tenant, job, at)
) STRICT, WITHOUT ROWID;
