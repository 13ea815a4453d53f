#!/usr/bin/env bash
# Compiles programs that are refused, with every compiler there is, and looks at the first error: it names the actor and the message.
set -euo pipefail
paths=$1

compilers=()
seen=" "
for compiler in "${CXX:-}" g++ clang++ clang++-14; do
  path=$(command -v "${compiler:-no compiler}") || continue
  path=$(realpath "$path")
  case "$seen" in *" $path "*) continue ;; esac
  seen+="$path "
  compilers+=("$compiler")
done
[[ ${#compilers[@]} -gt 0 ]] || { echo "no C++ compiler found: install g++ or set CXX"; exit 1; }

flags=()
while IFS= read -r path; do flags+=("-I$path"); done <"$paths"

# What all programs begin with. Each compiler reads it once and keeps what it has understood: most of the time goes there.
cat >"$TEST_TMPDIR/prelude.h" <<'CODE'
#include <string>
#include "fraktor/actor/actor.h"
using namespace fraktor;
struct Greeted { std::string text; };
struct Greet { using Reply = Greeted; std::string name; };
struct Part {};
class Greeter : public Actor<Greeter, Greet> {
 public:
  Greeted On(Context&, const Greet& greet) { return {greet.name}; }
};
struct Both : Actor<Both, Greet, Part> {
  void On(Context&, const Greet&) {}
  void On(Context&, const Part&) {}
};
CODE

# compile COMPILER: says what the compiler says of $TEST_TMPDIR/program.cc.
compile() {
  "$1" -std=c++20 -fsyntax-only "${flags[@]}" "${begin[$1]}" "${begin_file[$1]}" "$TEST_TMPDIR/program.cc" 2>&1
}
declare -A begin begin_file
for compiler in "${compilers[@]}"; do
  place="$TEST_TMPDIR/begin-$compiler"
  mkdir -p "$place"
  cp "$TEST_TMPDIR/prelude.h" "$place/prelude.h"
  case "$("$compiler" --version | head -1)" in
    *clang*) kept=prelude.pch begin[$compiler]=-include-pch begin_file[$compiler]="$place/prelude.pch" ;;
    *) kept=prelude.h.gch begin[$compiler]=-include begin_file[$compiler]="$place/prelude.h" ;;
  esac
  "$compiler" -std=c++20 "${flags[@]}" -x c++-header "$place/prelude.h" -o "$place/$kept"
done

failed=0
# check WHAT CODE TEXT...: the code does not compile, and the first line with "error:" has all of the texts. Without texts it compiles.
check() {
  local what=$1 code=$2 compiler output first text
  shift 2
  for compiler in "${compilers[@]}"; do
    printf '%s\n' "$code" >"$TEST_TMPDIR/program.cc"
    if output=$(compile "$compiler"); then
      if [[ $# -gt 0 ]]; then echo "$compiler accepts $what"; failed=1; fi
      continue
    fi
    first=$(grep -m1 'error:' <<<"$output")
    if [[ $# -eq 0 ]]; then echo "$compiler refuses $what: $first"; failed=1; continue; fi
    for text in "$@"; do
      [[ $first == *"$text"* ]] || { echo "$compiler, $what: the first error does not name $text: $first"; failed=1; }
    done
  done
}

check "a program that is fine" '
int main() {
  ActorSystem system("hello");
  TypedRef<Greet> greeter = system.Spawn<Greeter>("greeter");
  greeter.Tell(Greet{"world"});
  greeter.Tell(PoisonPill{});
  TypedRef<Greet, Part> both = system.Spawn<Both>("both");
  TypedRef<Part> narrow = both;
  narrow.Tell(Part{});
}'
check "a message that the actor does not handle" '
void F(TypedRef<Greet> greeter) { greeter.Tell(Part{}); }' "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a question that the actor does not handle" '
struct Quiz { using Reply = int; };
void F(ActorSystem& system, RefOf<Greeter> greeter) { system.AskAndWait(greeter, Quiz{}, absl::Seconds(1)).IgnoreError(); }' \
  "ActorDoesNotHandle" "Quiz"
check "an actor without a handler that it promises" '
struct Silent : Actor<Silent, Greet, Part> {
  void On(Context&, const Greet&) {}
};
void F(ActorSystem& system) { system.Spawn<Silent>("silent"); }' "ActorDoesNotHandle" "Silent" "Part"
check "a reference that is widened" '
TypedRef<Greet, Part> F(TypedRef<Greet> narrow) { return narrow; }' "TypedRef"
check "a behaviour that lacks a handler" '
struct Half { void On(TypedContext<Greet, Part>&, const Greet&) {} };
void F(TypedContext<Greet, Part>& context) { context.Become<Half>(); }' "ActorDoesNotHandle" "Half" "Part"
# gcc 12 destroys what is temporary in such an expression twice; there it is refused.
for compiler in "${compilers[@]}"; do
  printf '%s\n' 'Task<Greeted> F(TypedContext<Part>& context, TypedRef<Greet> greeter) {
    auto reply = co_await context.Ask(greeter, Greet{"world"}, absl::Seconds(1));
    co_return reply;
  }' >"$TEST_TMPDIR/program.cc"
  accepts=true
  compile "$compiler" >/dev/null || accepts=false
  case "$("$compiler" --version | head -1)" in
    *"clang"*) ;;
    *" 12."*) if $accepts; then echo "$compiler accepts an await of a temporary, which it compiles wrongly"; failed=1; fi ;;
  esac
done
exit "$failed"
