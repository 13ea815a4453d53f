#!/usr/bin/env bash
# Runs the tests of this folder with the Python of the machine.
set -euo pipefail
here="$(dirname "$0")"
cd "$here/.."
exec env PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover --start-directory benchmarking --top-level-directory . --pattern '*_test.py'
