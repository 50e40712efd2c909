SELECT fanouts.seq, fanouts.tenant, fanouts.message, fanouts.due_at, fanouts.made, fanouts.targets,
       (SELECT accepted_at FROM messages WHERE messages.tenant = fanouts.tenant AND messages.id = fanouts.message)
FROM fanouts INDEXED BY fanouts_held
WHERE fanouts.tenant = ?2 AND fanouts.held_by = ?3 AND fanouts.seq > ?1
ORDER BY fanouts.seq
LIMIT 1
