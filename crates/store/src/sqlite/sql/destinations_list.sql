SELECT tenant, id, kind, lane, config, managed_by, enabled, owner, created_at, updated_at
FROM destinations
ORDER BY tenant, id
