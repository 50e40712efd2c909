UPDATE ledger_fences
SET first_fence = max(first_fence, ?1)
