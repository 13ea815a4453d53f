#!/usr/bin/env bash
# Compiles programs that are refused, with every compiler there is, and looks at the first error: it names the actor and the message.
# Two or more compilers run at a time, on as many cores.
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
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/scheduler.h"
#include "fraktor/actor/pattern/timers.h"
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

# compile COMPILER FILE: says what the compiler says of it.
compile() {
  "$1" -std=c++20 -fsyntax-only ${unlimited[$1]} "${flags[@]}" "${begin[$1]}" "${begin_file[$1]}" "$2" 2>&1
}
declare -A begin begin_file unlimited
making=()
for compiler in "${compilers[@]}"; do
  place="$TEST_TMPDIR/begin-$compiler"
  mkdir -p "$place"
  cp "$TEST_TMPDIR/prelude.h" "$place/prelude.h"
  case "$("$compiler" --version | head -1)" in
    *clang*) kept=prelude.pch unlimited[$compiler]=-ferror-limit=0 begin[$compiler]=-include-pch begin_file[$compiler]="$place/prelude.pch" ;;
    *) kept=prelude.h.gch unlimited[$compiler]=-fmax-errors=0 begin[$compiler]=-include begin_file[$compiler]="$place/prelude.h" ;;
  esac
  "$compiler" -std=c++20 "${flags[@]}" -x c++-header "$place/prelude.h" -o "$place/$kept" &
  making+=("$!")
done
for pid in "${making[@]}"; do wait "$pid"; done

complaints="$TEST_TMPDIR/complaints"
: >"$complaints"
complain() { echo "$*" >>"$complaints"; }
programs=0
# in_background COMMAND...: as soon as fewer run than there are cores.
in_background() {
  while [[ $(jobs -rp | wc -l) -ge $(nproc) ]]; do wait -n || true; done
  "$@" &
}
# judge COMPILER WHAT FILE TEXT...: see check.
judge() {
  local compiler=$1 what=$2 file=$3 output first text
  shift 3
  if output=$(compile "$compiler" "$file"); then
    if [[ $# -gt 0 ]]; then complain "$compiler accepts $what"; fi
    return
  fi
  first=$(grep -m1 'error:' <<<"$output")
  if [[ $# -eq 0 ]]; then complain "$compiler refuses $what: $first"; return; fi
  for text in "$@"; do
    [[ $first == *"$text"* ]] || complain "$compiler, $what: the first error does not name $text: $first"
  done
}
# check WHAT CODE TEXT...: the code does not compile, and the first line with "error:" has all of the texts. Without texts it compiles.
check() {
  local what=$1 code=$2 compiler file
  shift 2
  file="$TEST_TMPDIR/program-$((++programs)).cc"
  printf '%s\n' "$code" >"$file"
  for compiler in "${compilers[@]}"; do in_background judge "$compiler" "$what" "$file" "$@"; done
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

# The answer

check "answers as their messages declare them" '
struct Save { using Reply = Done; int n; };
struct Saver : Actor<Saver, Save, Greet, Part> {
  absl::StatusOr<Done> On(Context&, const Save& save) {
    if (save.n < 0) return absl::InvalidArgumentError("negative");
    return Done{};
  }
  Task<Greeted> On(Context&, Greet greet) { co_return Greeted{greet.name}; }
  int On(Context&, const Part&) { return 1; }
};
struct Later : Actor<Later, Save, Greet> {
  Task<> On(Context&, Save) { co_return; }
  absl::Status On(Context&, const Greet&) { return absl::OkStatus(); }
};
struct Others : Actor<Others, Save, Greet> {
  InterleavingTask<Done> On(Context&, Save) { co_return Done{}; }
  ErrorReply On(Context&, const Greet&) { return {absl::NotFoundError("nobody")}; }
};
absl::Status F(ActorSystem& system) {
  system.Spawn<Later>("later");
  system.Spawn<Others>("others");
  return system.AskAndWait(system.Spawn<Saver>("saver"), Save{1}, absl::Seconds(1)).status();
}'
check "a Status as the Reply of a question" '
struct Save { using Reply = absl::Status; };
void F(ActorSystem& system, TypedRef<Save> saver) { (void)system.AskAndWait(saver, Save{}, absl::Seconds(1)); }' \
  "ReplyMustNotBe" "Status" "Of<Save>" "DeclareInstead<" "Done>"
check "a Status as the Reply of a question of an actor" '
struct Save { using Reply = absl::Status; };
void F(TypedContext<Part>& context, TypedRef<Save> saver) { (void)context.Ask(saver, Save{}, absl::Seconds(1)); }' \
  "ReplyMustNotBe" "Status" "Of<Save>" "DeclareInstead<" "Done>"
check "a Status as the Reply that a handler answers with" '
struct Save { using Reply = absl::Status; };
struct Saver : Actor<Saver, Save> {
  absl::Status On(Context&, const Save&) { return absl::OkStatus(); }
};
void F(ActorSystem& system) { system.Spawn<Saver>("saver"); }' "ReplyMustNotBe" "Status" "Of<Save>" "DeclareInstead<" "Done>"
check "a StatusOr as a Reply" '
struct Load { using Reply = absl::StatusOr<Greeted>; };
void F(TypedRef<Load> loader) { loader.Tell(Load{}); }' "ReplyMustNotBe" "StatusOr<Greeted>" "Of<Load>" "DeclareInstead<Greeted>"
check "a Status that is asked for" '
void F(ActorSystem& system, ActorRef saver) { (void)system.AskAndWait<absl::Status>(saver, Part{}, absl::Seconds(1)); }' \
  "AskAndWait<R>" "Done"
check "an answer of another type" '
struct Liar : Actor<Liar, Greet> {
  int On(Context&, const Greet&) { return 1; }
};
void F(ActorSystem& system) { system.Spawn<Liar>("liar"); }' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, int>"
check "an answer of another type in a StatusOr" '
struct Liar : Actor<Liar, Greet> {
  absl::StatusOr<std::string> On(Context&, const Greet&) { return std::string(); }
};
void F(ActorSystem& system) { system.Spawn<Liar>("liar"); }' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, " "string"
check "an answer of another type by a coroutine" '
struct Liar : Actor<Liar, Greet> {
  Task<Part> On(Context&, Greet) { co_return Part{}; }
};
void F(ActorSystem& system) { system.Spawn<Liar>("liar"); }' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, " "Task<Part>"
check "a behaviour that answers with another type" '
struct Liar { int On(TypedContext<Greet>&, const Greet&) { return 1; } };
void F(TypedContext<Greet>& context) { context.Become<Liar>(); }' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, int>"

# Hooks

check "hooks as they should be" '
struct Hooked final : Actor<Hooked, Part> {
  void PreStart(Context&) {}
  void PostStop(ActorContext&) {}
  absl::Status PreRestart(Context&, const absl::Status&, Envelope*) { return absl::OkStatus(); }
  void PostRestart(Context&, absl::Status) {}
  SupervisionDirective OnChildFailure(const Failure&);
  static const SupervisorStrategy& Supervision();
  void On(Context&, const Part&) {}
  void On(Context&, const Terminated&) {}
};
void F(ActorSystem& system) { system.Spawn<Hooked>("hooked"); }'
check "a hook without its parameter" '
struct Wrong : Actor<Wrong, Part> {
  void PreStart() {}
  void On(Context&, const Part&) {}
};
void F(ActorSystem& system) { system.Spawn<Wrong>("wrong"); }' "HookHasAnotherSignature<Wrong, " "hook::PreStart"
# The others in one program: each has an error that names actor and hook.
hooks=(
  'PreStart|Task<> PreStart(Context&) { co_return; }'
  'PreStart|template <class T> void PreStart(T&, int) {}'
  'PostStop|void PostStop(int) {}'
  'PostStop|absl::Status PostStop(Context&) { return absl::OkStatus(); }'
  'PreRestart|void PreRestart(Context&, const absl::Status&) {}'
  'PostRestart|void PostRestart(Context&) {}'
  'OnChildFailure|SupervisionDirective OnChildFailure(Context&, const absl::Status&);'
  'OnChildFailure|void OnChildFailure(const Failure&) {}'
  'Supervision|const SupervisorStrategy& Supervision() const;'
  'Supervision|static const SupervisorStrategy* Supervision();'
)
: >"$TEST_TMPDIR/hooks.cc"
for i in "${!hooks[@]}"; do
  for kind in "" final; do
    # Of a final class a template is not seen.
    [[ $kind == final && ${hooks[i]} == *template* ]] && continue
    cat >>"$TEST_TMPDIR/hooks.cc" <<CODE
struct Wrong$i$kind $kind : Actor<Wrong$i$kind, Part> {
  ${hooks[i]#*|}
  void On(Context&, const Part&) {}
};
void F$i$kind(ActorSystem& system) { system.Spawn<Wrong$i$kind>("wrong"); }
CODE
  done
done
judge_hooks() {
  local compiler=$1 errors i kind
  errors=$(compile "$compiler" "$TEST_TMPDIR/hooks.cc" | grep 'error:' || true)
  for i in "${!hooks[@]}"; do
    for kind in "" final; do
      [[ $kind == final && ${hooks[i]} == *template* ]] && continue
      grep -q "HookHasAnotherSignature<Wrong$i$kind, .*hook::${hooks[i]%%|*}" <<<"$errors" ||
        complain "$compiler, the hook \`${hooks[i]#*|}\` of Wrong$i$kind: no error names it"
    done
  done
}
for compiler in "${compilers[@]}"; do in_background judge_hooks "$compiler"; done
check "a hook that is private" '
class Wrong : public Actor<Wrong, Part> {
 public:
  void On(Context&, const Part&) {}
 private:
  void PreStart(Context&) {}
};
void F(ActorSystem& system) { system.Spawn<Wrong>("wrong"); }' "HookHasAnotherSignature<Wrong, " "hook::PreStart"
check "a handler of Terminated without a context" '
struct Wrong : Actor<Wrong, Part> {
  void On(Context&, const Part&) {}
  void On(const Terminated&) {}
};
void F(ActorSystem& system) { system.Spawn<Wrong>("wrong"); }' "ActorDoesNotHandle<Wrong, " "Terminated"

# Whatever brings an actor a message

check "messages that come in other ways, and are handled" '
absl::Status F(ActorSystem& system, TypedContext<Greet, Part>& context, TypedRef<Greet> greeter, ActorContext& untyped) {
  context.Forward(greeter, Greet{});
  context.WatchWith(greeter, Part{}).IgnoreError();
  context.WatchWith(greeter.untyped(), Part{}).IgnoreError();
  Timers timers(context);
  timers.StartSingle("a", Part{}, absl::Seconds(1)).IgnoreError();
  timers.StartSingle("b", PoisonPill{}, absl::Seconds(1)).IgnoreError();
  Timers(untyped).StartSingle("c", 5, absl::Seconds(1)).IgnoreError();
  (void)GracefulStop(system, greeter, absl::Seconds(1));
  Scheduler::Of(system).ScheduleOnce(absl::Seconds(1), greeter, Greet{}).IgnoreError();
  return Timers(context).StartFixedRate("d", Greet{}, {.period = absl::Seconds(1)});
}'
check "a message that is forwarded to one who does not handle it" '
void F(TypedContext<Greet>& context, TypedRef<Greet> greeter) { context.Forward(greeter, Part{}); }' \
  "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a message for the end of another that the actor does not handle" '
void F(TypedContext<Greet>& context, TypedRef<Part> part) { context.WatchWith(part, Part{}).IgnoreError(); }' \
  "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a message for the end of another, without types, that the actor does not handle" '
void F(TypedContext<Greet>& context, ActorRef part) { context.WatchWith(part, Part{}).IgnoreError(); }' \
  "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a timer whose message the actor does not handle" '
void F(TypedContext<Greet>& context) { Timers(context).StartSingle("t", Part{}, absl::Seconds(1)).IgnoreError(); }' \
  "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a periodic timer whose message the actor does not handle" '
void F(TypedContext<Greet>& context) { Timers(context).StartFixedDelay("t", Part{}, {}).IgnoreError(); }' \
  "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a message that is scheduled for one who does not handle it" '
void F(ActorSystem& system, TypedRef<Greet> greeter) {
  Scheduler::Of(system).ScheduleOnce(absl::Seconds(1), greeter, Part{}).IgnoreError();
}' "ActorDoesNotHandle" "TypedRef<Greet>" "Part"
check "a last message that the actor does not handle" '
void F(ActorSystem& system, TypedRef<Greet> greeter) { (void)GracefulStop(system, greeter, absl::Seconds(1), Part{}); }' \
  "ActorDoesNotHandle" "TypedRef<Greet>" "Part"

# gcc 12 destroys what is temporary in such an expression twice; there it is refused.
awaits_temporary="$TEST_TMPDIR/awaits_temporary.cc"
printf '%s\n' 'Task<Greeted> F(TypedContext<Part>& context, TypedRef<Greet> greeter) {
    auto reply = co_await context.Ask(greeter, Greet{"world"}, absl::Seconds(1));
    co_return reply;
  }' >"$awaits_temporary"
for compiler in "${compilers[@]}"; do
  accepts=true
  compile "$compiler" "$awaits_temporary" >/dev/null || accepts=false
  case "$("$compiler" --version | head -1)" in
    *"clang"*) ;;
    *" 12."*) if $accepts; then complain "$compiler accepts an await of a temporary, which it compiles wrongly"; fi ;;
  esac
done
wait
cat "$complaints"
[[ ! -s $complaints ]]
