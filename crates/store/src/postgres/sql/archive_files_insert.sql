INSERT INTO archive_files (file, records, bytes, sha256, first_key, last_key, written_at)
SELECT n.file, n.records, n.bytes, n.sha256, n.first_key, n.last_key, n.written_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::text[], $7::bigint[])
    AS n (file, records, bytes, sha256, first_key, last_key, written_at)
ON CONFLICT DO NOTHING
