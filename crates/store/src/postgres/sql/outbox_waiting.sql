SELECT id, tenant, message::text FROM outbox WHERE problem IS NULL ORDER BY id LIMIT $1
