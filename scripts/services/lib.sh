# Helpers of the service scripts in this folder; sourced, not run.
#
# A service script is called `NAME.sh start DIR PORT`, prints the service's URL and returns when it answers, or
# `NAME.sh stop DIR`. Both may be repeated; the data in DIR outlives a stop.
# shellcheck shell=bash
set -euo pipefail

port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# running PID WORD: it runs (a zombie does not) and WORD is in its command line (pids are used again).
running() {
  [ -n "$1" ] && [ -d "/proc/$1" ] && { tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$2"; } 2>/dev/null
}
gone() { ! running "$@"; }

# alive PIDFILE WORD
alive() { running "$(head -n1 "$1" 2>/dev/null)" "$2"; }

# wait_for SECONDS COMMAND...: true once COMMAND succeeds; false when time is up or the daemon just started has died.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    [ -z "${daemon_pid:-}" ] || running "$daemon_pid" '' || return 1
    sleep 0.1
  done
}

# daemon PIDFILE LOG COMMAND...: runs COMMAND apart from this shell.
daemon() {
  local pidfile=$1 log=$2
  shift 2
  ! port_open "$port" || { echo "port $port is taken" >&2; exit 1; }
  setsid "$@" >>"$log" 2>&1 </dev/null &
  daemon_pid=$!
  echo "$daemon_pid" >"$pidfile"
}

# stop_pid PIDFILE WORD: asks the recorded process to end, and makes it after 30 s.
stop_pid() {
  local pid
  pid=$(head -n1 "$1" 2>/dev/null) || true
  if running "$pid" "$2"; then
    kill -TERM "$pid" 2>/dev/null || true
    wait_for 30 gone "$pid" "$2" || kill -KILL "$pid" 2>/dev/null || true
    wait_for 5 gone "$pid" "$2"
  fi
  rm -f "$1"
}

# ready NAME SECONDS LOG COMMAND...: waits for COMMAND, or shows the log and fails.
ready() {
  local name=$1 seconds=$2 log=$3
  shift 3
  wait_for "$seconds" "$@" && return
  echo "$name did not answer within $seconds s; the end of $log:" >&2
  tail -n 20 "$log" >&2
  exit 1
}

# as_user USER COMMAND...: gives up root, keeps the environment.
as_user() {
  local user=$1
  shift
  if [ "$(id -u)" = 0 ]; then setpriv --reuid="$user" --regid="$user" --init-groups -- "$@"; else "$@"; fi
}

# own USER: gives DIR to the user that the server runs as, who must be able to pass the folders above it.
own() {
  [ "$(id -u)" = 0 ] || return 0
  chown "$1:" "$dir"
  as_user "$1" test -x "$dir" || { echo "$1 cannot enter $dir: a folder above it is closed to $1" >&2; exit 1; }
}

# need COMMAND GROUP: fails, saying how to get COMMAND.
need() {
  command -v "$1" >/dev/null || { echo "$1 is missing: run scripts/services/install.sh $2 as root" >&2; exit 1; }
}

verb=${1:-} dir=${2:-} port=${3:-}
case $verb in
  start) [ -n "$dir" ] && [ -n "$port" ] ;;
  stop) [ -n "$dir" ] ;;
  *) false ;;
esac || { echo "usage: $0 start DIR PORT | stop DIR" >&2; exit 2; }
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
