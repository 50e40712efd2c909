-- Whether anybody uses it: if not, no job looks for an entry.
SELECT 1
FROM ledger
LIMIT 1
