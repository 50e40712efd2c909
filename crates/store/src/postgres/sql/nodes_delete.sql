DELETE FROM nodes WHERE name = $1
