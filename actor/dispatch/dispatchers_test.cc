#include "fraktor/actor/dispatch/dispatchers.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/tree/internal/tree_fixture.h"

namespace fraktor {

using actor_internal::ActorTree;
using actor_internal::Do;
using actor_internal::ProbeProps;
using actor_internal::TellText;
using actor_internal::TestLog;
using actor_internal::TestSystem;
using actor_internal::Threads;

namespace {

void ExpectRefused(const DispatchersOptions& options, const char* name) {
  const absl::Status refused = options.Validate();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.ToString().find(name), std::string::npos) << refused;
}

TEST(DispatchersOptions, AreRefusedByName) {
  EXPECT_TRUE(DispatchersOptions().Validate().ok());
  ExpectRefused({.default_pool = {.workers = 0}}, "DispatchersOptions.default_pool: WorkerExecutorOptions.workers");
  ExpectRefused({.system_pool = {.budget = 0}}, "DispatchersOptions.system_pool: WorkerExecutorOptions.budget");
  ExpectRefused({.pinned = {.name = ""}}, "DispatchersOptions.pinned: WorkerExecutorOptions.name");
  ExpectRefused({.pinned = {.workers = 2}}, "DispatchersOptions.pinned: workers is 2");
  ExpectRefused({.max_pinned = -1}, "DispatchersOptions.max_pinned is -1");
  ExpectRefused({.max_pinned = 10'001}, "DispatchersOptions.max_pinned is 10001");
  EXPECT_TRUE((DispatchersOptions{.max_pinned = 0}).Validate().ok());
}

TEST(Dispatchers, GiveNumbersBetweenStartAndStopOnly) {
  TestSystem system;
  Dispatchers stopped(DispatchersOptions{});
  for (const DispatcherChoice choice :
       {DispatcherChoice::kAutomatic, DispatcherChoice::kSystem, DispatcherChoice::kPinned}) {
    EXPECT_EQ(stopped.NumberFor(choice).status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(system.dispatchers().NumberFor(choice).ok());
  }
  EXPECT_TRUE(stopped.AwaitQuiet(absl::InfiniteDuration()));
  system.dispatchers().Stop();
  for (const DispatcherChoice choice :
       {DispatcherChoice::kAutomatic, DispatcherChoice::kSystem, DispatcherChoice::kPinned}) {
    EXPECT_EQ(system.dispatchers().NumberFor(choice).status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(Dispatchers, RefuseWhatIsNoChoice) {
  TestSystem system;
  const absl::Status refused = system.dispatchers().NumberFor(static_cast<DispatcherChoice>(9)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "the option dispatcher is 9, which is no DispatcherChoice");
  EXPECT_EQ(system.dispatchers().NumberFor(DispatcherChoice::kDefault).value(),
            system.dispatchers().NumberFor(DispatcherChoice::kAutomatic).value());
}

// A system in which all workers of the default pool are in handlers that block.
class StuckSystem {
 public:
  StuckSystem() : system(Threads(), {}) {
    for (int i = 0; i < 2; ++i) {
      Tell(system.Spawn(*ProbeProps(log, "stuck")), Do{[this](ActorContext&) {
             stuck_.release();
             go_on_.acquire();
             return absl::OkStatus();
           }});
    }
    for (int i = 0; i < 2; ++i) stuck_.acquire();
  }
  ~StuckSystem() { go_on_.release(2); }

 private:
  // The handlers use them until the system has ended.
  std::counting_semaphore<> stuck_{0};
  std::counting_semaphore<> go_on_{0};

 public:
  TestLog log;
  TestSystem system;
};

TEST(Dispatchers, RunTheSystemPoolWhileAllWorkersOfTheDefaultPoolAreStuck) {
  std::binary_semaphore beaten{0};
  StuckSystem stuck;
  const ActorRef heart =
      stuck.system.Spawn(*ProbeProps(stuck.log, "heart", {}, {.dispatcher = DispatcherChoice::kSystem}));
  for (int beat = 0; beat < 100; ++beat) {
    Tell(heart, Do{[&beaten](ActorContext&) {
           beaten.release();
           return absl::OkStatus();
         }});
    beaten.acquire();
  }
}

TEST(Dispatchers, FireTimersWhileAllWorkersOfTheDefaultPoolAreStuck) {
  std::binary_semaphore fired{0};
  StuckSystem stuck;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(stuck.system.toolbox().ScheduleAfter(absl::Milliseconds(1), [&fired] { fired.release(); }).ok());
    fired.acquire();
  }
}

TEST(Dispatchers, RunAPinnedActorWhileAllWorkersOfTheDefaultPoolAreStuck) {
  std::binary_semaphore ran{0};
  StuckSystem stuck;
  const ActorRef pinned =
      stuck.system.Spawn(*ProbeProps(stuck.log, "pinned", {}, {.dispatcher = DispatcherChoice::kPinned}));
  Tell(pinned, Do{[&ran](ActorContext&) {
         ran.release();
         return absl::OkStatus();
       }});
  ran.acquire();
}

TEST(Dispatchers, AreNotQuietWhileSomebodyIsStuck) {
  StuckSystem stuck;
  EXPECT_FALSE(stuck.system.dispatchers().AwaitQuiet(absl::Milliseconds(1)));
}

// A ball goes between actors of three pools. At any time some pools are quiet, but never all.
TEST(Dispatchers, AreNotQuietAsLongAsOneGivesAnotherSomethingToDo) {
  constexpr int kRounds = kIsSanitized ? 200 : 1000;
  constexpr int kHops = 30;
  TestLog log;
  TestSystem system(Threads(), {});
  std::vector<ActorRef> players;
  for (const DispatcherChoice choice :
       {DispatcherChoice::kAutomatic, DispatcherChoice::kSystem, DispatcherChoice::kPinned}) {
    players.push_back(system.Spawn(*ProbeProps(log, "player", {}, {.dispatcher = choice})));
  }
  std::atomic<int> hops{0};
  std::function<absl::Status(ActorContext&)> hop = [&](ActorContext& context) {
    const int hopped = hops.fetch_add(1) + 1;
    if (hopped < kHops) context.Tell(players[static_cast<size_t>(hopped) % players.size()], Do{hop});
    return absl::OkStatus();
  };
  for (int round = 0; round < kRounds; ++round) {
    hops.store(0);
    Tell(players[0], Do{hop});
    ASSERT_TRUE(system.dispatchers().AwaitQuiet(absl::InfiniteDuration()));
    ASSERT_EQ(hops.load(), kHops);
  }
}

TEST(Dispatchers, WaitForPinnedActorsThatEndMeanwhile) {
  constexpr int kRounds = kIsSanitized ? 30 : 100;
  TestLog log;
  TestSystem system(Threads(), {});
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 4; ++i) {
      const ActorRef pinned = system.Spawn(*ProbeProps(log, "pinned", {}, {.dispatcher = DispatcherChoice::kPinned}));
      ActorTree::Stop(pinned);
    }
    ASSERT_TRUE(system.dispatchers().AwaitQuiet(absl::InfiniteDuration()));
    ASSERT_EQ(system.dispatchers().pinned_count(), 0u);
  }
}

TEST(Dispatchers, DoNotWaitWhereNobodyElseRuns) {
  TestLog log;
  TestSystem system;
  EXPECT_TRUE(system.dispatchers().AwaitQuiet(absl::InfiniteDuration()));
  const ActorRef actor = system.Spawn(*ProbeProps(log, "actor"));
  EXPECT_FALSE(system.dispatchers().AwaitQuiet(absl::InfiniteDuration()));
  system.Settle();
  TellText(actor, "a");
  EXPECT_FALSE(system.dispatchers().AwaitQuiet(absl::InfiniteDuration()));
}

// A system that is being stopped: Stop waits for the end of a handler on one of the pools.
class StoppingSystem {
 public:
  explicit StoppingSystem(const DispatcherSelector& busy)
      : system(Threads(),
               {.scheduler = {.dispatchers = {.named = {{.name = "db", .may_block = true}, {.name = "reports"}}}}}),
        busy_(busy) {}
  ~StoppingSystem() {
    finish_.release();
    if (stopper_.joinable()) stopper_.join();
  }

  void BeginStop() {
    Tell(system.Spawn(*ProbeProps(log, "busy", {}, {.dispatcher = busy_})), Do{[this](ActorContext&) {
           running_.release();
           finish_.acquire();
           return absl::OkStatus();
         }});
    running_.acquire();
    stopper_ = std::thread([this] { system.dispatchers().Stop(); });
    while (system.dispatchers().NumberFor(DispatcherChoice::kDefault).ok()) std::this_thread::yield();
  }

  TestLog log;
  TestSystem system;

 private:
  const DispatcherSelector busy_;
  std::binary_semaphore running_{0};
  std::binary_semaphore finish_{0};
  std::thread stopper_;
};

// Only a test that fails waits this long.
constexpr std::chrono::seconds kTooLong(20);

bool IsServedWhileStopping(const DispatcherSelector& busy, const DispatcherSelector& serving) {
  constexpr int kRounds = 1000;
  std::binary_semaphore served{0};
  StoppingSystem stopping(busy);
  const ActorRef server = stopping.system.Spawn(*ProbeProps(stopping.log, "server", {}, {.dispatcher = serving}));
  stopping.BeginStop();
  for (int round = 0; round < kRounds; ++round) {
    Tell(server, Do{[&served](ActorContext&) {
           served.release();
           return absl::OkStatus();
         }});
    if (!served.try_acquire_for(kTooLong)) return false;
  }
  return true;
}

// A handler that blocks may wait for any actor.
TEST(Dispatchers, StopPoolsThatMayBlockBeforeThoseThatTheyWaitFor) {
  for (const DispatcherSelector& busy : {DispatcherSelector(DispatcherChoice::kPinned), DispatcherSelector("db")}) {
    ASSERT_TRUE(IsServedWhileStopping(busy, DispatcherChoice::kDefault)) << busy.name();
    ASSERT_TRUE(IsServedWhileStopping(busy, DispatcherChoice::kSystem)) << busy.name();
    ASSERT_TRUE(IsServedWhileStopping(busy, "reports")) << busy.name();
  }
}

// Late messages for pinned actors go to the default pool.
TEST(Dispatchers, StopTheDefaultPoolLast) {
  ASSERT_TRUE(IsServedWhileStopping(DispatcherChoice::kSystem, DispatcherChoice::kDefault));
  ASSERT_TRUE(IsServedWhileStopping("reports", DispatcherChoice::kDefault));
}

TEST(Dispatchers, LetThreadsSpawnWhileTheyStop) {
  constexpr int kRounds = kIsSanitized ? 5 : 20;
  for (int round = 0; round < kRounds; ++round) {
    TestLog log;
    TestSystem system(Threads(), {});
    const PropsPtr props = ProbeProps(log, "actor");
    std::binary_semaphore spawned{0};
    std::thread spawner([&] {
      absl::Status status;
      for (int i = 0; status.ok(); ++i) {
        status = system.tree().SpawnRoot(*props).status();
        if (i == 10) spawned.release();
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    });
    spawned.acquire();
    system.scheduler().ForceStop();
    spawner.join();
  }
}

}  // namespace
}  // namespace fraktor
