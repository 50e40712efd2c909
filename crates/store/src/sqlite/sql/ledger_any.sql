-- Whether anybody uses it: if not, no job looks for an entry.
SELECT 1
WHERE EXISTS (SELECT 1 FROM ledger)
   OR EXISTS (SELECT 1 FROM archived_entries WHERE of_job IS NULL)
