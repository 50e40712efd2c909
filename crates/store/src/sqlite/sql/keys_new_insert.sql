INSERT INTO keys_new (tenant, key, kind, message)
VALUES (?1, ?2, ?3, ?4)
