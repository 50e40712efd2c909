SELECT fanouts.seq, fanouts.tenant, fanouts.message, fanouts.due_at, fanouts.made, fanouts.targets,
       (SELECT accepted_at FROM messages WHERE messages.tenant = fanouts.tenant AND messages.id = fanouts.message)
FROM fanouts INDEXED BY fanouts_free
WHERE fanouts.seq > ?1 AND fanouts.held_by IS NULL
ORDER BY fanouts.seq
LIMIT 1
