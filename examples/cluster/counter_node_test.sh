#!/usr/bin/env bash
# Three processes count words together; when one leaves, the others go on.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Reads a line, which has to match.
await() {
  local line
  read -r -t 60 line <&"$1" || { echo "nothing comes; wanted: $2"; exit 1; }
  echo "$line"
  [[ $line =~ $2 ]] || { echo "wanted: $2"; exit 1; }
}
for name in one two three; do mkfifo "$folder/$name.in" "$folder/$name.out"; done
# Ports that nobody has are found by trying.
for try in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 10000))
  "$program" --port=$port <"$folder/one.in" >"$folder/one.out" &
  one=$!
  exec 3>"$folder/one.in" 4<"$folder/one.out"
  if read -r -t 60 line <&4; then break; fi
  exec 3>&- 4<&-
  wait "$one" || true
done
[[ $line == "joined as localhost:$port" ]]
"$program" --port=$((port + 1)) --store=localhost:$port <"$folder/two.in" >"$folder/two.out" 3>&- 4<&- &
two=$!
exec 5>"$folder/two.in" 6<"$folder/two.out"
"$program" --port=$((port + 2)) --store=localhost:$port <"$folder/three.in" >"$folder/three.out" 3>&- 4<&- 5>&- 6<&- &
three=$!
exec 7>"$folder/three.in" 8<"$folder/three.out"
await 6 "^joined as localhost:$((port + 1))$"
await 8 "^joined as localhost:$((port + 2))$"

words="a rose is not tulip and no but nor bee sea dee"
for word in $words; do
  echo "$word" >&3 && await 4 "^$word: 1, on localhost:"
  echo "$word" >&5 && await 6 "^$word: 2, on localhost:"
  echo "$word" >&7 && await 8 "^$word: 3, on localhost:"
done
# What it had begins anew elsewhere.
exec 7>&-
wait "$three"
for word in $words; do
  echo "$word" >&3 && await 4 "^$word: (1|4), on localhost:($port|$((port + 1)))$"
done
exec 5>&-
wait "$two"
exec 3>&-
wait "$one"
if "$program" --port=x 2>"$folder/usage"; then exit 1; fi
grep -q usage "$folder/usage"
