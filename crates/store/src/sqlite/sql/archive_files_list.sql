SELECT file, records, bytes, sha256, first_key, last_key, written_at
FROM archive_files
WHERE file > ?1
ORDER BY file
LIMIT ?2
