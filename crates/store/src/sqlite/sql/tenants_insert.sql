INSERT INTO tenants (name, created_at)
VALUES (?1, ?2)
