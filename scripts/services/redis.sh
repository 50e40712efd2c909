#!/usr/bin/env bash
# A throwaway Redis with an append-only file. Its URL is redis://127.0.0.1:PORT
# REDIS_FSYNC: always (the default), everysec or no.
# shellcheck source=scripts/services/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need redis-server redis
need redis-cli redis

# It answers LOADING while it reads its file.
answers() { redis-cli -h 127.0.0.1 -p "$port" ping | grep -qx PONG; }

case $verb in
  start)
    alive "$dir/redis.pid" redis-server ||
      daemon "$dir/redis.pid" "$dir/log" redis-server --bind 127.0.0.1 --port "$port" --dir "$dir" --save '' \
        --appendonly yes --appendfsync "${REDIS_FSYNC:-always}" --maxmemory-policy noeviction
    ready redis 20 "$dir/log" answers
    echo "redis://127.0.0.1:$port"
    ;;
  stop) stop_pid "$dir/redis.pid" redis-server ;;
esac
