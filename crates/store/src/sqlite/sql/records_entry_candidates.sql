SELECT updated_at, tenant, key
FROM ledger INDEXED BY ledger_done
WHERE status = 'done' AND updated_at <= ?1 AND (updated_at, tenant, key) > (?2, ?3, ?4)
ORDER BY updated_at, tenant, key
LIMIT ?5
