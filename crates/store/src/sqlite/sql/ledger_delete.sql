DELETE FROM ledger
WHERE tenant = ?1 AND key = ?2
