#!/usr/bin/env bash
# Compiles programs that must not compile, with every available compiler, and checks the first error
# of each: it names the actor and the message.
#
# Reading the headers takes most of the time. So one file has all programs that must not compile,
# and another one those that must. Each program is a namespace with its own messages and actors.
set -euo pipefail
source "$1" "$2"

accepted="$TEST_TMPDIR/accepted.cc"
refused="$TEST_TMPDIR/refused.cc"
cat >"$accepted" <<'CODE'
#include <memory>
#include <string>
#include "fraktor/actor/actor.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/timer/system_timers.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/actor/router/router.h"
using namespace fraktor;
CODE
cp "$accepted" "$refused"
# The beginning of every program.
read -r -d '' beginning <<'CODE' || true
struct Greeted { std::string text; };
struct Greet { using Reply = Greeted; std::string name; };
struct Part {};
class Greeter : public Actor<Greeter, Greet> {
 public:
  Greeted On(Context&, const Greet& greet) { return {greet.name}; }
};
struct Both : Actor<Both, Greet, Part> {
  Greeted On(Context&, const Greet&) { return {}; }
  void On(Context&, const Part&) {}
};
CODE

names=()
# The texts that the first error of each program must contain, a line each; empty for a program that
# must compile.
texts=()
# check NAME CODE TEXT...: the code does not compile, and its first line with "error:" has all of
# the texts. Without texts it compiles.
check() {
  local number=${#names[@]} code=$2 file=$accepted
  names+=("$1")
  shift 2
  [[ $# -eq 0 ]] || file=$refused
  texts+=("$(if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; fi)")
  printf 'namespace program_%d {\n%s\n#line 1 "program-%d"\n%s\n}\n' "$number" "$beginning" "$number" "$code" >>"$file"
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
void F(TypedRef<Greet> greeter) { greeter.Tell(Part{}); }' "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "an ask that the actor does not handle" '
struct Quiz { using Reply = int; };
void F(ActorSystem& system, RefOf<Greeter> greeter) {
  system.AskAndWait(greeter, Quiz{}, absl::Seconds(1)).IgnoreError();
}' \
  "ThisReferenceDoesNotTake<Quiz, " "ItTakes<Greet>"
check "an actor without a handler that it promises" '
struct Silent : Actor<Silent, Greet, Part> {
  Greeted On(Context&, const Greet&) { return {}; }
};
void F(ActorSystem& system) { system.Spawn<Silent>("silent"); }' \
  "ActorDoesNotHandle<Silent, Part, " "AddPublic<" "handler::On" "TypedContext<Greet, Part>"
named="write its own name there, as in"
check "an actor that names another class as itself" '
struct Copied : Actor<Greeter, Part> {
  void On(Context&, const Part&) {}
};
void F(ActorSystem& system) { system.Spawn<Copied>("copied"); }' "$named"
check "an actor that a factory makes and that names another class as itself" '
struct Copied : Actor<Greeter, Part> {
  void On(Context&, const Part&) {}
};
void F(TypedContext<Part>& context) { context.Spawn("copied", [] { return Copied(); }); }' "$named"
check "an actor that derives from an actor" '
struct Polite : Greeter {};
void F(ActorSystem& system) { system.Spawn<Polite>("polite"); }'
check "a reference that is widened" '
TypedRef<Greet, Part> F(TypedRef<Greet> narrow) { return narrow; }' "TypedRef"
check "a behaviour that lacks a handler" '
struct Half { Greeted On(TypedContext<Greet, Part>&, const Greet&) { return {}; } };
void F(TypedContext<Greet, Part>& context) { context.Become<Half>(); }' "ActorDoesNotHandle<Half, Part, " "AddPublic<"

check "handlers of numbers" '
enum class Level { kLow };
struct Numbers : Actor<Numbers, int, double, Level> {
  void On(Context&, int) {}
  void On(Context&, const double&) {}
  void On(Context&, Level&&) {}
};
struct InPlace : Actor<InPlace, long> {
  void On(Context&, long&) {}
};
struct Any : Actor<Any, int, double> {
  template <class T>
  void On(Context&, const T&) {}
};
void F(ActorSystem& system) {
  system.Spawn<Numbers>("numbers");
  system.Spawn<InPlace>("in-place");
  system.Spawn<Any>("any");
}'
check "a number that the handler of another would get" '
struct Converts : Actor<Converts, int, double> {
  void On(Context&, double) {}
};
void F(ActorSystem& system) { system.Spawn<Converts>("converts"); }' "ActorDoesNotHandle<Converts, int, "

# The reply

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
  Deferred<Done> On(Context& context, const Save&) { return ReplyTo<Done>(context); }
  Deferred<Greeted> On(Context&, const Greet&) { return absl::InternalError("broken"); }
};
struct Through : Actor<Through, Save, Greet> {
  Forwarded<Done> On(Context& context, const Save& save) { return context.Forward(saver, save); }
  Task<Deferred<Greeted>> On(Context& context, Greet) { co_return ReplyTo<Greeted>(context); }
  TypedRef<Save> saver;
};
struct Others : Actor<Others, Save, Greet> {
  InterleavingTask<Done> On(Context&, Save) { co_return Done{}; }
  ErrorReply On(Context&, const Greet&) { return {absl::NotFoundError("nobody")}; }
};
absl::Status F(ActorSystem& system) {
  system.Spawn<Later>("later");
  system.Spawn<Through>("through");
  system.Spawn<Others>("others");
  return system.AskAndWait(system.Spawn<Saver>("saver"), Save{1}, absl::Seconds(1)).status();
}'
check "a Status as the Reply of an ask" '
struct Save { using Reply = absl::Status; };
void F(ActorSystem& system, TypedRef<Save> saver) { (void)system.AskAndWait(saver, Save{}, absl::Seconds(1)); }' \
  "ReplyMustNotBe" "Status" "Of<Save>" "DeclareInstead<" "Done>"
check "a Status as the Reply of an ask of an actor" '
struct Save { using Reply = absl::Status; };
void F(TypedContext<Part>& context, TypedRef<Save> saver) { (void)context.Ask(saver, Save{}, absl::Seconds(1)); }' \
  "ReplyMustNotBe" "Status" "Of<Save>" "DeclareInstead<" "Done>"
check "a Status as the Reply that a handler answers with" '
struct Save { using Reply = absl::Status; };
struct Saver : Actor<Saver, Save> {
  absl::Status On(Context&, const Save&) { return absl::OkStatus(); }
};
void F(ActorSystem& system) {
  system.Spawn<Saver>("saver");
}' "ReplyMustNotBe" "Status" "Of<Save>" "DeclareInstead<" "Done>"
check "a StatusOr as a Reply" '
struct Load { using Reply = absl::StatusOr<Greeted>; };
void F(TypedRef<Load> loader) {
  loader.Tell(Load{});
}' "ReplyMustNotBe" "StatusOr<Greeted>" "Of<Load>" "DeclareInstead<Greeted>"
check "a Status that is asked for" '
void F(ActorSystem& system, ActorRef saver) {
  (void)system.AskAndWait<absl::Status>(saver, Part{}, absl::Seconds(1));
}' \
  "AskAndWait<R>" "Done"
says_what_to_return=("HandlerReturnsNoReply<Mute, Greet, "
  "ReturnOneOf<Greeted, " "Deferred<Greeted>, " "Forwarded<Greeted>")
check "a handler that promises a reply and returns void" '
struct Mute : Actor<Mute, Greet> {
  void On(Context&, const Greet&) {}
};
void F(ActorSystem& system) { system.Spawn<Mute>("mute"); }' "${says_what_to_return[@]}"
check "a coroutine that promises a reply and returns nothing" '
struct Mute : Actor<Mute, Greet> {
  Task<> On(Context&, Greet) { co_return; }
};
void F(ActorSystem& system) { system.Spawn<Mute>("mute"); }' "${says_what_to_return[@]}"
check "a handler that promises a reply and returns a Status" '
struct Mute : Actor<Mute, Greet> {
  absl::Status On(Context&, const Greet&) { return absl::OkStatus(); }
};
void F(ActorSystem& system) { system.Spawn<Mute>("mute"); }' "${says_what_to_return[@]}"
check "a coroutine that promises a reply and returns a Status" '
struct Mute : Actor<Mute, Greet> {
  Task<absl::Status> On(Context&, Greet) { co_return absl::OkStatus(); }
};
void F(ActorSystem& system) { system.Spawn<Mute>("mute"); }' "${says_what_to_return[@]}"
check "an interleaving coroutine that promises a reply and returns nothing" '
struct Mute : Actor<Mute, Greet> {
  InterleavingTask<> On(Context&, Greet) { co_return; }
};
void F(ActorSystem& system) { system.Spawn<Mute>("mute"); }' "${says_what_to_return[@]}"
check "a behaviour that promises a reply and returns a Status" '
struct Mute { absl::Status On(TypedContext<Greet>&, const Greet&) { return absl::OkStatus(); } };
void F(TypedContext<Greet>& context) { context.Become<Mute>(); }' "${says_what_to_return[@]}"
check "a behaviour that promises a reply and returns void" '
struct Mute { void On(TypedContext<Greet>&, const Greet&) {} };
void F(TypedContext<Greet>& context) { context.Become<Mute>(); }' "${says_what_to_return[@]}"
deferred="a handler that stashes its message replies later: let it return Deferred<Reply>"
check "a handler that stashes its message and returns a StatusOr" '
struct Early : Actor<Early, Greet> {
  absl::StatusOr<Greeted> On(Context& context, const Greet&) { return Stash(context); }
};' "$deferred"
check "a coroutine that stashes its message and returns a reply" '
struct Early : Actor<Early, Greet> {
  Task<Greeted> On(Context& context, Greet) { co_return Stash(context); }
};' "$deferred"
check "a deferred reply of another type" '
struct Liar : Actor<Liar, Greet> {
  Deferred<int> On(Context& context, const Greet&) { return ReplyTo<int>(context); }
};
void F(ActorSystem& system) { system.Spawn<Liar>("liar"); }' "HandlerReturnsAnotherReply" "Liar" "Greet"
check "a message that is forwarded to an actor with another reply" '
struct Quiz { using Reply = int; };
struct Liar : Actor<Liar, Greet> {
  Forwarded<Greeted> On(Context& context, const Greet&) { return context.Forward(quiz, Quiz{}); }
  TypedRef<Quiz> quiz;
};
void F(ActorSystem& system) { system.Spawn<Liar>("liar"); }' "Forwarded<Greeted>"
check "a message that is forwarded to an actor that owes no reply" '
struct Liar : Actor<Liar, Greet> {
  Forwarded<Greeted> On(Context& context, const Greet&) { return context.Forward(part, Part{}); }
  TypedRef<Part> part;
};' "TheRecipientOwesNoReply<Part>" "Forwarded<Greeted>"
check "a message that is forwarded to an actor that owes no reply, as a deferred reply" '
struct Liar : Actor<Liar, Greet> {
  Deferred<Greeted> On(Context& context, const Greet&) { return context.Forward(part, Part{}); }
  TypedRef<Part> part;
};' "TheRecipientOwesNoReply<Part>" "Deferred<Greeted>"
check "a handler that returns what it forwards, to an actor that owes no reply" '
struct Mute : Actor<Mute, Greet> {
  auto On(Context& context, const Greet&) { return context.Forward(part, Part{}); }
  TypedRef<Part> part;
};
void F(ActorSystem& system) { system.Spawn<Mute>("mute"); }' "${says_what_to_return[@]}"
check "a handler that returns a Forwarded without a Forward" '
struct Liar : Actor<Liar, Greet> {
  Forwarded<Greeted> On(Context&, const Greet&) { return {}; }
};' "Forwarded"
check "messages that are forwarded to actors whose replies are not known" '
struct Late : Actor<Late, Greet> {
  Deferred<Greeted> On(Context& context, const Greet& greet) { return context.Forward(any, greet); }
  ActorRef any;
};
struct Through : Actor<Through, Greet, Part> {
  Forwarded<Greeted> On(Context& context, const Greet& greet) { return context.Forward(any, greet); }
  auto On(Context& context, const Part& part) { return context.Forward(parts, part); }
  ActorRef any;
  TypedRef<Part> parts;
};
void F(ActorSystem& system) { system.Spawn<Through>("through"), system.Spawn<Late>("late"); }'
check "an adapter whose result the actor does not handle" '
void F(TypedContext<Part>& context) { context.Adapt<Greeted>([](const Greeted&) { return Greet{}; }); }' \
  "ThisReferenceDoesNotTake<Greet, " "ItTakes<Part>"
check "an adapter of a message that the actor handles itself" '
void F(TypedContext<Part>& context) { context.Adapt<Part>([](const Part&) { return Part{}; }); }' \
  "the actor handles this message itself"
check "an answer of another type" '
struct Liar : Actor<Liar, Greet> {
  int On(Context&, const Greet&) { return 1; }
};
void F(ActorSystem& system) { system.Spawn<Liar>("liar"); }' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, int>"
check "an answer of another type in a StatusOr" '
struct Liar : Actor<Liar, Greet> {
  absl::StatusOr<std::string> On(Context&, const Greet&) { return std::string(); }
};
void F(ActorSystem& system) {
  system.Spawn<Liar>("liar");
}' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, " "string"
check "an answer of another type by a coroutine" '
struct Liar : Actor<Liar, Greet> {
  Task<Part> On(Context&, Greet) { co_return Part{}; }
};
void F(ActorSystem& system) {
  system.Spawn<Liar>("liar");
}' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, " "Task<Part>"
check "a behaviour that answers with another type" '
struct Liar { int On(TypedContext<Greet>&, const Greet&) { return 1; } };
void F(TypedContext<Greet>& context) {
  context.Become<Liar>();
}' "HandlerReturnsAnotherReply<Liar, Greet, Greeted, int>"

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
for hook in "${hooks[@]}"; do
  for kind in "" final; do
    # The check does not see a template of a final class.
    [[ $kind == final && $hook == *template* ]] && continue
    check "the hook \`${hook#*|}\`${kind:+ of a class that is final}" "
struct Wrong $kind : Actor<Wrong, Part> {
  ${hook#*|}
  void On(Context&, const Part&) {}
};
void F(ActorSystem& system) { system.Spawn<Wrong>(\"wrong\"); }" "HookHasAnotherSignature<Wrong, " "hook::${hook%%|*}"
  done
done
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

# Asks whose message declares no Reply

no_reply="this message declares no reply type: declare \`using Reply = Answer;\`"
check "asks whose reply is known" '
Task<> F(TypedContext<Greet, Part>& context, ActorContext& untyped, TypedRef<Greet, Part> greeter) {
  auto declared = context.Ask(greeter, Greet{}, absl::Seconds(1));
  auto said = context.Ask<Greeted>(greeter, Part{}, absl::Seconds(1));
  auto of_untyped = untyped.Ask(greeter.untyped(), Greet{}, absl::Seconds(1));
  auto same = untyped.Ask<int>(greeter.untyped(), 5, absl::Seconds(1));
  auto reply = co_await declared;
}
absl::Status G(ActorSystem& system, TypedRef<Greet, Part> greeter) {
  Future<Greeted> asked = system.Ask(greeter.untyped(), Greet{}, absl::Seconds(1));
  (void)system.AskAndWait<int>(greeter.untyped(), 5, absl::Seconds(1));
  (void)system.AskAndWait<Greeted>(greeter, Part{}, absl::Seconds(1));
  return system.AskAndWait(greeter.untyped(), Greet{}, absl::Seconds(1)).status();
}'
check "an ask without a Reply" '
void F(ActorSystem& system, TypedRef<Part> part) {
  (void)system.AskAndWait(part, Part{}, absl::Seconds(1));
}' "$no_reply"
check "an ask without a Reply, as a future" '
void F(ActorSystem& system, TypedRef<Part> part) { (void)system.Ask(part, Part{}, absl::Seconds(1)); }' "$no_reply"
check "an ask without a Reply to an actor without a type" '
void F(ActorSystem& system, ActorRef part) { (void)system.AskAndWait(part, Part{}, absl::Seconds(1)); }' "$no_reply"
check "an ask without a Reply by an actor" '
void F(TypedContext<Greet>& context, TypedRef<Part> part) {
  (void)context.Ask(part, Part{}, absl::Seconds(1));
}' "$no_reply"

# Arguments of actors

check "arguments that an actor can be made of" '
struct Named : Actor<Named, Part> {
  explicit Named(std::string name, int number = 0);
  void On(Context&, const Part&) {}
};
void F(ActorSystem& system, TypedContext<Part>& context) {
  system.Spawn<Named>("a", "name");
  system.Spawn<Named>("b", {.mailbox = {.capacity = 1}}, "name", 7);
  context.Spawn<Named>("c", std::string("name"));
  (void)context.TrySpawn<Named>("d", SpawnOptions(), "name");
}'
no_constructor="the actor has no public constructor for these arguments; the recipe keeps copies of them"
check "arguments that an actor cannot be made of" '
struct Named : Actor<Named, Part> {
  explicit Named(std::string name);
  void On(Context&, const Part&) {}
};
void F(ActorSystem& system) { system.Spawn<Named>("a", 7); }' "$no_constructor"
check "arguments behind options that an actor cannot be made of" '
struct Named : Actor<Named, Part> {
  explicit Named(std::string name);
  void On(Context&, const Part&) {}
};
void F(TypedContext<Part>& context) { context.Spawn<Named>("a", SpawnOptions(), "name", 7); }' "$no_constructor"
check "an argument that cannot be copied" '
struct Owner : Actor<Owner, Part> {
  explicit Owner(std::unique_ptr<int> owned);
  void On(Context&, const Part&) {}
};
void F(ActorSystem& system) { system.Spawn<Owner>("a", std::make_unique<int>(7)); }' "$no_constructor" \
  "for arguments that cannot be copied, pass a factory"

# All ways to send an actor a message

check "a message that is tried and not handled" '
void F(TypedContext<Part>& context, TypedRef<Greet> greeter) { context.TryTell(greeter, Part{}).IgnoreError(); }' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a message for all routees that they do not handle" '
void F(TypedRef<Greet> greeters) {
  TellAllRoutees(greeters, Part{});
}' "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a routee that does not handle what its router takes" '
void F(TypedRef<Greet> greeters, TypedRef<Part> part) { AddRouteeTo(greeters, part); }' \
  "ThisReferenceDoesNotTake<Greet, " "ItTakes<Part>"

check "messages that come in other ways, and are handled" '
absl::Status F(ActorSystem& system, TypedContext<Greet, Part>& context, TypedRef<Greet> greeter,
               ActorContext& untyped) {
  context.Forward(greeter, Greet{});
  context.TryTell(greeter, Greet{}).IgnoreError();
  context.TryTell(greeter.untyped(), Part{}).IgnoreError();
  TellAllRoutees(greeter, Greet{});
  TellKeyed(greeter, "key", Greet{});
  AddRouteeTo(greeter, context.self());
  context.WatchWith(greeter, Part{}).IgnoreError();
  context.WatchWith(greeter.untyped(), Part{}).IgnoreError();
  Timers timers(context);
  timers.StartSingle("a", Part{}, absl::Seconds(1)).IgnoreError();
  timers.StartSingle("b", PoisonPill{}, absl::Seconds(1)).IgnoreError();
  Timers(untyped).StartSingle("c", 5, absl::Seconds(1)).IgnoreError();
  (void)GracefulStop(system, greeter, absl::Seconds(1));
  SystemTimers::Of(system).StartSingle(absl::Seconds(1), greeter, Greet{}).IgnoreError();
  return Timers(context).StartFixedRate("d", Greet{}, {.period = absl::Seconds(1)});
}'
check "a message that is forwarded to an actor that does not handle it" '
void F(TypedContext<Greet>& context, TypedRef<Greet> greeter) { context.Forward(greeter, Part{}); }' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a message for the end of another that the actor does not handle" '
void F(TypedContext<Greet>& context, TypedRef<Part> part) { context.WatchWith(part, Part{}).IgnoreError(); }' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a message for the end of another, without types, that the actor does not handle" '
void F(TypedContext<Greet>& context, ActorRef part) { context.WatchWith(part, Part{}).IgnoreError(); }' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a timer whose message the actor does not handle" '
void F(TypedContext<Greet>& context) { Timers(context).StartSingle("t", Part{}, absl::Seconds(1)).IgnoreError(); }' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a periodic timer whose message the actor does not handle" '
void F(TypedContext<Greet>& context) { Timers(context).StartFixedDelay("t", Part{}, {}).IgnoreError(); }' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a delayed message to an actor that does not handle it" '
void F(ActorSystem& system, TypedRef<Greet> greeter) {
  SystemTimers::Of(system).StartSingle(absl::Seconds(1), greeter, Part{}).IgnoreError();
}' "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"
check "a last message that the actor does not handle" '
void F(ActorSystem& system, TypedRef<Greet> greeter) {
  (void)GracefulStop(system, greeter, absl::Seconds(1), Part{});
}' \
  "ThisReferenceDoesNotTake<Part, " "ItTakes<Greet>"

# gcc 12 destroys the temporary objects of such an expression twice, so there it must not compile.
of_gcc_12=${#names[@]}
check "an await of a temporary, which it compiles wrongly" '
#if !defined(__clang__) && __GNUC__ == 12
Task<Greeted> F(TypedContext<Part>& context, TypedRef<Greet> greeter) {
  auto reply = co_await context.Ask(greeter, Greet{"world"}, absl::Seconds(1));
  co_return reply;
}
#endif' "GiveTheFutureANameFirst"

# first_errors COMPILER: prints the first error of each program, after its number, from the output
# of the compiler. An error that names no program belongs to the one in the instantiation notes: gcc
# prints them before the error, clang after it.
first_errors() {
  awk -v is_clang="$(is_clang "$1" && echo 1 || echo 0)" '
    function record(program, line) { if (!(program in first)) { first[program] = 1; print program "\t" line } }
    { program = match($0, /program[-_][0-9]+/) ? substr($0, RSTART + 8, RLENGTH - 8) : "" }
    / error: / {
      if (waiting != "") record("none", waiting)
      waiting = ""
      if (program != "") record(program, $0)
      else if (is_clang) waiting = $0
      else record(before == "" ? "none" : before, $0)
    }
    program != "" {
      before = program
      if (waiting != "") record(program, waiting)
      waiting = ""
    }
    END { if (waiting != "") record("none", waiting) }' | sed 's/program_[0-9]*:://g'
}
judge_accepted() {
  local compiler=$1 output number line
  output=$(compile "$compiler" "$accepted") && return
  while IFS=$'\t' read -r number line; do
    complain "$compiler refuses ${names[number]:-what is fine}: $line"
  done < <(first_errors "$compiler" <<<"$output")
  complain "$compiler refuses programs that are fine: $output"
}
judge_refused() {
  local compiler=$1 output number line text
  local -A first
  output=$(compile "$compiler" "$refused" || true)
  while IFS=$'\t' read -r number line; do first[$number]=$line; done < <(first_errors "$compiler" <<<"$output")
  [[ -z ${first[none]:-} ]] || complain "$compiler has an error that belongs to no program: ${first[none]}"
  for number in "${!names[@]}"; do
    [[ -n ${texts[number]} ]] || continue
    if [[ $number == "$of_gcc_12" ]] && ! is_gcc_12 "$compiler"; then continue; fi
    line=${first[$number]:-}
    if [[ -z $line ]]; then complain "$compiler accepts ${names[number]}"; continue; fi
    while IFS= read -r text; do
      [[ $line == *"$text"* ]] || complain "$compiler, ${names[number]}: the first error does not name $text: $line"
    done <<<"${texts[number]}"
  done
}
judge_with_every_compiler judge_accepted judge_refused
