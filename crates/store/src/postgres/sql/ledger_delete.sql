DELETE FROM ledger AS w
USING unnest($1::bigint[], $2::text[])
    AS n (tenant, key)
WHERE w.tenant = n.tenant AND w.key = n.key
