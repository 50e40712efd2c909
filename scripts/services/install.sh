#!/usr/bin/env bash
# Installs what tests need besides Rust. Does nothing when it is there already; starts nothing, asks nothing.
# usage: install.sh GROUP...     groups: go node postgres redis sqlite strace venv
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: $0 GROUP... (go node postgres redis sqlite strace venv)" >&2; exit 2; }

have() { command -v "$1" >/dev/null; }
# Debian keeps the server's programs out of PATH.
have_postgres() { have pg_ctl || compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' >/dev/null; }

packages=()
for group in "$@"; do
  case $group in
    # With the PostgreSQL driver, which the build then takes from there.
    go)
      have go || packages+=(golang-go)
      [ -d /usr/share/gocode/src/github.com/lib/pq ] || packages+=(golang-github-lib-pq-dev)
      ;;
    node) { have node && have npm; } || packages+=(nodejs npm) ;;
    postgres) have_postgres || packages+=(postgresql) ;;
    redis) { have redis-server && have redis-cli; } || packages+=(redis-server redis-tools) ;;
    sqlite) have sqlite3 || packages+=(sqlite3) ;;
    strace) have strace || packages+=(strace) ;;
    venv) python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv) ;;
    *) echo "unknown group: $group" >&2; exit 2 ;;
  esac
done
[ ${#packages[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! have apt-get; then
  echo "missing on this machine: ${packages[*]} (Debian's names). Install them, or run this as root on Debian." >&2
  exit 1
fi
# Debian starts what it installs, on the default ports, unless this file says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -q -o DPkg::Lock::Timeout=300 update
apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${packages[@]}"
