#!/usr/bin/env bash
# Starts a calculator, asks it from other processes, and ends it.
set -euo pipefail
program=$1
coproc server { "$program" serve; }
read -r address <&"${server[0]}"
echo "it is at $address"

expect() {
  local wanted=$1
  shift
  local said
  said=$("$program" "$address" "$@") || true
  echo "$* = $said"
  [[ $said == "$wanted" ]] || { echo "expected: $wanted"; exit 1; }
}
expect 42 6 x 7
expect 4.5 9 / 2
expect 'nobody can divide by zero' 1 / 0
eval "exec ${server[1]}>&-"
wait "$server_PID"
