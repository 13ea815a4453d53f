#!/usr/bin/env bash
# A room and two people in three processes: they hear each other, and that one has left.
set -euo pipefail
program=$1
coproc room { "$program" room; }
read -r address <&"${room[0]}"
echo "the room is at $address"
# Reads lines until this one comes.
await() {
  local line
  while read -r -t 60 line <&"$1"; do
    echo "$2 reads: $line"
    [[ $line == "$3" ]] && return
  done
  echo "$2 never read: $3"
  exit 1
}
# One coproc is all that a shell has: people get pipes.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkfifo "$folder/ann.in" "$folder/ann.out" "$folder/bob.in" "$folder/bob.out"
"$program" "$address" ann <"$folder/ann.in" >"$folder/ann.out" &
ann=$!
exec 3>"$folder/ann.in" 4<"$folder/ann.out"
await 4 ann 'ann has come'
"$program" "$address" bob <"$folder/bob.in" >"$folder/bob.out" 3>&- 4<&- &
bob=$!
exec 5>"$folder/bob.in" 6<"$folder/bob.out"

await 6 bob 'bob has come'
await 4 ann 'bob has come'
echo 'hello bob' >&3
await 6 bob 'ann: hello bob'
echo 'hello ann' >&5
await 4 ann 'bob: hello ann'
exec 5>&-
wait "$bob"
await 4 ann 'bob has left'
exec 3>&-
wait "$ann"
eval "exec ${room[1]}>&-"
wait "$room_PID"
