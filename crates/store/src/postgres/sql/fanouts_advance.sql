UPDATE fanouts AS w
SET made = n.made
FROM unnest($1::bigint[], $2::bigint[])
    AS n (seq, made)
WHERE w.seq = n.seq
