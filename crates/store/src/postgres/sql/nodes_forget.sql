DELETE FROM nodes WHERE seen_at < $1
