#!/usr/bin/env bash
# Puts the receivers of examples/receivers into DIR, with all that they need to run: node/receiver.mjs and its packages,
# a virtual environment python/, and the program go/receiver. May be repeated.
# usage: prepare.sh DIR
set -euo pipefail
services=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
examples=$(cd "$services/../../examples/receivers" && pwd)
mkdir -p "${1:?usage: prepare.sh DIR}/node" "$1/go"
dir=$(cd "$1" && pwd)

cp "$examples"/node/package.json "$examples"/node/package-lock.json "$examples"/node/receiver.mjs "$dir/node"
if ! cmp -s "$dir/node/package-lock.json" "$dir/node/node_modules/.installed"; then
  (cd "$dir/node" && npm ci --no-audit --no-fund --silent) ||
    { echo "npm could not install the packages of $examples/node" >&2; exit 1; }
  cp "$dir/node/package-lock.json" "$dir/node/node_modules/.installed"
fi

"$services/python/prepare.sh" "$dir/python" "$examples/python/requirements.txt"

command -v go >/dev/null || { echo "go is missing: run scripts/services/install.sh go as root" >&2; exit 1; }
# Debian has the module's source in a package: with it nothing need be downloaded.
debian=/usr/share/gocode/src/github.com/lib/pq
{
  printf 'go 1.19\n\nuse %s\n' "$examples/go"
  if [ -d "$debian" ]; then printf 'replace github.com/lib/pq => %s\n' "$debian"; fi
} >"$dir/go/go.work"
cd "$examples/go"
GOWORK=$dir/go/go.work go build -o "$dir/go/receiver" .
