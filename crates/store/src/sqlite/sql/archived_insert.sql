INSERT INTO archived (tenant, message, key, accepted_at, jobs_total, fingerprint, correlation_id, dead_lanes, archived_at,
                      file, at_byte, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
