# Runs the parts of a long check and sums them up. .ci/run and tools/check_all source it:
#
#   part NAME COMMAND...   runs a command, adds up its closing line `N passed, N failed`, and notes
#                          how long it took
#   close_parts            prints a line per part, the total time and `N passed, N failed`; false if
#                          a part failed
#
# A command that fails without a closing line counts as one failure.

report=()
passed=0
failed=0
parts_ok=true

part() {
  local name=$1 start=$SECONDS log code=0
  shift
  echo "=== $name: $*"
  log=$(mktemp)
  "$@" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
  local line
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  rm -f "$log"
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
  elif [[ $code -ne 0 ]]; then
    failed=$((failed + 1))
  fi
  local word=ok
  [[ $code -eq 0 ]] || { parts_ok=false; word=FAILED; }
  report+=("$(printf '%-9s %4d s  %s  %s' "$name" $((SECONDS - start)) "$word" "$line")")
}

close_parts() {
  echo "=== how long each part took"
  printf '%s\n' "${report[@]}"
  printf '%-9s %4d s\n' total "$SECONDS"
  echo "$passed passed, $failed failed"
  $parts_ok
}
