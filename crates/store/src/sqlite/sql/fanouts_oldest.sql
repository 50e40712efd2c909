SELECT fanouts.seq, fanouts.tenant, fanouts.message, fanouts.due_at, fanouts.made, fanouts.targets,
       (SELECT accepted_at FROM messages WHERE messages.tenant = fanouts.tenant AND messages.id = fanouts.message)
FROM fanouts
WHERE fanouts.seq > ?1
ORDER BY fanouts.seq
LIMIT 1
