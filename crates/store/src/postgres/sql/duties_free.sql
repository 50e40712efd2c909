DELETE FROM duties WHERE node = $1
