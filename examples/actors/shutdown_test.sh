#!/usr/bin/env bash
# Starts a program, waits until it says that it is open, sends it SIGTERM, and looks at how it ends.
set -euo pipefail
exec {output}< <("$1" & echo "pid $!"; wait $!; echo "exit $?")
said="" pid="" is_open=false
while IFS= read -r line <&"$output"; do
  echo "$line"
  said+="$line"$'\n'
  case "$line" in
    "pid "*) pid=${line#pid } ;;
    "open") is_open=true ;;
  esac
  if $is_open && [[ -n $pid ]]; then
    kill -TERM "$pid"
    is_open=false
  fi
done
last=-1
for line in "the door is closed" "the kitchen is closed after 2 orders" "good night" "exit 0"; do
  at=$(grep -nxF -- "$line" <<<"$said" | cut -d: -f1 || true)
  [[ -n $at && $at -gt $last ]] || { echo "expected, after what is above: $line"; exit 1; }
  last=$at
done
