DELETE FROM fanouts
WHERE seq = ?1
