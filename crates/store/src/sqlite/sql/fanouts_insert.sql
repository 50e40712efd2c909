INSERT INTO fanouts (seq, tenant, message, due_at, targets)
VALUES (?1, ?2, ?3, ?4, ?5)
