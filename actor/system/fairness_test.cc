// The turns of each actor of a busy system. A turn is one message here: the budget of the pool is
// 1.
//
// Ratios are checked in virtual time, where one thread runs all workers and every run is the same.
// With threads the machine decides how often a worker runs. So there the tests check that all
// actors get turns, and how many turns of one worker an ask of a thread waits for; latencies are
// printed.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/tree/internal/tree_fixture.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

constexpr uint64_t kTurns = 10;
constexpr size_t kScale = kIsSanitized ? 10 : 1;

// The turns of all actors of a test.
struct Turns {
  enum class Until { kAllHaveTurns, kTold };

  explicit Turns(size_t actors, Until until = Until::kAllHaveTurns)
      : of(actors), most(until == Until::kTold ? UINT64_MAX : actors * kTurns * 40) {}

  // Called in a turn of actor `number`. Returns whether the test goes on.
  bool Count(size_t number) {
    // Relaxed: sums that pair with nothing.
    if (of[number].fetch_add(1, std::memory_order_relaxed) + 1 == kTurns) {
      satisfied.fetch_add(1, std::memory_order_relaxed);
    }
    const uint64_t turns = total.fetch_add(1, std::memory_order_relaxed) + 1;
    if (most != UINT64_MAX && (IsOver() || turns >= most)) end.store(true, std::memory_order_relaxed);
    return !end.load(std::memory_order_relaxed);
  }

  // Whether all actors have had kTurns.
  bool IsOver() const { return satisfied.load(std::memory_order_relaxed) == of.size(); }

  // The most turns of an actor divided by the fewest.
  double Unfairness() const {
    std::vector<uint64_t> turns;
    for (const auto& one : of) turns.push_back(one.load(std::memory_order_relaxed));
    const auto [fewest, largest] = std::minmax_element(turns.begin(), turns.end());
    std::cout << turns.size() << " actors: from " << *fewest << " to " << *largest << " turns\n";
    return *fewest == 0 ? 1e9 : static_cast<double>(*largest) / static_cast<double>(*fewest);
  }

  std::vector<std::atomic<uint64_t>> of;
  std::atomic<uint64_t> total{0};
  std::atomic<size_t> satisfied{0};
  // Whether all actors have had kTurns turns, or `most` turns are over.
  std::atomic<bool> end{false};
  const uint64_t most;
};

struct Again {};
struct Seed {
  const std::vector<ActorRef>* actors;
};

// Sends itself a message in each turn.
class SelfSender final : public ActorInstance {
 public:
  SelfSender(Turns* turns, size_t number) : turns_(*turns), number_(number) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    if (turns_.Count(number_)) context.Tell(context.self(), Again{});
    return absl::OkStatus();
  }

 private:
  Turns& turns_;
  const size_t number_;
};

// Sends the message to its partner, or back.
class Player final : public ActorInstance {
 public:
  Player(Turns* turns, size_t number, ActorRef partner) : turns_(*turns), number_(number), partner_(partner) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    if (turns_.Count(number_)) context.Tell(partner_.IsNoOne() ? context.sender() : partner_, Again{});
    return absl::OkStatus();
  }

 private:
  Turns& turns_;
  const size_t number_;
  const ActorRef partner_;
};

// Sends the first message to each of the others, on a worker.
class Seeder final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    for (const ActorRef actor : *message.As<Seed>().actors) context.Tell(actor, Again{});
    return absl::OkStatus();
  }
};

struct Question {
  using Reply = uint64_t;
};

// Replies with the turns of the others.
class Oracle final : public ActorInstance {
 public:
  explicit Oracle(Turns* turns) : turns_(*turns) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Tell(context.sender(), turns_.total.load(std::memory_order_relaxed));
    return absl::OkStatus();
  }

 private:
  Turns& turns_;
};

ActorSystemOptions OneMessagePerTurn(int workers) {
  ActorSystemOptions options;
  options.workers = workers;
  options.scheduler.dispatchers.default_pool.budget = 1;
  options.scheduler.dispatchers.system_pool.budget = 1;
  return options;
}

// A system in virtual time.
class LocalSystem {
 public:
  explicit LocalSystem(int workers) {
    ActorSystemOptions options = OneMessagePerTurn(workers);
    options.toolbox = toolbox_.get();
    system_ = ActorSystem::Create(options).value();
  }

  // Runs until all have had their turns, and then until no message is left.
  double Unfairness(Turns& turns) {
    EXPECT_TRUE(toolbox_->RunUntil([&] { return turns.end.load(); }, absl::Hours(1)).ok());
    const double unfairness = turns.Unfairness();
    EXPECT_TRUE(toolbox_->RunUntilIdle().ok());
    return unfairness;
  }

  ActorSystem& operator*() { return *system_; }
  ActorSystem* operator->() { return system_.get(); }
  LocalToolbox& toolbox() { return *toolbox_; }

 private:
  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<ActorSystem> system_;
};

std::vector<ActorRef> SpawnSelfSenders(ActorSystem& system, Turns& turns, size_t first, size_t count) {
  std::vector<ActorRef> actors;
  for (size_t i = 0; i < count; ++i) {
    actors.push_back(system.TrySpawn(*MakeProps<SelfSender>({}, &turns, first + i)).value());
  }
  return actors;
}

void ExpectFairSelfSenders(size_t actors, int workers) {
  Turns turns(actors);
  LocalSystem system(workers);
  const std::vector<ActorRef> senders = SpawnSelfSenders(*system, turns, 0, actors);
  Tell(system->TrySpawn(PropsOf<Seeder>()).value(), Seed{&senders});
  EXPECT_LE(system.Unfairness(turns), 8) << actors << " actors, " << workers << " workers";
}

// SCH-14
TEST(SystemFairness, GivesManySelfSendersTheirTurns) {
  ExpectFairSelfSenders(20'000, 1);
  ExpectFairSelfSenders(20'000, 2);
}

// SCH-14
TEST(SystemFairness, GivesVeryManySelfSendersTheirTurns) { ExpectFairSelfSenders(200'000 / kScale, 2); }

// An actor that a handler sends to may run next, up to 32 times in a row: so pairs get more
// turns, but not many more.
void ExpectFairSelfSendersBesidePairs(size_t senders, size_t pairs, int workers) {
  Turns turns(senders + 2 * pairs);
  LocalSystem system(workers);
  std::vector<ActorRef> actors = SpawnSelfSenders(*system, turns, 0, senders);
  for (size_t i = 0; i < pairs; ++i) {
    const ActorRef pong = system->TrySpawn(*MakeProps<Player>({}, &turns, senders + 2 * i, ActorRef())).value();
    actors.push_back(system->TrySpawn(*MakeProps<Player>({}, &turns, senders + 2 * i + 1, pong)).value());
  }
  Tell(system->TrySpawn(PropsOf<Seeder>()).value(), Seed{&actors});
  EXPECT_LE(system.Unfairness(turns), 32)
      << senders << " self-senders, " << pairs << " pairs, " << workers << " workers";
}

// SCH-14
TEST(SystemFairness, GivesSelfSendersTheirTurnsBesidePairs) {
  for (const int workers : {1, 2}) {
    for (const size_t pairs : {1, 2, 10, 50}) {
      for (const size_t senders : {1, 35, 114, 205, 274, 366}) {
        ExpectFairSelfSendersBesidePairs(senders, pairs, workers);
      }
    }
    ExpectFairSelfSendersBesidePairs(20'000, 10, workers);
  }
}

// Replies to all asks at once, when all have come, and then tells a neighbour of the asker
// something.
class LateServer final : public ActorInstance {
 public:
  LateServer(size_t asks, ActorRef neighbour) : asks_(asks), neighbour_(neighbour) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    askers_.push_back(context.sender());
    if (askers_.size() < asks_) return absl::OkStatus();
    for (const ActorRef asker : askers_) context.Tell(asker, uint64_t{1});
    context.Tell(neighbour_, Again{});
    return absl::OkStatus();
  }

 private:
  const size_t asks_;
  const ActorRef neighbour_;
  std::vector<ActorRef> askers_;
};

// Sends many asks at once, and counts the replies.
class ManyAsker final : public ActorInstance {
 public:
  ManyAsker(size_t asks, ActorRef server, uint64_t* replies) : asks_(asks), server_(server), replies_(*replies) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    for (size_t i = 0; i < asks_; ++i) {
      const auto ask = context.AskOnReply(server_, Again{}, absl::Hours(1));
      if (!ask.ok()) return ask.status();
    }
    return absl::OkStatus();
  }
  absl::Status OnReply(ActorContext&, ActorRef, absl::StatusOr<Envelope*> reply) override {
    ++replies_;
    return reply.status();
  }

 private:
  const size_t asks_;
  const ActorRef server_;
  uint64_t& replies_;
};

class Neighbour final : public ActorInstance {
 public:
  Neighbour(const uint64_t* replies, uint64_t* before) : replies_(*replies), before_(*before) {}

  absl::Status Receive(ActorContext&, Envelope&) override {
    before_ = replies_;
    return absl::OkStatus();
  }

 private:
  const uint64_t& replies_;
  uint64_t& before_;
};

// SCH-14
TEST(SystemFairness, LetsANeighbourHaveItsTurnBesideAFloodOfReplies) {
  constexpr size_t kAsks = 10'000;
  LocalSystem system(1);
  uint64_t replies = 0;
  uint64_t before = UINT64_MAX;
  const ActorRef neighbour = system->TrySpawn(*MakeProps<Neighbour>({}, &replies, &before)).value();
  const ActorRef server = system->TrySpawn(*MakeProps<LateServer>({}, size_t{kAsks}, neighbour)).value();
  Tell(system->TrySpawn(*MakeProps<ManyAsker>({}, size_t{kAsks}, server, &replies)).value(), Again{});
  ASSERT_TRUE(system.toolbox().RunUntilIdle().ok());
  EXPECT_EQ(replies, kAsks);
  EXPECT_LE(before, 2u) << "replies in one turn, where the budget is one message";
}

struct Count {};

// Replies at once.
class Replier final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Tell(context.sender(), uint64_t{1});
    return absl::OkStatus();
  }
};

// Runs many coroutines that ask again and again. A Count notes how many asks have been answered.
class Waiter final : public ActorInstance {
 public:
  struct Asks {
    uint64_t answered = 0;
    uint64_t most = 0;
    uint64_t noted = UINT64_MAX;
  };

  Waiter(size_t coroutines, ActorRef server, Asks* asks) : coroutines_(coroutines), server_(server), asks_(*asks) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Count>()) {
      asks_.noted = asks_.answered;
      return absl::OkStatus();
    }
    for (size_t i = 0; i < coroutines_; ++i) {
      if (absl::Status begun = context.Run(AskAgain(context, server_, asks_)); !begun.ok()) return begun;
    }
    return absl::OkStatus();
  }

 private:
  static Task<void> AskAgain(ActorContext& context, ActorRef server, Asks& asks) {
    while (asks.answered < asks.most) {
      auto reply = context.Ask<uint64_t>(server, Again{}, absl::Hours(1));
      EXPECT_TRUE((co_await reply).ok());
      ++asks.answered;
    }
  }

  const size_t coroutines_;
  const ActorRef server_;
  Asks& asks_;
};

// SCH-14
TEST(SystemFairness, LetsAnActorHandleAMessageBesideItsCoroutines) {
  constexpr size_t kCoroutines = 3000;
  LocalSystem system(1);
  Waiter::Asks asks{.most = 20 * kCoroutines};
  const ActorRef server = system->TrySpawn(PropsOf<Replier>()).value();
  const ActorRef waiter = system->TrySpawn(*MakeProps<Waiter>({}, size_t{kCoroutines}, server, &asks)).value();
  Tell(waiter, Again{});
  ASSERT_TRUE(system.toolbox().RunUntil([&] { return asks.answered >= kCoroutines; }, absl::Hours(1)).ok());
  const uint64_t before = asks.answered;
  Tell(waiter, Count{});
  ASSERT_TRUE(system.toolbox().RunUntilIdle().ok());
  EXPECT_GE(asks.answered, asks.most);
  EXPECT_LE(asks.noted, before + 2 * kCoroutines);
}

// Sends many asks at once, and counts the errors that end them.
class UnluckyAsker final : public ActorInstance {
 public:
  UnluckyAsker(size_t asks, ActorRef target, absl::Duration timeout, size_t* errors)
      : asks_(asks), target_(target), timeout_(timeout), errors_(*errors) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    for (size_t i = 0; i < asks_; ++i) {
      const auto ask = context.AskOnReply(target_, Again{}, timeout_);
      if (!ask.ok()) return ask.status();
    }
    return absl::OkStatus();
  }
  absl::Status OnReply(ActorContext&, ActorRef, absl::StatusOr<Envelope*> reply) override {
    if (!reply.ok()) ++errors_;
    return absl::OkStatus();
  }

 private:
  const size_t asks_;
  const ActorRef target_;
  const absl::Duration timeout_;
  size_t& errors_;
};

class Silent final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

// Sends itself a message in each turn until all asks have ended, and counts how many of them end
// between two of its turns.
class Onlooker final : public ActorInstance {
 public:
  Onlooker(size_t asks, std::function<size_t()> ended, size_t* most)
      : asks_(asks), ended_(std::move(ended)), most_(*most) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    const size_t now = ended_();
    most_ = std::max(most_, now - before_);
    before_ = now;
    if (now < asks_) context.Tell(context.self(), Again{});
    return absl::OkStatus();
  }

 private:
  const size_t asks_;
  const std::function<size_t()> ended_;
  size_t before_ = 0;
  size_t& most_;
};

constexpr size_t kLateAsks = 100'000 / kScale;
constexpr absl::Duration kAskTimeout = absl::Seconds(5);

// SCH-14
TEST(SystemFairness, LetsANeighbourHaveItsTurnWhileAsksOfAnActorTimeOut) {
  LocalSystem system(1);
  size_t errors = 0;
  size_t most = 0;
  const ActorRef target = system->TrySpawn(PropsOf<Silent>()).value();
  const ActorRef onlooker = system
                                ->TrySpawn(*MakeProps<Onlooker>(
                                    {}, size_t{kLateAsks}, [&] { return errors; }, &most))
                                .value();
  // The timer that was armed first fires first.
  ASSERT_TRUE(system.toolbox().ScheduleAfter(kAskTimeout, [=] { Tell(onlooker, Again{}); }).ok());
  Tell(system->TrySpawn(*MakeProps<UnluckyAsker>({}, size_t{kLateAsks}, target, kAskTimeout, &errors)).value(),
       Again{});
  ASSERT_TRUE(system.toolbox().RunFor(2 * kAskTimeout).ok());
  EXPECT_EQ(errors, kLateAsks);
  EXPECT_LE(most, 2u) << "asks that fail in one turn, where the budget is one message";
}

// SCH-14
// All asks of threads belong to one actor of the system pool. They fail after the status report of
// a target that lives, and at once if it has ended.
TEST(SystemFairness, LetsANeighbourHaveItsTurnWhileAsksOfThreadsTimeOut) {
  for (const bool target_ends : {false, true}) {
    std::vector<Future<uint64_t>> asks;
    auto ended = [&asks, first = size_t{0}]() mutable {
      while (first < asks.size() && asks[first].IsReady()) ++first;
      return first;
    };
    LocalSystem system(1);
    size_t most = 0;
    const ActorRef target = system->TrySpawn(PropsOf<Silent>()).value();
    const ActorRef onlooker =
        system
            ->TrySpawn(*MakeProps<Onlooker>({.dispatcher = DispatcherChoice::kSystem}, size_t{kLateAsks}, ended, &most))
            .value();
    ASSERT_TRUE(system.toolbox().ScheduleAfter(kAskTimeout, [=] { Tell(onlooker, Again{}); }).ok());
    for (size_t i = 0; i < kLateAsks; ++i) asks.push_back(system->Ask(target, Question{}, kAskTimeout));
    ASSERT_TRUE(system.toolbox().RunFor(kAskTimeout / 2).ok());
    if (target_ends) system->Stop(target);
    ASSERT_TRUE(system.toolbox().RunFor(kAskTimeout).ok());
    EXPECT_EQ(ended(), kLateAsks);
    EXPECT_LE(most, 2u) << "asks that fail in one turn, where the budget is one message; the target "
                        << (target_ends ? "has ended" : "lives");
  }
}

// SCH-14
// Each worker is busy with ten actors when one of them gets 4 000 more.
TEST(SystemFairness, GivesFourThousandActorsOfOneWorkerAsManyTurnsAsTheTenOfTheOther) {
  constexpr size_t kFew = 20;
  constexpr size_t kMany = 4'000;
  Turns turns(kFew + kMany);
  LocalSystem system(2);
  const std::vector<ActorRef> few = SpawnSelfSenders(*system, turns, 0, kFew);
  const std::vector<ActorRef> many = SpawnSelfSenders(*system, turns, kFew, kMany);
  const ActorRef seeder = system->TrySpawn(PropsOf<Seeder>()).value();
  Tell(seeder, Seed{&few});
  const auto both_run = [&] { return turns.total.load() >= 6 * kFew; };
  ASSERT_TRUE(system.toolbox().RunUntil(both_run, absl::Hours(1)).ok());
  Tell(seeder, Seed{&many});
  EXPECT_LE(system.Unfairness(turns), 8);
}

// Tells actors something as a foreign thread, while the worker that calls it waits.
class ForeignThread {
 public:
  ~ForeignThread() {
    Tell(ActorRef());
    thread_.join();
  }

  void Tell(ActorRef to) {
    to_ = to;
    begin_.release();
    done_.acquire();
  }

 private:
  void Run() {
    for (;;) {
      begin_.acquire();
      const bool is_over = to_.IsNoOne();
      if (!is_over) fraktor::Tell(to_, Again{});
      done_.release();
      if (is_over) return;
    }
  }

  ActorRef to_;
  std::binary_semaphore begin_{0};
  std::binary_semaphore done_{0};
  std::thread thread_{[this] { Run(); }};
};

class Interruption final : public ActorInstance {
 public:
  Interruption(Turns* turns, uint64_t* waited, uint64_t* sent_at)
      : turns_(*turns), waited_(*waited), sent_at_(*sent_at) {}

  absl::Status Receive(ActorContext&, Envelope&) override {
    waited_ = std::max(waited_, turns_.total.load() - sent_at_);
    return absl::OkStatus();
  }

 private:
  Turns& turns_;
  uint64_t& waited_;
  uint64_t& sent_at_;
};

// Lets a foreign thread send a message in the middle of each of its turns.
class Interrupted final : public ActorInstance {
 public:
  Interrupted(Turns* turns, size_t number, ForeignThread* foreign, ActorRef interruption, uint64_t* sent_at)
      : turns_(*turns), number_(number), foreign_(*foreign), interruption_(interruption), sent_at_(*sent_at) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    const bool goes_on = turns_.Count(number_);
    sent_at_ = turns_.total.load();
    foreign_.Tell(interruption_);
    if (goes_on) context.Tell(context.self(), Again{});
    return absl::OkStatus();
  }

 private:
  Turns& turns_;
  const size_t number_;
  ForeignThread& foreign_;
  const ActorRef interruption_;
  uint64_t& sent_at_;
};

// SCH-14
// Counted in turns, so that it does not matter how long they take.
TEST(SystemFairness, LetsAForeignMessageWaitForFewTurns) {
  for (const int workers : {1, 2}) {
    constexpr size_t kSenders = 20'000;
    Turns turns(kSenders + 1);
    ForeignThread foreign;
    LocalSystem system(workers);
    uint64_t sent_at = 0;
    uint64_t waited = 0;
    const ActorRef interruption = system->TrySpawn(*MakeProps<Interruption>({}, &turns, &waited, &sent_at)).value();
    std::vector<ActorRef> actors = SpawnSelfSenders(*system, turns, 0, kSenders);
    actors.push_back(
        system->TrySpawn(*MakeProps<Interrupted>({}, &turns, kSenders, &foreign, interruption, &sent_at)).value());
    Tell(system->TrySpawn(PropsOf<Seeder>()).value(), Seed{&actors});
    EXPECT_LE(system.Unfairness(turns), 8);
    std::cout << workers << " workers: a foreign message waited for " << waited << " turns at most\n";
    EXPECT_LE(waited, 2u) << workers << " workers";
  }
}

struct Partner {
  ActorRef actor;
};

// Lets a foreign thread tell its partner something in each turn, which is idle.
class Flooded final : public ActorInstance {
 public:
  Flooded(Turns* turns, size_t number, ForeignThread* foreign) : turns_(*turns), number_(number), foreign_(*foreign) {}

  absl::Status Receive(ActorContext&, Envelope& message) override {
    if (const auto* partner = message.TryAs<Partner>()) {
      partner_ = partner->actor;
    } else if (turns_.Count(number_)) {
      foreign_.Tell(partner_);
    }
    return absl::OkStatus();
  }

 private:
  Turns& turns_;
  const size_t number_;
  ForeignThread& foreign_;
  ActorRef partner_;
};

// SCH-14
// There is always an actor that a foreign thread has scheduled. A worker takes at most every
// second one of those.
TEST(SystemFairness, LetsLocalActorsHaveHalfOfTheTurnsBesideAForeignFlood) {
  for (const int workers : {1, 2}) {
    constexpr size_t kSenders = 100;
    constexpr size_t kFlooded = 20;
    constexpr uint64_t kFlood = 4'000;
    Turns local(kSenders, Turns::Until::kTold);
    Turns flood(kFlooded, Turns::Until::kTold);
    ForeignThread foreign;
    LocalSystem system(workers);
    const std::vector<ActorRef> senders = SpawnSelfSenders(*system, local, 0, kSenders);
    std::vector<ActorRef> flooded;
    for (size_t i = 0; i < kFlooded; ++i) {
      flooded.push_back(system->TrySpawn(*MakeProps<Flooded>({}, &flood, i, &foreign)).value());
    }
    for (size_t i = 0; i < kFlooded; ++i) Tell(flooded[i], Partner{flooded[i ^ 1]});
    ASSERT_TRUE(system.toolbox().RunUntilIdle().ok());
    for (size_t i = 0; i < kFlooded; i += 2) Tell(flooded[i], Again{});
    Tell(system->TrySpawn(PropsOf<Seeder>()).value(), Seed{&senders});
    const auto is_over = [&] { return flood.total.load() >= kFlood; };
    ASSERT_TRUE(system.toolbox().RunUntil(is_over, absl::Hours(1)).ok());
    EXPECT_LE(local.Unfairness(), 8) << workers << " workers";
    std::cout << workers << " workers: " << local.total.load() << " local turns, " << flood.total.load()
              << " of the flood\n";
    // A worker without local actors takes foreign ones until it looks at the other's ring.
    EXPECT_GE(local.total.load(), flood.total.load() - 64 * static_cast<uint64_t>(workers)) << workers << " workers";
    local.end.store(true);
    flood.end.store(true);
    ASSERT_TRUE(system.toolbox().RunUntilIdle().ok());
  }
}

// With threads.

// SCH-14
// The thread reads the number of turns when its message is in the run queue. From then on one
// worker ends the turn that it is in, and has another one at most before the oracle's: the system
// may stop the worker at any time, but then nobody has turns. With two workers there is no bound:
// the one that has taken the oracle may be stopped, for as long as the system likes, while the
// other one goes on.
TEST(SystemFairnessWithThreads, LetsEverybodyHaveTurnsAndAnswersAsks) {
  for (const int workers : {1, 2}) {
    constexpr size_t kSenders = 20'000 / kScale;
    constexpr int kAsks = 20;
    Turns turns(kSenders);
    const std::unique_ptr<ActorSystem> system = ActorSystem::Create(OneMessagePerTurn(workers)).value();
    const std::vector<ActorRef> senders = SpawnSelfSenders(*system, turns, 0, kSenders);
    const PropsPtr oracles = MakeProps<Oracle>({}, &turns);
    Tell(system->TrySpawn(PropsOf<Seeder>()).value(), Seed{&senders});
    // The watch has put actors into the queue of foreign threads while the seeder was busy. All of
    // them have left it when all senders have had a turn.
    for (const auto& turns_of_sender : turns.of) {
      while (turns_of_sender.load() == 0) std::this_thread::yield();
    }
    uint64_t most_turns = 0;
    absl::Duration longest;
    for (int i = 0; i < kAsks; ++i) {
      // Another oracle each time, which is idle: one that is still in its turn would go behind the
      // senders.
      const ActorRef oracle = system->TrySpawn(*oracles).value();
      const absl::Time asked_at = absl::Now();
      Future<uint64_t> asking = system->Ask(oracle, Question{}, absl::InfiniteDuration());
      // A read-modify-write returns the newest number of turns. A load might return an earlier one,
      // and the turns up to the ask would count as turns before the reply.
      const uint64_t asked = turns.total.fetch_add(0, std::memory_order_acq_rel);
      const absl::StatusOr<uint64_t> reply = asking.Wait();
      ASSERT_TRUE(reply.ok()) << reply.status();
      longest = std::max(longest, absl::Now() - asked_at);
      most_turns = std::max(most_turns, *reply - std::min(asked, *reply));
    }
    std::cout << workers << " workers: an ask took " << longest << " and " << most_turns << " turns at most\n";
    if (workers == 1) {
      EXPECT_LE(most_turns, 2u);
    }
    ASSERT_TRUE(system->scheduler().dispatchers().AwaitQuiet(absl::InfiniteDuration()));
    turns.Unfairness();
    EXPECT_TRUE(turns.IsOver()) << kSenders - turns.satisfied.load() << " of " << kSenders << " actors have not had "
                                << kTurns << " of " << turns.total.load() << " turns";
  }
}

}  // namespace
}  // namespace fraktor
