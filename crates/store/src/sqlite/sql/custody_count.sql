SELECT count(*)
FROM (SELECT 1
      FROM custody
      WHERE tenant = ?1 AND message = ?2 AND job IS ?3 AND stage = ?4
      LIMIT ?5)
