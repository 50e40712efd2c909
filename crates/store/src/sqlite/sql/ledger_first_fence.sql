SELECT first_fence
FROM ledger_fences
