#!/usr/bin/env bash
# A throwaway PostgreSQL cluster, fsync on. Its URL is postgres://postgres@127.0.0.1:PORT/postgres
# To crash it: kill -9 "$(head -n1 DIR/data/postmaster.pid)", then start it again.
# shellcheck source=scripts/services/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n1)
PATH=$PATH${bin:+:$bin}
need pg_ctl postgres
# The server refuses to run as root.
pg() { (cd / && as_user postgres "$@"); }
pidfile=$dir/data/postmaster.pid

case $verb in
  start)
    own postgres
    [ -f "$dir/data/PG_VERSION" ] ||
      pg initdb -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 >"$dir/initdb.log"
    if ! alive "$pidfile" postgres; then
      # After kill -9 it can stay a zombie for seconds, which the next server would take for a live one.
      zombie=/proc/$(head -n1 "$pidfile" 2>/dev/null || echo none)
      wait_for 60 test ! -e "$zombie" || true
      pg pg_ctl -D "$dir/data" -l "$dir/log" -w -t 60 -o "-p $port -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories= -c fsync=on -c max_connections=200" start >/dev/null ||
        { tail -n 5 "$dir/log" >&2; exit 1; }
    fi
    ready postgres 60 "$dir/log" pg_isready -q -h 127.0.0.1 -p "$port"
    echo "postgres://postgres@127.0.0.1:$port/postgres"
    ;;
  stop) ! alive "$pidfile" postgres || pg pg_ctl -D "$dir/data" -w -t 60 -m fast stop >/dev/null ;;
esac
