#!/usr/bin/env bash
# Compiles event-sourced actors that are refused, with every compiler there is: the errors name the actor, the command and what is wrong.
#
# Most of the time goes to reading the headers. So all actors that are refused are one file, and all that are accepted another.
set -euo pipefail
source "$1" "$2"

accepted="$TEST_TMPDIR/accepted.cc"
refused="$TEST_TMPDIR/refused.cc"
# What every actor begins with.
cat >"$accepted" <<'CODE'
#include <string>
#include <vector>
#include "fraktor/persistence/typed/event_sourced.h"
using namespace fraktor;
struct Balance { int cents = 0; };
struct Deposit { using Reply = Balance; int cents = 0; };
struct Remark {};
struct Deposited { int cents = 0; };
struct State { int cents = 0; };
template <class Self>
struct Base : EventSourced<Self, State, Commands<Deposit>, Events<Deposited>> {
  std::string PersistenceId() const override { return "account"; }
  void Apply(State& state, const Deposited& event) { state.cents += event.cents; }
};
CODE
cp "$accepted" "$refused"

cat >>"$accepted" <<'CODE'
struct Checked : Base<Checked> {
  ReplyEffect<Balance> Handle(const State& state, const Deposit& command) {
    if (command.cents == 0) return Stash();
    if (command.cents < 0) return Reply(ErrorReply{absl::InvalidArgumentError("negative")});
    if (command.cents == 1) return Reply(Balance{state.cents});
    if (command.cents == 4) return state.cents > 0 ? Reply(Balance{1}) : Reply(ErrorReply{absl::InternalError("no")});
    if (command.cents == 5) return state.cents > 0 ? Reply(Balance{1}) : Stash();
    if (command.cents == 2) return Unhandled();
    if (command.cents == 3) return Persist(Deposited{3}).ThenReply([] { return absl::StatusOr<Balance>(Balance{3}); });
    return Persist(Deposited{command.cents})
        .ThenReply([](const State& now) { return Balance{now.cents}; })
        .ThenRun([] {})
        .ThenUnstashAll()
        .ThenStop();
  }
};
struct Deduced : Base<Deduced> {
  auto Handle(const State&, const Deposit&) { return Persist(Deposited{1}).ThenReply([] { return Balance{1}; }); }
};
struct Chosen : Base<Chosen> {
  Effect Handle(const State&, const Deposit& command) {
    return command.cents > 0 ? Persist(Deposited{1}).ThenReply([] { return Balance{1}; }) : Stash();
  }
};
struct Silent : EventSourced<Silent, State, Commands<Remark>, Events<Deposited>> {
  std::string PersistenceId() const override { return "silent"; }
  static std::vector<std::string> Tags(const Deposited&) { return {"money"}; }
  auto Handle(const State&, const Remark&) { return Persist(Deposited{1}).ThenReply([] { return 1; }); }
  State Apply(State state, const Deposited&) { return state; }
};
void Make() { Checked{}; Deduced{}; Chosen{}; Silent{}; }
CODE

texts=()  # What the errors must have, all in one line, with a space between.
# refuse CODE TEXT...: the code does not compile, and a line with "error:" has all of the texts.
refuse() {
  printf '%s\n' "$1" >>"$refused"
  shift
  texts+=("$*")
}
refuse '
struct DeducedLiar : Base<DeducedLiar> {
  auto Handle(const State&, const Deposit&) { return Persist(Deposited{1}).ThenReply([] { return 1; }); }
};
void MakeDeducedLiar() { DeducedLiar{}; }' "HandlerReturnsAnotherReply<DeducedLiar," "Deposit," "Balance," "int>"
refuse '
struct DeclaredLiar : Base<DeclaredLiar> {
  ReplyEffect<std::string> Handle(const State&, const Deposit&) { return Reply(std::string()); }
};
void MakeDeclaredLiar() { DeclaredLiar{}; }' "HandlerReturnsAnotherReply<DeclaredLiar," "Deposit," "Balance,"
refuse '
struct OtherReply : Base<OtherReply> {
  ReplyEffect<Balance> Handle(const State&, const Deposit&) { return Persist(Deposited{1}).ThenReply([] { return 7.5; }); }
};
void MakeOtherReply() { OtherReply{}; }' "ThenReplyAnswersWithAnother<double," "Balance>"
refuse '
struct NoReply : Base<NoReply> {
  ReplyEffect<Balance> Handle(const State&, const Deposit&) { return Persist(Deposited{1}); }
};
void MakeNoReply() { NoReply{}; }' "Effect<State>" "ReplyEffect<" "Balance>"
refuse '
struct Waiting : Base<Waiting> {
  Task<Balance> Handle(const State&, const Deposit&) { co_return Balance{1}; }
};
void MakeWaiting() { Waiting{}; }' "HandleIsACoroutine<Waiting," "Deposit>"
refuse '
struct Deaf : Base<Deaf> {};
void MakeDeaf() { Deaf{}; }' "ActorDoesNotHandle<Deaf," "Deposit>"
refuse '
struct Lost : EventSourced<Lost, State, Commands<Remark>, Events<Deposited>> {
  std::string PersistenceId() const override { return "lost"; }
  Effect Handle(const State&, const Remark&) { return Nothing(); }
  void Apply(State, const Deposited&) {}
};
void MakeLost() { Lost{}; }' "ActorDoesNotApply<Lost," "State," "Deposited>"
refuse '
struct Labeled : EventSourced<Labeled, State, Commands<Remark>, Events<Deposited>> {
  std::string PersistenceId() const override { return "labeled"; }
  static std::string Tags(const Deposited&) { return "money"; }
  Effect Handle(const State&, const Remark&) { return Nothing(); }
  void Apply(State&, const Deposited&) {}
};
void MakeLabeled() { Labeled{}; }' "Tags(const Event&) returns the tags of the event as a std::vector<std::string>"

judge_accepted() {
  local output
  output=$(compile "$1" "$accepted") || complain "$1 refuses actors that are fine: $output"
}
judge_refused() {
  local errors text word line rest found
  errors=$(compile "$1" "$refused" | grep ' error: ' || true)
  for text in "${texts[@]}"; do
    found=
    while IFS= read -r line; do
      rest=$line
      for word in $text; do
        if [[ $rest != *"$word"* ]]; then rest=; break; fi
        rest=${rest#*"$word"}x
      done
      [[ -z $rest ]] || { found=1; break; }
    done <<<"$errors"
    [[ -n $found ]] || complain "$1: no error has \"$text\" among:"$'\n'"$errors"
  done
}
judge_with_every_compiler judge_accepted judge_refused
