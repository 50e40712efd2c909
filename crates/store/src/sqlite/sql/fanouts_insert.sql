INSERT INTO fanouts (seq, tenant, message, due_at, targets, held_by)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
