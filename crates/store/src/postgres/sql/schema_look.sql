SELECT n.oid IS NOT NULL, count(c.oid), coalesce(bool_or(c.relname = 'schema_history'), false)
FROM (VALUES ($1)) AS wanted (schema)
LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = wanted.schema
LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid
GROUP BY n.oid
