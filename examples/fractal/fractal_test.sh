#!/usr/bin/env bash
# Runs the example and looks at what it prints.
set -euo pipefail
output=$("$1")
echo "$output"
[[ $(wc -l <<<"$output") -eq 36 ]] || { echo "expected 34 rows, an empty line and a greeting"; exit 1; }
grep -q '^Hello from fraktor: 34 tasks on 4 workers drew this in ' <<<"$output"
# A row near the middle goes through the set, which is blank inside and shaded around.
sed -n 17p <<<"$output" | grep -qE '[@#%*].* {10}'
