#!/usr/bin/env bash
# Runs a program, which must succeed and print these lines, in this order, perhaps with others between.
set -euo pipefail
program=$1
shift
output=$("$program")
echo "$output"
rest=$output
for line in "$@"; do
  if ! grep -qxF -- "$line" <<<"$rest"; then
    echo "expected the line: $line"
    exit 1
  fi
  rest=$(sed "1,$(grep -nxF -m1 -- "$line" <<<"$rest" | cut -d: -f1)d" <<<"$rest")
done
