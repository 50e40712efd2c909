#!/usr/bin/env bash
# Puts verify.mjs and the packages that it imports into DIR, in the versions of package-lock.json. May be repeated.
# usage: prepare.sh DIR
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:?usage: prepare.sh DIR}
mkdir -p "$dir"
cp "$here"/package.json "$here"/package-lock.json "$here"/verify.mjs "$dir"
cmp -s "$here/package-lock.json" "$dir/node_modules/.installed" && exit 0
(cd "$dir" && npm ci --no-audit --no-fund --silent) || { echo "npm could not install the packages of $here" >&2; exit 1; }
cp "$here/package-lock.json" "$dir/node_modules/.installed"
