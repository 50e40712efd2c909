-- From one source that has some to the next.
SELECT tenant, held_by
FROM fanouts INDEXED BY fanouts_held
WHERE held_by IS NOT NULL AND (tenant, held_by) > (?1, ?2)
ORDER BY tenant, held_by
LIMIT 1
