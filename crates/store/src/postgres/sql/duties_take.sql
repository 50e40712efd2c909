-- One row is written if the duty is this node's: because nobody had it, because whoever had it didn't come back, or still.
INSERT INTO duties AS d (duty, node, until)
VALUES ('chores', $1, $3)
ON CONFLICT (duty) DO UPDATE SET node = excluded.node, until = excluded.until
WHERE d.node = excluded.node OR d.until <= $2
