INSERT INTO lanes (tenant, lane, destination)
VALUES (?1, ?2, ?3)
