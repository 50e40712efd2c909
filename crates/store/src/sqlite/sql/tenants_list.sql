SELECT tenant, name
FROM tenants
ORDER BY tenant
