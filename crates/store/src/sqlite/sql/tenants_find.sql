SELECT tenant
FROM tenants
WHERE name = ?1
