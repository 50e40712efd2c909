INSERT INTO schema_history (version, name, checksum, applied_at)
VALUES ($1, $2, $3, $4)
