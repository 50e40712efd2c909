INSERT INTO archived (tenant, message, key, accepted_at, jobs_total, fingerprint, correlation_id, dead_lanes,
                      archived_at, file, at_byte, bytes)
SELECT n.tenant, n.message, n.key, n.accepted_at, n.jobs_total, n.fingerprint, n.correlation_id, n.dead_lanes,
       n.archived_at, n.file, n.at_byte, n.bytes
FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[], $7::text[], $8::bytea[],
            $9::bigint[], $10::text[], $11::bigint[], $12::bigint[])
    AS n (tenant, message, key, accepted_at, jobs_total, fingerprint, correlation_id, dead_lanes, archived_at, file,
          at_byte, bytes)
