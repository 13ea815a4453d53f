#!/usr/bin/env bash
# Runs the tests of this folder with the Python of the machine.
set -euo pipefail
here="$(dirname "$0")"
cd "$here/.."
export PYTHONDONTWRITEBYTECODE=1
exec python3 -m unittest discover --start-directory endurance --top-level-directory . --pattern '*_test.py'
