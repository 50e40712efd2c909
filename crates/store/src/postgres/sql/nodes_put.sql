INSERT INTO nodes (name, version, started_at, seen_at, skew_ms)
VALUES ($1, $2, $3, $3, $4)
ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at, skew_ms = excluded.skew_ms
