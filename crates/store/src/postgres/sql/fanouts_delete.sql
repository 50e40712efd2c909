DELETE FROM fanouts AS w
USING unnest($1::bigint[])
    AS n (seq)
WHERE w.seq = n.seq
