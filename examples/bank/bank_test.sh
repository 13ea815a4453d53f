#!/usr/bin/env bash
# Runs a small bank for some seconds: a compute node and the storage node are killed on the way, and no cent is missing.
set -euo pipefail
bank=$1
dir=$(mktemp -d "${TEST_TMPDIR:-/tmp}/bank.XXXXXX")
# When something is wrong the logs of the nodes say what.
show_logs() { for log in "$dir"/*.log; do echo "=== $log"; tail -n 40 "$log"; done; }
"$bank" --dir="$dir" --seconds=8 --accounts=60 --customers=8 >"$dir/output" || { cat "$dir/output"; show_logs; exit 1; }
cat "$dir/output"

expect() { grep -qE -- "$1" "$dir/output" || { echo "expected a line like: $1"; show_logs; exit 1; }; }
expect '^60 accounts are open, with 60000.00 in all'
expect '^ *[0-9.]+ s  kill -9 of compute-2$'
expect '^ *[0-9.]+ s  compute-2 is started again$'
expect '^ *[0-9.]+ s  kill -9 of storage$'
expect '^ *[0-9.]+ s  storage is started again$'
expect '^ *[0-9.]+ s +[1-9][0-9]* transfers/s +p99 +[0-9]+ ms +[1-9][0-9]* activations +3 of 3 nodes$'
expect '^ +money in 6000000 cents, money out 6000000 cents$'
expect '^ +[1-9][0-9]* acknowledged ones are there exactly once; 0 were not acknowledged$'
expect '^the audit has passed$'

# The same bank goes on another day.
"$bank" --dir="$dir" --seconds=1 --accounts=60 --customers=8 --kill=none --seed=2 >"$dir/output" || { cat "$dir/output"; show_logs; exit 1; }
cat "$dir/output"
expect '^the audit has passed$'

# Nobody else uses a folder that is in use.
if flock "$dir/lock" "$bank" --dir="$dir" --seconds=1 >"$dir/output" 2>&1; then echo "two banks use one folder"; exit 1; fi
expect 'is in use by another bank'

# Ctrl-C ends it early, with the audit, and leaves nobody behind. In the foreground: otherwise timeout sends the signal to
# the process and to its group, and the second one ends it at once.
timeout --foreground --preserve-status -s INT 4 "$bank" --dir="$dir" --seconds=600 --accounts=60 --customers=8 --kill=none --seed=3 \
  >"$dir/output" || { cat "$dir/output"; show_logs; exit 1; }
expect '^the audit has passed$'
if pgrep -f "bank node .* $dir " >&2; then echo "nodes were left behind"; exit 1; fi

! "$bank" --nodes=0 2>/dev/null || { echo "no nodes were accepted"; exit 1; }
