INSERT INTO destinations (tenant, id, kind, lane, config, managed_by, enabled, owner, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (tenant, id) DO UPDATE
SET config = excluded.config, managed_by = excluded.managed_by, enabled = excluded.enabled, owner = excluded.owner,
    updated_at = excluded.updated_at
