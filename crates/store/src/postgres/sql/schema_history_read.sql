SELECT version, checksum
FROM schema_history
ORDER BY version
