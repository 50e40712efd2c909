INSERT INTO archive_files (file, records, bytes, sha256, first_key, last_key, written_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (file) DO NOTHING
