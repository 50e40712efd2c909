#!/usr/bin/env bash
# Makes a virtual environment in DIR that holds the packages of REQUIREMENTS, in its versions. May be repeated.
# usage: prepare.sh DIR REQUIREMENTS
set -euo pipefail
dir=${1:?usage: prepare.sh DIR REQUIREMENTS} requirements=${2:?usage: prepare.sh DIR REQUIREMENTS}
cmp -s "$requirements" "$dir/.installed" && exit 0
python3 -m venv --clear "$dir" || { echo "python3 makes no venv: run scripts/services/install.sh venv as root" >&2; exit 1; }
"$dir/bin/pip" install --quiet --disable-pip-version-check --no-input --requirement "$requirements" ||
  { echo "pip could not install the packages of $requirements" >&2; exit 1; }
cp "$requirements" "$dir/.installed"
