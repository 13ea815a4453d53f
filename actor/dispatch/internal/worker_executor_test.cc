#include "fraktor/actor/dispatch/internal/worker_executor.h"

#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/each_toolbox.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/work_stealing_coordinator.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::actor_internal {

using utils_internal::TableSlot;

namespace {

struct Ball {
  int bounces = 0;
};
struct StopNow {};
struct Suspend {};
struct Resume {};
// A system message that is followed by `more` others of its type, one after the other. The first
// one sends a Ball to `other`, unless that is no one.
struct Flood {
  int more = 0;
  ActorRef other = {};
};

// A minimal lifecycle: actors stop on StopNow, and their slots are released.
class TestLifecycle : public ActorLifecycle {
 public:
  explicit TestLifecycle(bool threaded) : mailboxes(threaded) {}

  ActorRef SpawnOn(const WorkerExecutor& executor, std::unique_ptr<ActorInstance> instance, uint16_t type = 0) {
    ActorSlot* const slot =
        mailboxes.Register({.instance = instance.get(), .dispatcher = executor.number(), .type = type}).value();
    instances.push_back(std::move(instance));
    alive.fetch_add(1);
    const ActorRef ref = slot->ref();
    MailboxRegistry::LetGo(*slot);
    return ref;
  }

  absl::Status OnStart(ActorSlot&) override { return absl::OkStatus(); }

  void OnSystemMessage(Turn turn, Envelope& message) override {
    if (message.Is<Suspend>()) {
      turn.state().Set(Gate::kUserDefined);
    } else if (message.Is<Resume>()) {
      turn.state().Clear(Gate::kUserDefined);
    } else if (const auto* flood = message.TryAs<Flood>()) {
      if (!flood->other.IsNoOne()) Tell(flood->other, Ball{});
      if (flood->more > 0) TellSystem(turn.slot.ref(), MakeEnvelope<Flood>(ActorRef(), flood->more - 1));
    } else {
      turn.state().Set(Gate::kStopping);
    }
    system_messages.fetch_add(1);
  }
  void OnFailure(Turn, const absl::Status& error, FailureCause, Envelope*) override { ADD_FAILURE() << error; }
  bool StopChildrenFirst(ActorSlot&) override { return true; }
  void OnEnding(Turn turn) override {
    turn.slot.instance = nullptr;
    MailboxRegistry::Unregister(turn.slot);
  }
  void OnEnded(Turn turn) override {
    mailboxes.Release(turn.slot);
    if (alive.fetch_sub(1) == 1) all_ended.release();
  }
  void OnDeadLetter(NodeCache&, EnvelopePtr, TableSlot*, DeadLetterReason) override { dead_letters.fetch_add(1); }

  std::atomic<int> alive{0};
  std::atomic<int> dead_letters{0};
  std::atomic<int> system_messages{0};
  std::vector<std::unique_ptr<ActorInstance>> instances;  // Only the test's thread uses it.
  std::binary_semaphore all_ended{0};
  MailboxRegistry mailboxes;
};

// Sends the ball back until it has bounced often enough.
class Player final : public ActorInstance {
 public:
  Player(std::atomic<int>& games, std::counting_semaphore<>& over, int bounces)
      : games_(games), over_(over), bounces_(bounces) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const int bounces = message.As<Ball>().bounces;
    if (bounces < bounces_) {
      context.Tell(partner.IsNoOne() ? context.sender() : partner, Ball{bounces + 1});
    } else {
      games_.fetch_add(1);
      over_.release();
    }
    return absl::OkStatus();
  }

  ActorRef partner;

 private:
  std::atomic<int>& games_;
  std::counting_semaphore<>& over_;
  const int bounces_;
};

// An actor made of a function.
class Scripted final : public ActorInstance {
 public:
  using Script = std::function<void(ActorContext&, Envelope&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    script_(context, message);
    return absl::OkStatus();
  }

 private:
  Script script_;
};

class CountingMiddleware final : public InvokerMiddleware {
 public:
  MiddlewareFlow BeforeReceive(const Interception&) override {
    before.fetch_add(1);
    return MiddlewareFlow::Continue();
  }
  void AfterReceive(const Interception&, const absl::Status&) override { after.fetch_add(1); }

  std::atomic<int> before{0};
  std::atomic<int> after{0};
};

// SCH-12 in small: pairs of actors send to each other, on each toolbox and with both coordinators.
class WorkerExecutorTest : public testing::TestWithParam<ToolboxKind> {
 protected:
  ExecutorServices Services() { return {*toolbox_, lifecycle_, lifecycle_.mailboxes}; }

  bool has_threads() const { return GetParam() == ToolboxKind::kStd; }

  ActorRef Spawn(const WorkerExecutor& executor, Scripted::Script script, uint16_t type = 0) {
    return lifecycle_.SpawnOn(executor, std::make_unique<Scripted>(std::move(script)), type);
  }

  // Runs everything that can run now.
  void Settle(WorkerExecutor& executor) {
    if (!has_threads()) {
      ASSERT_TRUE(static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle().ok());
    }
    ASSERT_TRUE(executor.AwaitQuiet(absl::InfiniteDuration()));
  }

  // Lets the workers run until `semaphore` can be taken.
  template <class Semaphore>
  void Await(Semaphore& semaphore) {
    if (GetParam() == ToolboxKind::kStd) {
      semaphore.acquire();
    } else {
      ASSERT_TRUE(static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle().ok());
      ASSERT_TRUE(semaphore.try_acquire());
    }
  }

  void Play(CoordinatorKind coordinator, int workers) {
    constexpr int kPairs = 10;
    constexpr int kBounces = 1000;
    auto executor = WorkerExecutor::Start({.workers = workers, .coordinator = coordinator}, Services());
    ASSERT_TRUE(executor.ok()) << executor.status();
    std::atomic<int> games{0};
    std::counting_semaphore<> over{0};
    std::vector<ActorRef> players;
    std::vector<ActorRef> starters;
    for (int i = 0; i < kPairs; ++i) {
      players.push_back(lifecycle_.SpawnOn(**executor, std::make_unique<Player>(games, over, kBounces)));
      auto starter = std::make_unique<Player>(games, over, kBounces);
      starter->partner = players.back();
      starters.push_back(lifecycle_.SpawnOn(**executor, std::move(starter)));
      players.push_back(starters.back());
    }
    for (ActorRef starter : starters) Tell(starter, Ball{});
    for (int i = 0; i < kPairs; ++i) Await(over);
    EXPECT_EQ(games.load(), kPairs);
    EXPECT_EQ(lifecycle_.dead_letters.load(), 0);

    for (ActorRef player : players) TellSystem(player, MakeEnvelope<StopNow>(ActorRef()));
    Await(lifecycle_.all_ended);
    Tell(players[0], Ball{});  // From a foreign thread: counted by the process.
    (*executor)->Stop();
  }

  std::unique_ptr<RuntimeToolbox> toolbox_ = MakeToolbox(GetParam());
  TestLifecycle lifecycle_{GetParam() == ToolboxKind::kStd};
};

TEST_P(WorkerExecutorTest, RunsActorsOnOneWorker) { Play(CoordinatorKind::kWorkStealing, 1); }
TEST_P(WorkerExecutorTest, RunsActorsOnThreeWorkers) { Play(CoordinatorKind::kWorkStealing, 3); }
TEST_P(WorkerExecutorTest, RunsActorsOnOneList) { Play(CoordinatorKind::kMutex, 2); }

// Otherwise the second executor could run an actor of the first one, which still exists.
TEST_P(WorkerExecutorTest, LeavesItsNumberToNobodyWhileItsActorsAreThere) {
  auto first = WorkerExecutor::Start({}, Services()).value();
  const uint16_t number = first->number();
  first.reset();
  EXPECT_NE(WorkerExecutor::Start({}, Services()).value()->number(), number);
  auto pinned = WorkerExecutor::Start({}, Services()).value();
  const uint16_t free = pinned->number();
  pinned->StopSoonFor(number);
  pinned.reset();
  EXPECT_EQ(WorkerExecutor::Start({}, Services()).value()->number(), free) << "its only actor had ended";
}

// Otherwise a program that tries again and again, as with pinned actors, uses up all numbers.
TEST_P(WorkerExecutorTest, GivesItsNumberBackIfItCannotStart) {
  const std::unique_ptr<RuntimeToolbox> small = MakeToolbox(GetParam(), /*max_workers=*/1);
  const auto other = WorkerExecutor::Start({}, Services()).value();
  auto pinned = WorkerExecutor::Start({}, Services()).value();
  const uint16_t free = pinned->number();
  pinned->StopSoonFor(other->number());
  pinned.reset();
  ASSERT_FALSE(WorkerExecutor::Start({.workers = 2}, {*small, lifecycle_, lifecycle_.mailboxes}).ok());
  EXPECT_EQ(WorkerExecutor::Start({}, Services()).value()->number(), free);
}

TEST_P(WorkerExecutorTest, RunsWhatComesAfterItHasBeenIdle) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::atomic<int> games{0};
  std::counting_semaphore<> over{0};
  ActorRef player = lifecycle_.SpawnOn(*executor, std::make_unique<Player>(games, over, 0));
  for (int i = 0; i < 100; ++i) {
    Tell(player, Ball{});
    Await(over);
  }
  EXPECT_EQ(games.load(), 100);
  TellSystem(player, MakeEnvelope<StopNow>(ActorRef()));
  Await(lifecycle_.all_ended);
  executor->Stop();
}

// SCH-8
TEST_P(WorkerExecutorTest, LetsOthersHaveTheirTurnBesidesAFullMailbox) {
  constexpr int kFlood = 100;
  constexpr int kBudget = 4;
  auto executor = WorkerExecutor::Start({.budget = kBudget}, Services()).value();
  std::atomic<int> flooded{0};
  int before_the_other = -1;
  std::binary_semaphore over{0};
  const ActorRef busy = Spawn(*executor, [&](ActorContext&, Envelope&) {
    if (flooded.fetch_add(1) + 1 == kFlood) over.release();
  });
  const ActorRef other = Spawn(*executor, [&](ActorContext&, Envelope&) { before_the_other = flooded.load(); });
  const ActorRef source = Spawn(*executor, [&](ActorContext& context, Envelope&) {
    for (int i = 0; i < kFlood; ++i) context.Tell(busy, Ball{});
    context.Tell(other, Ball{});
  });
  Tell(source, Ball{});
  Await(over);
  executor->Stop();
  if (GetParam() == ToolboxKind::kSim) {
    // The seed chooses among the two again and again.
    EXPECT_GE(before_the_other, 0);
    EXPECT_EQ(before_the_other % kBudget, 0);
  } else if (GetParam() == ToolboxKind::kLocal) {
    EXPECT_EQ(before_the_other, kBudget);
  }
  EXPECT_LT(before_the_other, kFlood);
}

// SCH-14: while an actor handles a system message the next one comes. The other actor gets its
// message during the flood, so that it can only run between two turns of the flooded one.
TEST_P(WorkerExecutorTest, LetsOthersHaveTheirTurnBesidesAFloodOfSystemMessages) {
  constexpr int kFlood = 1000;
  constexpr int kBudget = 4;
  auto executor = WorkerExecutor::Start({.budget = kBudget}, Services()).value();
  int before_the_other = -1;
  const ActorRef flooded = Spawn(*executor, [](ActorContext&, Envelope&) {});
  const ActorRef other =
      Spawn(*executor, [&](ActorContext&, Envelope&) { before_the_other = lifecycle_.system_messages.load(); });
  TellSystem(flooded, MakeEnvelope<Flood>(ActorRef(), kFlood - 1, other));
  Settle(*executor);
  executor->Stop();
  EXPECT_EQ(lifecycle_.system_messages.load(), kFlood);
  EXPECT_GE(before_the_other, 1);
  if (GetParam() == ToolboxKind::kSim) {
    // The seed chooses among the two again and again.
    EXPECT_LT(before_the_other, kFlood);
  } else {
    EXPECT_LE(before_the_other, kBudget);
  }
}

TEST_P(WorkerExecutorTest, KnowsWhenItIsQuiet) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
  const bool blocks = has_threads();
  const ActorRef actor = Spawn(*executor, [&](ActorContext&, Envelope&) {
    begun.release();
    if (blocks) go_on.acquire();
  });
  Settle(*executor);
  for (int i = 0; i < 10; ++i) {
    Tell(actor, Ball{});
    if (blocks) begun.acquire();
    EXPECT_FALSE(executor->AwaitQuiet(absl::ZeroDuration()));
    EXPECT_FALSE(executor->IsQuiet());
    go_on.release();
    Settle(*executor);
    EXPECT_EQ(begun.try_acquire(), !blocks);
    EXPECT_TRUE(executor->AwaitQuiet(absl::Hours(24 * 365 * 200))) << "more than a clock can add";
    if (!blocks) {
      EXPECT_TRUE(go_on.try_acquire());
    }
  }
  executor->Stop();
}

TEST_P(WorkerExecutorTest, IsNotWaitedForOnceItIsStopped) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  Settle(*executor);
  executor->Stop();
  EXPECT_EQ(executor->AwaitQuiet(absl::InfiniteDuration()), !has_threads());
}

// SCH-9
TEST_P(WorkerExecutorTest, RunsNothingAfterTheRunInWhichItIsStopped) {
  // The watch would take the deferred actor of the run, and find the executor closed.
  auto executor =
      WorkerExecutor::Start({.runs_per_step = 100, .watch = {.publish_after = absl::Seconds(1)}}, Services()).value();
  std::atomic<int> others{0};
  std::atomic<int> own{0};
  std::vector<ActorRef> peers;
  for (int i = 0; i < 30; ++i) {
    peers.push_back(Spawn(*executor, [&](ActorContext&, Envelope&) { others.fetch_add(1); }));
  }
  const ActorRef idle = Spawn(*executor, [&](ActorContext&, Envelope&) { others.fetch_add(1); });
  const ActorRef stopper = Spawn(*executor, [&](ActorContext& context, Envelope&) {
    if (own.fetch_add(1) > 0) return;
    for (ActorRef peer : peers) context.Tell(peer, Ball{});
    context.Tell(context.self(), Ball{});
    EXPECT_FALSE(executor->IsStopped());
    executor->StopSoon();
    EXPECT_FALSE(executor->IsStopped()) << "this run has not ended";
    executor->StopSoon();
  });
  Tell(stopper, Ball{});
  if (has_threads()) {
    while (!executor->IsStopped()) std::this_thread::yield();
  } else {
    ASSERT_TRUE(static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle().ok());
  }
  EXPECT_TRUE(executor->IsStopped());
  executor->Stop();
  EXPECT_EQ(own.load(), 2) << "the run goes on to its end";
  EXPECT_EQ(others.load(), 0);
  EXPECT_EQ(executor->coordinator().ReadyCountHint(), peers.size()) << "who is ready stays so";
  // Messages to an idle actor are dead letters from now on, from any sender.
  const uint64_t late = DispatcherTable::LateDeadLetters();
  Tell(idle, Ball{});
  EXPECT_EQ(DispatcherTable::LateDeadLetters(), late + 1);
  if (!has_threads()) {
    ASSERT_TRUE(static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle().ok());
  }
  EXPECT_EQ(others.load(), 0);
}

TEST_P(WorkerExecutorTest, MayBeStoppedAgainAndWithoutEverHavingWorked) {
  auto executor = WorkerExecutor::Start({.workers = 3}, Services()).value();
  EXPECT_FALSE(executor->IsStopped());
  executor->Stop();
  EXPECT_TRUE(executor->IsStopped());
  executor->Stop();
  executor->StopSoon();
  EXPECT_TRUE(executor->IsStopped());
}

TEST_P(WorkerExecutorTest, StartsAllWorkersOrNone) {
  const std::unique_ptr<RuntimeToolbox> small = MakeToolbox(GetParam(), /*max_workers=*/3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(WorkerExecutor::Start({.workers = 5}, {*small, lifecycle_, lifecycle_.mailboxes}).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(WorkerExecutor::Start({.workers = 2}, {*small, lifecycle_, lifecycle_.mailboxes}).ok());
}

TEST_P(WorkerExecutorTest, TakesMessagesOfForeignThreads) {
  constexpr int kThreads = 3;
  constexpr int kMessages = 1000;
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::atomic<int> handled{0};
  std::binary_semaphore over{0};
  std::vector<ActorRef> actors;
  for (int i = 0; i < 4; ++i) {
    actors.push_back(Spawn(*executor, [&](ActorContext& context, Envelope&) {
      EXPECT_TRUE(context.sender().IsNoOne());
      if (handled.fetch_add(1) + 1 == kThreads * kMessages) over.release();
    }));
  }
  const auto send = [&] {
    for (int i = 0; i < kMessages; ++i) Tell(actors[static_cast<size_t>(i) % actors.size()], Ball{});
  };
  if (GetParam() == ToolboxKind::kSim) {
    // A simulation runs on one thread.
    for (int i = 0; i < kThreads; ++i) send();
  } else {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(send);
    for (std::thread& thread : threads) thread.join();
  }
  Await(over);
  executor->Stop();
  EXPECT_EQ(handled.load(), kThreads * kMessages);
}

TEST_P(WorkerExecutorTest, PutsItsMiddlewareAroundEachMessage) {
  auto middleware = std::make_shared<CountingMiddleware>();
  auto executor = WorkerExecutor::Start({.workers = 2, .middleware = {middleware}}, Services()).value();
  auto plain = WorkerExecutor::Start({.name = "plain"}, Services()).value();
  std::atomic<int> games{0};
  std::counting_semaphore<> over{0};
  auto starter = std::make_unique<Player>(games, over, 99);
  starter->partner = lifecycle_.SpawnOn(*executor, std::make_unique<Player>(games, over, 99));
  Tell(lifecycle_.SpawnOn(*executor, std::move(starter)), Ball{});
  Await(over);
  Tell(lifecycle_.SpawnOn(*plain, std::make_unique<Player>(games, over, 0)), Ball{});
  Await(over);
  executor->Stop();
  plain->Stop();
  EXPECT_EQ(middleware->before.load(), 100);
  EXPECT_EQ(middleware->after.load(), 100);
}

// SCH-11
TEST_P(WorkerExecutorTest, CountsForTheHub) {
  constexpr int kBounces = 999;
  auto hub = ObservabilityHub::Make().value();
  ExecutorServices services = Services();
  services.hub = hub.get();
  {
    auto executor = WorkerExecutor::Start({.name = "counted", .workers = 2}, services).value();
    EXPECT_EQ(WorkerExecutor::Start({.name = "counted"}, services).status().code(), absl::StatusCode::kAlreadyExists);

    const uint16_t first = hub->TypeId("First");
    const uint16_t second = hub->TypeId("Second");
    std::atomic<int> games{0};
    std::counting_semaphore<> over{0};
    auto starter = std::make_unique<Player>(games, over, kBounces);
    starter->partner = lifecycle_.SpawnOn(*executor, std::make_unique<Player>(games, over, kBounces), second);
    const ActorRef player = lifecycle_.SpawnOn(*executor, std::move(starter), first);
    // An actor sends it, so that all messages of the players come from workers.
    Tell(Spawn(*executor, [&](ActorContext& context, Envelope&) { context.Tell(player, Ball{}); }), Ball{});
    Await(over);
    executor->Stop();

    const Instant now = toolbox_->Now();
    const MetricsSnapshot snapshot = hub->Snapshot(now);
    for (const char* type : {"First", "Second"}) {
      const Metric* const enqueued = snapshot.Find(kMailboxEnqueued, {{"type", type}});
      ASSERT_NE(enqueued, nullptr);
      EXPECT_EQ(enqueued->value, (kBounces + 1) / 2);
      const Metric* const depth = snapshot.Find(kMailboxDepth, {{"type", type}});
      ASSERT_NE(depth, nullptr);
      EXPECT_EQ(depth->value, 0) << "what was enqueued was handled";
    }
    for (const char* worker : {"counted-0", "counted-1"}) {
      const Metric* const busy = snapshot.Find(kWorkerBusyRatio, {{"worker", worker}});
      ASSERT_NE(busy, nullptr);
      EXPECT_GE(busy->value, 0);
      EXPECT_LE(busy->value, 1);
    }
    ASSERT_NE(snapshot.Find(kReadyQueueDepth, {{"dispatcher", "counted"}}), nullptr);
    // About one in 256 messages of each worker.
    const Metric* const latency = snapshot.Find(kLatency);
    ASSERT_NE(latency, nullptr);
    EXPECT_GE(latency->summary.count, 1u);
    EXPECT_LE(latency->summary.count, 6u);
    // Workers that have ended are not busy.
    const MetricsSnapshot later = hub->Snapshot(now + absl::Seconds(1));
    for (const char* worker : {"counted-0", "counted-1"}) {
      EXPECT_EQ(later.Find(kWorkerBusyRatio, {{"worker", worker}})->value, 0);
    }
  }
  const MetricsSnapshot after = hub->Snapshot(toolbox_->Now());
  EXPECT_EQ(after.Find(kReadyQueueDepth, {{"dispatcher", "counted"}}), nullptr);
  EXPECT_EQ(after.Find(kWorkerBusyRatio, {{"worker", "counted-0"}}), nullptr);
  ASSERT_NE(after.Find(kMailboxEnqueued, {{"type", "First"}}), nullptr);
  EXPECT_EQ(after.Find(kMailboxEnqueued, {{"type", "First"}})->value, (kBounces + 1) / 2) << "totals stay";
  EXPECT_TRUE(WorkerExecutor::Start({.name = "counted"}, services).ok()) << "the name is free again";
}

TEST_P(WorkerExecutorTest, ShowsHowManyAreReady) {
  auto hub = ObservabilityHub::Make().value();
  ExecutorServices services = Services();
  services.hub = hub.get();
  auto executor = WorkerExecutor::Start({}, services).value();
  std::atomic<double> seen{-1};
  std::binary_semaphore over{0};
  std::vector<ActorRef> peers;
  for (int i = 0; i < 20; ++i) peers.push_back(Spawn(*executor, [](ActorContext&, Envelope&) {}));
  const ActorRef source = Spawn(*executor, [&](ActorContext& context, Envelope&) {
    for (ActorRef peer : peers) context.Tell(peer, Ball{});
    context.Flush();  // The last one would run next, without being queued.
    seen = hub->Snapshot(toolbox_->Now()).Find(kReadyQueueDepth, {{"dispatcher", "actors"}})->value;
    over.release();
  });
  Tell(source, Ball{});
  Await(over);
  executor->Stop();
  EXPECT_EQ(seen.load(), 20);
}

TEST_P(WorkerExecutorTest, LetsActorsOfTwoExecutorsTalk) {
  constexpr int kPairs = 5;
  auto left = WorkerExecutor::Start({.name = "left", .workers = 2}, Services()).value();
  auto right = WorkerExecutor::Start({.name = "right", .coordinator = CoordinatorKind::kMutex}, Services()).value();
  EXPECT_NE(left->number(), right->number());
  std::atomic<int> games{0};
  std::counting_semaphore<> over{0};
  for (int i = 0; i < kPairs; ++i) {
    auto starter = std::make_unique<Player>(games, over, 1000);
    starter->partner = lifecycle_.SpawnOn(*right, std::make_unique<Player>(games, over, 1000));
    Tell(lifecycle_.SpawnOn(*left, std::move(starter)), Ball{});
  }
  for (int i = 0; i < kPairs; ++i) Await(over);
  left->Stop();
  right->Stop();
  EXPECT_EQ(games.load(), kPairs);
}

TEST_P(WorkerExecutorTest, RunsMoreReadyActorsThanAWorkersRingHolds) {
  constexpr int kActors = 2 * static_cast<int>(WorkStealingCoordinator::kRingCapacity);
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::atomic<int> handled{0};
  std::binary_semaphore over{0};
  std::vector<ActorRef> peers;
  for (int i = 0; i < kActors; ++i) {
    peers.push_back(Spawn(*executor, [&](ActorContext&, Envelope&) {
      if (handled.fetch_add(1) + 1 == 2 * kActors) over.release();
    }));
  }
  const ActorRef source = Spawn(*executor, [&](ActorContext& context, Envelope&) {
    for (ActorRef peer : peers) {
      context.Tell(peer, Ball{});
      context.Tell(peer, Ball{});
    }
  });
  Tell(source, Ball{});
  Await(over);
  executor->Stop();
  EXPECT_EQ(handled.load(), 2 * kActors);
}

// An actor handles a long burst in order, one budget per run.
TEST_P(WorkerExecutorTest, KeepsTheOrderOfALongBurst) {
  constexpr int kMessages = 5000;
  auto executor = WorkerExecutor::Start({.workers = 3, .budget = 7}, Services()).value();
  int next = 0;  // Only the actor uses it.
  std::binary_semaphore over{0};
  const ActorRef sink = Spawn(*executor, [&](ActorContext&, Envelope& message) {
    EXPECT_EQ(message.As<Ball>().bounces, next);
    if (++next == kMessages) over.release();
  });
  const ActorRef source = Spawn(*executor, [&](ActorContext& context, Envelope&) {
    for (int i = 0; i < kMessages; ++i) context.Tell(sink, Ball{i});
  });
  Tell(source, Ball{});
  Await(over);
  executor->Stop();
}

// SCH-8
TEST_P(WorkerExecutorTest, RunsASuspendedActorForSystemMessagesOnly) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::atomic<int> handled{0};
  const ActorRef actor = Spawn(*executor, [&](ActorContext&, Envelope&) { handled.fetch_add(1); });
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  Settle(*executor);
  for (int i = 0; i < 10; ++i) Tell(actor, Ball{});
  Settle(*executor);
  EXPECT_EQ(handled.load(), 0);
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  Settle(*executor);
  EXPECT_EQ(handled.load(), 0);
  EXPECT_EQ(lifecycle_.system_messages.load(), 2);
  TellSystem(actor, MakeEnvelope<Resume>(ActorRef()));
  Settle(*executor);
  EXPECT_EQ(handled.load(), 10);
  executor->Stop();
}

TEST_P(WorkerExecutorTest, CarriesSystemMessagesToAnotherExecutor) {
  auto left = WorkerExecutor::Start({.name = "left"}, Services()).value();
  auto right = WorkerExecutor::Start({.name = "right"}, Services()).value();
  std::counting_semaphore<> handled{0};
  const ActorRef suspended = Spawn(*right, [&](ActorContext&, Envelope&) { handled.release(); });
  const ActorRef boss = Spawn(*left, [&](ActorContext&, Envelope&) {
    EXPECT_EQ(TellSystem(suspended, MakeEnvelope<Resume>(ActorRef())), nullptr);
  });
  for (int i = 0; i < 50; ++i) {
    TellSystem(suspended, MakeEnvelope<Suspend>(ActorRef()));
    Settle(*right);
    Tell(suspended, Ball{});
    Settle(*right);
    EXPECT_FALSE(handled.try_acquire());
    Tell(boss, Ball{});
    Await(handled);
  }
  left->Stop();
  right->Stop();
}

INSTANTIATE_TEST_SUITE_P(All, WorkerExecutorTest, EachToolbox(), NameOfToolbox);

// Both workers are stuck until one has run all actors that the other has scheduled: workers must be
// able to steal them.
TEST(WorkerExecutorOnThreads, LetsWorkersStealFromOneThatIsBusy) {
  auto toolbox = StdToolbox::Make({}).value();
  TestLifecycle lifecycle(/*threaded=*/true);
  auto executor = WorkerExecutor::Start({.workers = 3}, {*toolbox, lifecycle, lifecycle.mailboxes}).value();
  constexpr int kActors = 200;
  std::counting_semaphore<> handled{0};
  std::binary_semaphore over{0};
  std::vector<ActorRef> peers;
  for (int i = 0; i < kActors; ++i) {
    peers.push_back(
        lifecycle.SpawnOn(*executor, std::make_unique<Scripted>([&](ActorContext&, Envelope&) { handled.release(); })));
  }
  const ActorRef source =
      lifecycle.SpawnOn(*executor, std::make_unique<Scripted>([&](ActorContext& context, Envelope&) {
        for (ActorRef peer : peers) context.Tell(peer, Ball{});
        for (int i = 0; i < kActors; ++i) handled.acquire();
        over.release();
      }));
  Tell(source, Ball{});
  over.acquire();
  executor->Stop();
}

TEST(WorkerExecutorOnLocalToolbox, MayBePumpedByOneThreadAfterTheOther) {
  auto toolbox = LocalToolbox::Make({}).value();
  TestLifecycle lifecycle(/*threaded=*/false);
  auto executor = WorkerExecutor::Start({.workers = 2}, {*toolbox, lifecycle, lifecycle.mailboxes}).value();
  std::atomic<int> games{0};
  std::counting_semaphore<> over{0};
  const ActorRef partner = lifecycle.SpawnOn(*executor, std::make_unique<Player>(games, over, 50));
  auto starter = std::make_unique<Player>(games, over, 50);
  starter->partner = partner;
  const ActorRef player = lifecycle.SpawnOn(*executor, std::move(starter));
  for (int i = 0; i < 3; ++i) {
    // The nodes of the thread end with it.
    std::thread([&] {
      Tell(player, Ball{});
      EXPECT_TRUE(toolbox->RunUntilIdle().ok());
    }).join();
  }
  EXPECT_EQ(games.load(), 3);
  executor->Stop();
}

struct SimRun {
  std::vector<int> order;
  uint64_t hash = 0;
};

SimRun RunSimulation(uint64_t seed) {
  auto toolbox = SimToolbox::Make({.seed = seed}).value();
  TestLifecycle lifecycle(/*threaded=*/false);
  auto executor =
      WorkerExecutor::Start({.workers = 2, .budget = 2}, {*toolbox, lifecycle, lifecycle.mailboxes}).value();
  SimRun run;
  std::vector<ActorRef> actors;
  for (int i = 0; i < 6; ++i) {
    actors.push_back(lifecycle.SpawnOn(
        *executor, std::make_unique<Scripted>([&run, &actors, i](ActorContext& context, Envelope& ball) {
          run.order.push_back(i);
          const int bounces = ball.As<Ball>().bounces;
          if (bounces > 0) {
            context.Tell(actors[static_cast<size_t>(i + bounces) % actors.size()], Ball{bounces - 1});
          }
        })));
  }
  for (ActorRef actor : actors) Tell(actor, Ball{10});
  EXPECT_TRUE(toolbox->RunUntilIdle().ok());
  executor->Stop();
  run.hash = toolbox->trace().hash();
  return run;
}

TEST(WorkerExecutorInSimulation, RunsTheSameWayWithTheSameSeed) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SimRun first = RunSimulation(seed);
    const SimRun second = RunSimulation(seed);
    EXPECT_EQ(first.order.size(), 66u);
    EXPECT_EQ(first.order, second.order);
    EXPECT_EQ(first.hash, second.hash);
  }
}

TEST(WorkerExecutorInSimulation, RunsInAnotherOrderWithAnotherSeed) {
  std::set<std::vector<int>> orders;
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SimRun run = RunSimulation(seed);
    orders.insert(run.order);
    hashes.insert(run.hash);
  }
  EXPECT_GT(orders.size(), 5u);
  EXPECT_GT(hashes.size(), 5u);
}

TEST(WorkerExecutorOptions, RefuseAbsurdValuesByName) {
  EXPECT_TRUE(WorkerExecutorOptions().Validate().ok());
  for (const auto& [options, name] : std::vector<std::pair<WorkerExecutorOptions, std::string>>{
           {{.name = ""}, "WorkerExecutorOptions.name has 0 bytes"},
           {{.name = std::string(81, 'x')}, "WorkerExecutorOptions.name has 81 bytes"},
           {{.workers = 0}, "WorkerExecutorOptions.workers is 0"},
           {{.workers = -1}, "WorkerExecutorOptions.workers is -1"},
           {{.workers = 1025}, "WorkerExecutorOptions.workers is 1025"},
           {{.budget = 0}, "WorkerExecutorOptions.budget is 0"},
           {{.budget = 1'000'001}, "WorkerExecutorOptions.budget is 1000001"},
           {{.runs_per_step = -3}, "WorkerExecutorOptions.runs_per_step is -3"},
           {{.runs_per_step = 1'000'001}, "WorkerExecutorOptions.runs_per_step is 1000001"},
           {{.idle_rounds = -1}, "WorkerExecutorOptions.idle_rounds is -1"},
           {{.idle_rounds = 1'000'001}, "WorkerExecutorOptions.idle_rounds is 1000001"},
           {{.watch = {.publish_after = absl::ZeroDuration()}}, "WorkerWatchOptions.publish_after is 0"},
           {{.watch = {.stall_after = absl::ZeroDuration()}}, "WorkerWatchOptions.stall_after is 0"},
           {{.middleware = {nullptr}}, "WorkerExecutorOptions.middleware"}}) {
    const absl::Status status = options.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.ToString().find(name), std::string::npos) << status;
  }
  auto toolbox = LocalToolbox::Make({}).value();
  TestLifecycle lifecycle(/*threaded=*/false);
  EXPECT_EQ(WorkerExecutor::Start({.workers = 0}, {*toolbox, lifecycle, lifecycle.mailboxes}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fraktor::actor_internal
