SELECT name, version, started_at, seen_at, skew_ms FROM nodes ORDER BY name
