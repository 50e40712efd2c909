SELECT nextval('writers')
FROM generate_series(1, $1)
