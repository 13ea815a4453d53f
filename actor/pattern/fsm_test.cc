#include "fraktor/actor/pattern/fsm.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/testing/counted_key.h"

namespace fraktor {
namespace {

enum class At { kIdle, kBusy, kLost };

std::string TextOf(At at) { return at == At::kIdle ? "idle" : at == At::kBusy ? "busy" : "lost"; }

// A machine that a test scripts, in its constructor and by messages.
class Machine final : public Fsm<At, int> {
 public:
  using Setup = std::function<void(Machine&)>;
  // A message with the result that the handler returns.
  struct Answer {
    std::function<Next(Machine&, ActorContext&)> what;
  };

  Machine(const Setup& setup, std::function<void(std::string)> to_log) : note(std::move(to_log)) {
    StartWith(At::kIdle, 1);
    for (const At at : {At::kIdle, At::kBusy}) {
      When(at, [this](ActorContext& context, Envelope& message) {
        if (message.Is<FsmStateTimeout>()) this->note(absl::StrCat("timeout in ", TextOf(state())));
        if (message.Is<std::string>()) this->note(message.As<std::string>());
        if (message.Is<Answer>()) return message.As<Answer>().what(*this, context);
        return message.Is<int>() ? Unhandled() : Stay();
      });
    }
    OnTransition([this](ActorContext&, At from, At to) {
      this->note(absl::StrCat(TextOf(from), "->", TextOf(to), " ", data(), "->", *next_data()));
    });
    OnTermination([this](ActorContext&, const FsmReason& reason, At at, int value) {
      const char* const why = reason.kind == FsmReason::Kind::kNormal     ? "normal"
                              : reason.kind == FsmReason::Kind::kShutdown ? "shutdown"
                                                                          : "failure";
      this->note(absl::StrCat("ends in ", TextOf(at), " with ", value, ": ", why));
    });
    if (setup != nullptr) setup(*this);
  }

  using Fsm::GetLog;
  using Fsm::GoTo;
  using Fsm::KeepLog;
  using Fsm::next_data;
  using Fsm::OnTermination;
  using Fsm::OnTransition;
  using Fsm::SetStateTimeout;
  using Fsm::StartWith;
  using Fsm::Stay;
  using Fsm::Stop;
  using Fsm::Unhandled;
  using Fsm::When;
  using Fsm::WhenUnhandled;

  const std::function<void(std::string)> note;
};

class FsmTest : public PatternTest {
 protected:
  ActorRef SpawnMachine(Machine::Setup setup = nullptr) {
    const ActorRef machine =
        system_
            ->TrySpawn(*MakeProps<Machine>({}, std::move(setup),
                                           std::function<void(std::string)>([this](std::string text) { Note(text); })))
            .value();
    Settle();
    return machine;
  }
  template <class What>
  void Have(ActorRef machine, What what) {
    Tell(machine, Machine::Answer{what});
    Settle();
  }
};

// A75
TEST_F(FsmTest, BeginsWithATransitionToItself) {
  SpawnMachine();
  EXPECT_EQ(Take(), Log({"0: idle->idle 1->1"}));
}

// A75
TEST_F(FsmTest, StayingIsNoTransitionAndGoingToTheSameStateIsOne) {
  const ActorRef machine = SpawnMachine();
  Take();
  Have(machine, [](Machine& m, ActorContext&) { return m.Stay().Using(5); });
  EXPECT_EQ(Take(), Log());
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kIdle); });
  EXPECT_EQ(Take(), Log({"0: idle->idle 5->5"}));
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy); });
  EXPECT_EQ(Take(), Log({"0: idle->busy 5->5"}));
}

// A77
TEST_F(FsmTest, ShowsTheNextDataInTransitionsOnly) {
  const ActorRef machine = SpawnMachine();
  Take();
  Have(machine, [](Machine& m, ActorContext&) {
    EXPECT_EQ(m.next_data(), nullptr);
    EXPECT_EQ(m.data(), 1);
    return m.GoTo(At::kBusy).Using(2);
  });
  EXPECT_EQ(Take(), Log({"0: idle->busy 1->2"}));
  Have(machine, [](Machine& m, ActorContext&) {
    EXPECT_EQ(m.next_data(), nullptr);
    EXPECT_EQ(m.data(), 2);
    EXPECT_EQ(m.state(), At::kBusy);
    return m.Stay();
  });
}

TEST_F(FsmTest, CallsAllTransitionHandlersInOrder) {
  SpawnMachine([](Machine& m) { m.OnTransition([&m](ActorContext&, At, At) { m.note("second"); }); });
  EXPECT_EQ(Take(), Log({"0: idle->idle 1->1", "0: second"}));
}

// A77: a transition that fails leaves nothing behind.
TEST_F(FsmTest, AHandlerThatThrowsFailsTheActor) {
  const ActorRef machine = SpawnMachine([](Machine& m) {
    m.OnTransition([](ActorContext&, At from, At to) {
      if (from != to) throw std::runtime_error("as told");
    });
  });
  Take();
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy).Using(2); });
  // The old instance ends, and a new one begins.
  EXPECT_EQ(Take(), Log({"0: idle->busy 1->2", "0: ends in idle with 1: shutdown", "0: idle->idle 1->1"}));
}

TEST_F(FsmTest, AnswersTheSender) {
  const ActorRef machine = SpawnMachine();
  const auto going = system_->AskAndWait<std::string>(machine, Machine::Answer{[](Machine& m, ActorContext&) {
                                                        return m.GoTo(At::kBusy).Replying(std::string("gone")).Using(3);
                                                      }},
                                                      absl::Seconds(1));
  EXPECT_EQ(going.value(), "gone");
  const auto stopping = system_->AskAndWait<std::string>(
      machine, Machine::Answer{[](Machine& m, ActorContext&) { return m.Stop().Replying(std::string("stopped")); }},
      absl::Seconds(1));
  EXPECT_EQ(stopping.value(), "stopped");
}

// A76
TEST_F(FsmTest, TellsSubscribersWhereItIsAndHowItGoesOn) {
  const ActorRef machine = SpawnMachine();
  Take();
  const auto spawn = [&](std::string name) {
    return Spawn({.receive = [this, name, machine](ActorContext&, Envelope& message) {
      if (const auto* current = message.TryAs<FsmCurrentState<At>>()) {
        EXPECT_EQ(current->fsm, machine);
        Note(absl::StrCat(name, " is told ", TextOf(current->state)));
      } else {
        const auto& transition = message.As<FsmTransition<At>>();
        Note(absl::StrCat(name, " is told ", TextOf(transition.from), "->", TextOf(transition.to)));
      }
      return absl::OkStatus();
    }});
  };
  // The order of the two is not specified.
  const auto take_sorted = [this] {
    Log lines = Take();
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  const ActorRef first = spawn("first");
  const ActorRef second = spawn("second");
  Tell(machine, SubscribeTransitions{first});
  Tell(machine, SubscribeTransitions{second});
  Tell(machine, SubscribeTransitions{second});
  Settle();
  EXPECT_EQ(take_sorted(), Log({"0: first is told idle", "0: second is told idle", "0: second is told idle"}));
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy); });
  EXPECT_EQ(take_sorted(), Log({"0: first is told idle->busy", "0: idle->busy 1->1", "0: second is told idle->busy"}));
  Tell(machine, UnsubscribeTransitions{second});
  system_->Stop(first);
  Settle();
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kIdle); });
  EXPECT_EQ(Take(), Log({"0: busy->idle 1->1"}));
  EXPECT_EQ(system_->dead_letters().total(), 0u) << "a subscriber that has ended is told nothing";
  Tell(machine, SubscribeTransitions{first});
  Settle();
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

uint64_t end_checks = 0;
uint64_t first_living = 0;
bool HasEndedBefore(CountedKey subscriber) {
  ++end_checks;
  return subscriber.value < first_living;
}

// The cost of a subscription does not depend on the number of subscribers. Counts comparisons and
// not time.
TEST(FsmSubscribersTest, LooksAtAConstantNumberOfSubscribersInEachCall) {
  constexpr uint64_t kCount = 30'000;
  constexpr uint64_t kMaxLooks = 4 * kCount * IndexedSet<CountedKey>::kMaxUnindexed;
  fsm_internal::Subscribers<CountedKey, &HasEndedBefore> subscribers(2 * kCount);
  CountedKey::comparisons = end_checks = first_living = 0;
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(subscribers.Add({i}));
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(subscribers.Add({i}));
  for (uint64_t i = 0; i < kCount; i += 2) ASSERT_TRUE(subscribers.Erase({i}));
  EXPECT_EQ(std::distance(subscribers.begin(), subscribers.end()), static_cast<ptrdiff_t>(kCount / 2));
  // Each subscriber has ended when the next one comes.
  for (uint64_t i = kCount; i < 2 * kCount; ++i) {
    first_living = i;
    ASSERT_TRUE(subscribers.Add({i}));
  }
  EXPECT_LT(CountedKey::comparisons + end_checks, kMaxLooks);
}

// A78
TEST_F(FsmTest, StopsWithAReasonAndItsData) {
  const ActorRef machine = SpawnMachine([](Machine& m) { m.SetStateTimeout(At::kIdle, absl::Seconds(5)); });
  Take();
  Have(machine, [](Machine& m, ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartSingle("t", std::string("late"), absl::Seconds(1)).ok());
    return m.Stop().Using(9);
  });
  EXPECT_EQ(Take(), Log({"0: ends in idle with 9: normal"})) << "once";
  EXPECT_FALSE(IsAlive(machine));
  const uint64_t steps = toolbox_->steps();
  RunFor(absl::Hours(1));
  EXPECT_EQ(toolbox_->steps(), steps) << "no timer is left";
  const ActorRef other = SpawnMachine();
  Take();
  Have(other, [](Machine& m, ActorContext&) { return m.Stop(FsmReason::Failure(absl::AbortedError("no more"))); });
  EXPECT_EQ(Take(), Log({"3600: ends in idle with 1: failure"}));
  EXPECT_NE(kept_log_.lines.back().find("a state machine stopped after: no more"), std::string::npos);
  EXPECT_NE(kept_log_.lines.back().find("Machine: a state"), std::string::npos) << kept_log_.lines.back();
}

// A78
TEST_F(FsmTest, IsToldOfAnEndFromOutside) {
  const ActorRef machine = SpawnMachine();
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy).Using(4); });
  Take();
  system_->Stop(machine);
  Settle();
  EXPECT_EQ(Take(), Log({"0: ends in busy with 4: shutdown"}));
}

// A79
TEST_F(FsmTest, EndsWithAnErrorIfTheNextStateDoesNotExist) {
  const ActorRef machine = SpawnMachine();
  Take();
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kLost).Using(7).Replying(std::string("never")); });
  EXPECT_EQ(Take(), Log({"0: ends in idle with 1: failure"}));
  EXPECT_FALSE(IsAlive(machine));
  ASSERT_FALSE(kept_log_.lines.empty());
  EXPECT_NE(kept_log_.lines.back().find(" goes to state number 2, which has no handler; give it one by When"),
            std::string::npos)
      << kept_log_.lines.back();
}

// A79: the asker does not wait for its whole timeout.
TEST_F(FsmTest, RepliesWithTheErrorThatEndsIt) {
  const auto ask = [&](std::function<Machine::Next(Machine&, ActorContext&)> what) {
    const ActorRef machine = SpawnMachine();
    auto asking = system_->Ask<std::string>(machine, Machine::Answer{std::move(what)}, absl::Hours(1));
    Settle();
    EXPECT_FALSE(IsAlive(machine));
    return asking.IsReady() ? asking.Take().status() : absl::UnknownError("no reply");
  };
  const absl::Status lost = ask([](Machine& m, ActorContext&) { return m.GoTo(At::kLost); });
  EXPECT_EQ(lost.code(), absl::StatusCode::kInternal) << lost;
  EXPECT_NE(lost.message().find("has no handler; give it one by When"), std::string::npos) << lost;
  const absl::Status failed =
      ask([](Machine& m, ActorContext&) { return m.Stop(FsmReason::Failure(absl::DataLossError("no disk"))); });
  EXPECT_EQ(failed, absl::DataLossError("no disk"));
  const absl::Status replied = ask([](Machine& m, ActorContext&) {
    return m.Stop(FsmReason::Failure(absl::DataLossError("no disk"))).Replying(std::string("a reply"));
  });
  EXPECT_EQ(replied, absl::OkStatus());
}

TEST_F(FsmTest, EndsAlthoughTheTerminationHandlerThrows) {
  const auto setup = [this](Machine& m) {
    m.OnTermination([this](ActorContext&, const FsmReason&, At, int) {
      Note("terminated");
      throw std::runtime_error("no way");
    });
  };
  const ActorRef stopped = SpawnMachine(setup);
  const ActorRef lost = SpawnMachine(setup);
  Take();
  Have(stopped, [](Machine& m, ActorContext&) { return m.Stop(); });
  EXPECT_EQ(Take(), Log({"0: terminated"}));
  EXPECT_FALSE(IsAlive(stopped));
  ASSERT_FALSE(kept_log_.lines.empty());
  EXPECT_NE(kept_log_.lines.back().find("OnTermination of a state machine threw: exception: no way"), std::string::npos)
      << kept_log_.lines.back();
  Have(lost, [](Machine& m, ActorContext&) { return m.GoTo(At::kLost); });
  EXPECT_EQ(Take(), Log({"0: terminated"}));
  EXPECT_FALSE(IsAlive(lost));
}

TEST_F(FsmTest, CannotBeginWithoutAFirstState) {
  class Empty final : public Fsm<At, int> {};
  const ActorRef machine = system_->TrySpawn(PropsOf<Empty>(), "empty").value();
  Settle();
  EXPECT_FALSE(IsAlive(machine));
  EXPECT_NE(kept_log_.lines.back().find("without a first state; call StartWith in its constructor"), std::string::npos)
      << kept_log_.lines.back();
}

// A80
TEST_F(FsmTest, TimesOutInAState) {
  const ActorRef machine = SpawnMachine([](Machine& m) { m.SetStateTimeout(At::kBusy, absl::Seconds(2)); });
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy); });
  Take();
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Take(), Log({"2: timeout in busy", "4: timeout in busy"}));
}

// A80
TEST_F(FsmTest, AnyMessageEndsTheTimeoutOfAState) {
  const ActorRef machine = SpawnMachine([](Machine& m) { m.SetStateTimeout(At::kIdle, absl::Seconds(2)); });
  Take();
  for (int i = 0; i < 4; ++i) {
    RunFor(absl::Milliseconds(1500));
    if (i % 2 == 0) {
      Tell(machine, 7);  // Not even one that it handles.
    } else {
      Tell(machine, std::string("x"));
    }
  }
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Take(), Log({"3: x", "6: x", "8: timeout in idle"}));
  // Leaving the state does too.
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy); });
  Take();
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log());
  // A subscription does not.
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kIdle); });
  Take();
  RunFor(absl::Seconds(1));
  Tell(machine, SubscribeTransitions{Spawn({})});
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"70: timeout in idle"}));
}

// A80
TEST_F(FsmTest, MayHaveAnotherTimeoutForOnce) {
  const ActorRef machine = SpawnMachine([](Machine& m) { m.SetStateTimeout(At::kIdle, absl::Seconds(5)); });
  Have(machine, [](Machine& m, ActorContext&) { return m.Stay().ForMax(absl::Seconds(1)); });
  Take();
  RunFor(absl::Seconds(6));
  EXPECT_EQ(Take(), Log({"1: timeout in idle", "6: timeout in idle"}));
  Have(machine, [](Machine& m, ActorContext&) { return m.Stay().ForMax(absl::InfiniteDuration()); });
  RunFor(absl::Hours(1));
  EXPECT_EQ(Take(), Log());
  SpawnMachine([](Machine& m) { m.StartWith(At::kBusy, 1, absl::Seconds(1)); });
  Take();
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log({"3607: timeout in busy"}));
}

// A81
TEST_F(FsmTest, NamedTimersHaveNothingToDoWithTheTimeoutOfAState) {
  const ActorRef machine = SpawnMachine([](Machine& m) { m.SetStateTimeout(At::kIdle, absl::Seconds(3)); });
  Take();
  Have(machine, [](Machine& m, ActorContext& context) {
    Timers timers(context);
    EXPECT_TRUE(timers.StartSingle("state timeout", std::string("named"), absl::Seconds(1)).ok());
    EXPECT_TRUE(timers.StartSingle("cancelled", std::string("cancelled"), absl::Seconds(1)).ok());
    EXPECT_TRUE(timers.Cancel("cancelled"));
    EXPECT_TRUE(timers.IsActive("state timeout"));
    return m.Stay();
  });
  // It is a message, so the timeout counts from there.
  RunFor(absl::Seconds(4));
  EXPECT_EQ(Take(), Log({"1: named", "4: timeout in idle"}));
}

// A81: both are due at once; the first ends the other, which is in the mailbox already.
TEST_F(FsmTest, DropsAQueuedTimeoutOfAState) {
  const ActorRef machine = SpawnMachine();
  Take();
  Have(machine, [](Machine& m, ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartSingle("t", std::string("named"), absl::Seconds(1)).ok());
    return m.Stay().ForMax(absl::Seconds(1));
  });
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log({"1: named"}));
}

// A82
TEST_F(FsmTest, KeepsALogOfTheLastMessages) {
  const ActorRef machine = SpawnMachine([](Machine& m) { m.KeepLog(3); });
  Tell(machine, 1);
  Tell(machine, std::string("a"));
  Have(machine, [](Machine& m, ActorContext&) { return m.GoTo(At::kBusy).Using(2); });
  Tell(machine, 2);
  Have(machine, [](Machine& m, ActorContext&) {
    std::vector<std::string> lines;
    for (const Machine::LogEntry& entry : m.GetLog()) {
      lines.push_back(absl::StrCat(TextOf(entry.state), " ", *entry.data, " ", std::string(entry.event)));
    }
    EXPECT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].substr(0, 7), "idle 1 ");
    EXPECT_EQ(lines[1], "busy 2 int");
    EXPECT_EQ(lines[2].substr(0, 7), "busy 2 ");
    m.KeepLog(0);
    EXPECT_TRUE(m.GetLog().empty());
    return m.Stay();
  });
}

TEST_F(FsmTest, AsksFurtherHandlersForWhatTheFirstDoesNotHandle) {
  const ActorRef machine = SpawnMachine([](Machine& m) {
    m.When(At::kIdle, [&m](ActorContext&, Envelope& message) {
      if (message.As<int>() != 1) return m.Unhandled();
      m.note("second handler");
      return m.Stay();
    });
    m.WhenUnhandled([&m](ActorContext&, Envelope& message) {
      if (message.As<int>() != 2) return m.Unhandled();
      m.note("when unhandled");
      return m.GoTo(At::kBusy);
    });
  });
  Take();
  for (const int number : {1, 3, 2}) Tell(machine, number);
  Settle();
  EXPECT_EQ(Take(), Log({"0: second handler", "0: when unhandled", "0: idle->busy 1->1"}));
  EXPECT_EQ(dead_letters(DeadLetterReason::kUnhandled), 1u);
}

// Data that cannot be copied, and states that are no enum.
class Named final : public Fsm<std::string, std::unique_ptr<int>> {
 public:
  explicit Named(int* seen) {
    StartWith("begin", std::make_unique<int>(1));
    KeepLog(2);
    When("begin", [this, seen](ActorContext&, Envelope&) {
      *seen = *data();
      EXPECT_FALSE(GetLog().at(0).data.has_value());
      return GoTo("nowhere").Using(std::make_unique<int>(2));
    });
  }
};

TEST_F(FsmTest, TakesAnyStateAndMovesItsData) {
  int seen = 0;
  const ActorRef machine = system_->TrySpawn(*MakeProps<Named>({}, &seen)).value();
  Tell(machine, 1);
  Settle();
  EXPECT_EQ(seen, 1);
  EXPECT_NE(kept_log_.lines.back().find("goes to state nowhere, which"), std::string::npos) << kept_log_.lines.back();
}

}  // namespace
}  // namespace fraktor
