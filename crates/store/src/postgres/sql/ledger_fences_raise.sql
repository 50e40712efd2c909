UPDATE ledger_fences
SET first_fence = GREATEST(first_fence, $1)
WHERE singleton = 1
