SELECT pg_advisory_xact_lock(hashtextextended('posthaste schema ' || $1, 7))::text
