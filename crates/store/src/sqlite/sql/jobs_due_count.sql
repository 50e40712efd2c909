-- From the index alone, and no further than anybody asks.
SELECT count(*)
FROM (SELECT 1
      FROM jobs
      WHERE tenant = ?1 AND lane = ?2 AND share = ?3 AND due_at <= ?4 AND next_step IS NOT 'look_up'
      LIMIT ?5)
