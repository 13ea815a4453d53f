// Turns of actors when more actors are ready than there are workers. The workers are driven by
// the test on one thread, so what is checked are counts, and every run is the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/internal/stealing_queues.h"
#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/sync/internal/no_wait_lock.h"

namespace fraktor::actor_internal {

using utils_internal::NoWaitLock;
using utils_internal::StdAtomics;

namespace {

using Placement = ReadyQueueCoordinator::Placement;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr size_t kMany = 40'000;
#else
constexpr size_t kMany = 200'000;
#endif

// An actor that is always ready.
class BusyActor : public ReadyNode {
 public:
  uint64_t turns = 0;
  bool is_foreign = false;         // A foreign thread schedules it after each turn.
  BusyActor* successor = nullptr;  // Becomes ready after each turn of this one, which then is idle.
};

class NoWaker final : public WorkerWaker {
 public:
  void WakeWorker(WorkerIndex) override {}
};

// Workers whose turns the test begins and ends. During its turn an actor is in no queue.
template <size_t kRing>
class Pool {
 public:
  Pool(WorkerIndex workers, size_t actors) : running_(workers, nullptr), queues_(workers, waker_), actors_(actors) {}

  // Schedules the next `count` actors that were not scheduled before.
  void MakeReady(WorkerIndex worker, size_t count) {
    for (; count > 0; --count, ++begun_) {
      actors_[begun_].is_foreign = worker == kForeign;
      queues_.RegisterReady(worker, actors_[begun_], Placement::kBack);
    }
  }

  // Ends the turn of the worker and begins the next one. Returns false if no actor is ready.
  bool Turn(WorkerIndex worker) {
    if (BusyActor* const ended = running_[worker]; ended != nullptr && ended->successor != nullptr) {
      queues_.RegisterReady(worker, *ended->successor, successor_placement);
    } else if (ended != nullptr) {
      queues_.RegisterReady(ended->is_foreign ? kForeign : worker, *ended,
                            ended->is_foreign ? Placement::kBack : Placement::kYield);
    }
    ReadyNode* node = nullptr;
    queues_.DrainReady(worker, absl::MakeSpan(&node, 1));
    running_[worker] = static_cast<BusyActor*>(node);
    if (node == nullptr) return false;
    if (++running_[worker]->turns == kTurns) ++satisfied_;
    ++turns_;
    return true;
  }

  // Runs the workers of `schedule` in turn until each actor but `excepted` has had kTurns turns, or
  // until that has taken too long. Returns the largest number of turns of an actor divided by the
  // smallest.
  double Unfairness(const std::vector<WorkerIndex>& schedule, size_t excepted = 0) {
    const uint64_t most = turns_ + actors_.size() * kTurns * kMostUnfair;
    while (satisfied_ + excepted < actors_.size() && turns_ < most) {
      for (const WorkerIndex worker : schedule) {
        if (!Turn(worker)) return 1e9;
      }
    }
    std::vector<uint64_t> turns;
    for (const BusyActor& actor : actors_) turns.push_back(actor.turns);
    std::sort(turns.begin(), turns.end());
    const uint64_t fewest = turns[excepted];
    const double unfairness = static_cast<double>(turns.back()) / static_cast<double>(std::max<uint64_t>(fewest, 1));
    std::cout << actors_.size() << " actors: from " << fewest << " to " << turns.back() << " turns\n";
    return fewest == 0 ? 1e9 : unfairness;
  }

  BasicStealingQueues<StdAtomics, NoWaitLock, kRing>& queues() { return queues_; }
  std::deque<BusyActor>& actors() { return actors_; }
  BusyActor* running(WorkerIndex worker) { return running_[worker]; }
  // Ends the turn of an actor, which is idle afterwards.
  void GoIdle(WorkerIndex worker) { running_[worker] = nullptr; }
  uint64_t turns() const { return turns_; }

  // Where a successor goes. kNext: the worker runs it next, as after a message of a handler.
  Placement successor_placement = Placement::kBack;

  static constexpr uint64_t kTurns = 10;
  static constexpr uint64_t kMostUnfair = 8;

 private:
  NoWaker waker_;
  std::vector<BusyActor*> running_;
  BasicStealingQueues<StdAtomics, NoWaitLock, kRing> queues_;
  std::deque<BusyActor> actors_;
  size_t begun_ = 0;
  size_t satisfied_ = 0;
  uint64_t turns_ = 0;
};

constexpr size_t kDefaultRing = BasicStealingQueues<>::kCapacity;

// One worker after the other, equally often.
std::vector<WorkerIndex> EachOnce(WorkerIndex workers) {
  std::vector<WorkerIndex> schedule;
  for (WorkerIndex i = 0; i < workers; ++i) schedule.push_back(i);
  return schedule;
}

// A worker that runs warm actors one after the other asks this before it goes on with them.
TEST(StealingQueues, SayWhetherAnActorWaitsForTheWorker) {
  Pool<4> pool(2, 7);
  EXPECT_FALSE(pool.queues().HasReady(0));
  pool.MakeReady(0, 1);  // To the ring of worker 0.
  EXPECT_TRUE(pool.queues().HasReady(0));
  EXPECT_FALSE(pool.queues().HasReady(1)) << "another worker runs it";
  ASSERT_TRUE(pool.Turn(0));
  pool.GoIdle(0);
  EXPECT_FALSE(pool.queues().HasReady(0));
  pool.MakeReady(kForeign, 1);
  EXPECT_TRUE(pool.queues().HasReady(0) && pool.queues().HasReady(1));
  ASSERT_TRUE(pool.Turn(0));
  pool.GoIdle(0);
  pool.MakeReady(0, 5);  // Two of them to an overflow queue, which all workers share.
  EXPECT_TRUE(pool.queues().HasReady(0) && pool.queues().HasReady(1));
}

// After a burst the few actors that stay busy return to the rings. Otherwise the workers would
// share one queue for ever.
TEST(StealingQueues, EmptyTheOverflowQueueAfterABurst) {
  constexpr size_t kBurst = 10'000;
  constexpr size_t kBusy = 5;
  Pool<1024> pool(2, kBurst);
  pool.MakeReady(0, kBurst);
  for (size_t ended = 0; ended < kBurst - kBusy; ++ended) {
    ASSERT_TRUE(pool.Turn(0));
    pool.GoIdle(0);
  }
  EXPECT_TRUE(pool.queues().HasReady(1)) << "the rest of the burst is in an overflow queue";
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(pool.Turn(0));
  EXPECT_FALSE(pool.queues().HasReady(1));
  EXPECT_EQ(pool.queues().ReadyCountHint(), kBusy - 1) << "one of them has its turn";
}

// SCH-14
TEST(Fairness, HoldsForARingThatOverflows) {
  for (const WorkerIndex workers : {1, 2, 3}) {
    for (const size_t actors : {5, 9, 33, 1000}) {
      Pool<4> pool(workers, actors);
      pool.MakeReady(0, actors);
      EXPECT_LE(pool.Unfairness(EachOnce(workers)), 8) << actors << " actors, " << workers << " workers";
    }
  }
}

// SCH-14
TEST(Fairness, HoldsForMoreActorsThanRingsHold) {
  for (const WorkerIndex workers : {1, 2, 4}) {
    for (const size_t actors : {size_t{20'000}, kMany}) {
      Pool<kDefaultRing> pool(workers, actors);
      pool.MakeReady(0, actors);
      EXPECT_LE(pool.Unfairness(EachOnce(workers)), 8) << actors << " actors, " << workers << " workers";
    }
  }
}

// SCH-14
TEST(Fairness, HoldsForMorePairsThatWakeEachOtherThanRingsHold) {
  for (const WorkerIndex workers : {1, 2}) {
    for (const size_t actors : {size_t{40'000}, kMany}) {
      Pool<kDefaultRing> pool(workers, actors);
      for (size_t i = 0; i < actors; ++i) pool.actors()[i].successor = &pool.actors()[(i + actors / 2) % actors];
      pool.MakeReady(0, actors / 2);
      EXPECT_LE(pool.Unfairness(EachOnce(workers)), 8) << actors << " actors, " << workers << " workers";
    }
  }
}

// SCH-14
// New actors run before those of the overflow queues. Here each one spawns the next, so that they
// never run out.
TEST(Fairness, LetsBusyActorsRunBesideAnEndlessSupplyOfNewOnes) {
  constexpr size_t kBusy = 20'000;
  constexpr size_t kChains = 100;
  constexpr uint64_t kRounds = 10;
  constexpr uint64_t kTurns = kRounds * kBusy * BasicStealingQueues<>::kOverflowInterval;
  Pool<kDefaultRing> pool(1, kBusy);
  pool.MakeReady(0, kBusy);
  while (pool.turns() < 2 * kBusy) ASSERT_TRUE(pool.Turn(0));
  for (BusyActor& actor : pool.actors()) {
    ASSERT_GE(actor.turns, 1u) << "it is no new actor any more";
    actor.turns = 0;
  }
  std::deque<BusyActor> spawned(kTurns + 2 * kChains);
  for (size_t i = 0; i + kChains < spawned.size(); ++i) spawned[i].successor = &spawned[i + kChains];
  for (size_t i = 0; i < kChains; ++i) pool.queues().RegisterReady(0, spawned[i], Placement::kBack);
  while (pool.turns() < 2 * kBusy + kTurns) ASSERT_TRUE(pool.Turn(0));
  const auto [fewest, most] = std::minmax_element(pool.actors().begin(), pool.actors().end(),
                                                  [](const auto& a, const auto& b) { return a.turns < b.turns; });
  std::cout << kBusy << " busy actors: from " << fewest->turns << " to " << most->turns << " turns of " << kTurns
            << "\n";
  EXPECT_GE(fewest->turns, kRounds / 2);
  EXPECT_LE(most->turns, 8 * fewest->turns);
}

// SCH-14
// A worker runs new actors of the overflow queue rarely while its ring has others, but it does.
TEST(Fairness, LetsNewActorsRunBesideAnEndlessSupplyOfNewerOnes) {
  constexpr size_t kWaiting = 200;
  constexpr size_t kChains = 10;
  constexpr uint64_t kTurns = 2 * kWaiting * BasicStealingQueues<>::kNewInterval;
  Pool<64> pool(1, kWaiting);
  pool.MakeReady(0, kWaiting);
  std::deque<BusyActor> spawned(kTurns + 2 * kChains);
  for (size_t i = 0; i + kChains < spawned.size(); ++i) spawned[i].successor = &spawned[i + kChains];
  for (size_t i = 0; i < kChains; ++i) pool.queues().RegisterReady(0, spawned[i], Placement::kBack);
  while (pool.turns() < kTurns) ASSERT_TRUE(pool.Turn(0));
  for (const BusyActor& actor : pool.actors()) EXPECT_GE(actor.turns, 1u);
}

// SCH-14
// A program that spawns more actors than it can run keeps few of them alive: the actor that was
// spawned last runs first. Here each actor of a tree spawns ten others, as deep as the tree is.
TEST(Fairness, KeepsFewActorsOfATreeAlive) {
  struct Spawner : BusyActor {
    int depth = 0;
  };
  constexpr int kDepth = 6;
  constexpr size_t kChildren = 10;
  constexpr size_t kLeaves = 1'000'000;
  NoWaker waker;
  BasicStealingQueues<> queues(1, waker);
  std::deque<Spawner> actors(1);
  queues.RegisterReady(0, actors.front(), Placement::kBack);
  size_t most = 0;
  size_t leaves = 0;
  ReadyNode* node = nullptr;
  while (queues.DrainReady(0, absl::MakeSpan(&node, 1)) == 1) {
    const int depth = static_cast<Spawner*>(node)->depth;
    if (depth == kDepth) ++leaves;
    for (size_t i = 0; depth < kDepth && i < kChildren; ++i) {
      actors.emplace_back().depth = depth + 1;
      queues.RegisterReady(0, actors.back(), Placement::kBack);
    }
    most = std::max(most, queues.ReadyCountHint());
  }
  std::cout << "at most " << most << " of " << kLeaves << " leaves were ready at a time\n";
  EXPECT_EQ(leaves, kLeaves);
  EXPECT_LE(most, kLeaves / 10);
}

// SCH-14
TEST(Fairness, HoldsForActorsOfForeignThreadsThatStayWithTheWorkers) {
  Pool<kDefaultRing> pool(2, 20'000);
  pool.MakeReady(kForeign, 20'000);
  for (BusyActor& actor : pool.actors()) actor.is_foreign = false;
  EXPECT_LE(pool.Unfairness(EachOnce(2)), 8);
}

// SCH-14
TEST(Fairness, HoldsForRingsOfUnequalLength) {
  for (const auto& [few, many] : std::vector<std::pair<size_t, size_t>>{{10, 4'000}, {1, 9}, {1, 30}, {100, 20'000}}) {
    Pool<kDefaultRing> pool(2, few + many);
    pool.MakeReady(0, few);
    pool.MakeReady(1, many);
    EXPECT_LE(pool.Unfairness(EachOnce(2)), 8) << few << " against " << many;
  }
}

// SCH-14
TEST(Fairness, HoldsForOneFullRingAmongMany) {
  constexpr WorkerIndex kWorkers = 16;
  Pool<kDefaultRing> pool(kWorkers, 4'000 + 2 * (kWorkers - 1));
  pool.MakeReady(0, 4'000);
  for (WorkerIndex i = 1; i < kWorkers; ++i) pool.MakeReady(i, 2);
  EXPECT_LE(pool.Unfairness(EachOnce(kWorkers)), 8);
}

// SCH-14
// One worker runs less often than the other, or its actors take longer.
TEST(Fairness, HoldsForAWorkerThatIsSlow) {
  std::vector<WorkerIndex> schedule(50, 0);
  schedule.push_back(1);
  Pool<kDefaultRing> pool(2, 4'000);
  pool.MakeReady(0, 2'000);
  pool.MakeReady(1, 2'000);
  EXPECT_LE(pool.Unfairness(schedule), 8);
}

// SCH-14
// Another worker, although busy, runs the actors behind a turn that does not end.
TEST(Fairness, HoldsForActorsBehindAWorkerThatIsStuck) {
  Pool<kDefaultRing> pool(2, 400);
  pool.MakeReady(0, 200);
  pool.MakeReady(1, 200);
  ASSERT_TRUE(pool.Turn(1));
  EXPECT_LE(pool.Unfairness({0}, /*excepted=*/1), 8) << "all but the one that worker 1 is stuck in";
}

// SCH-14
// A foreign thread schedules each actor of the flood again after its turn.
TEST(Fairness, HoldsBesideAForeignFlood) {
  for (const WorkerIndex workers : {1, 2}) {
    constexpr size_t kLocal = 1'000;
    constexpr size_t kFlood = 50;
    Pool<kDefaultRing> pool(workers, kLocal + kFlood);
    pool.MakeReady(0, kLocal);
    pool.MakeReady(kForeign, kFlood);
    while (pool.turns() < 50 * kLocal) {
      for (WorkerIndex i = 0; i < workers; ++i) ASSERT_TRUE(pool.Turn(i));
    }
    uint64_t local = 0;
    uint64_t fewest = UINT64_MAX;
    uint64_t most = 0;
    for (const BusyActor& actor : pool.actors()) {
      if (actor.is_foreign) continue;
      local += actor.turns;
      fewest = std::min(fewest, actor.turns);
      most = std::max(most, actor.turns);
    }
    std::cout << "local actors: " << local << " of " << pool.turns() << " turns, each from " << fewest << " to " << most
              << "\n";
    EXPECT_GE(local, pool.turns() / 3) << workers << " workers";
    EXPECT_GE(fewest, 10u) << workers << " workers";
    EXPECT_LE(most, 8 * fewest) << workers << " workers";
  }
}

// SCH-14
// With any number of ready actors, and also if each turn leaves an actor that the worker would run
// next.
TEST(Fairness, LetsAForeignActorWaitForTwoTurnsOfEachWorker) {
  for (const auto& [workers, is_warm] :
       std::vector<std::pair<WorkerIndex, bool>>{{1, false}, {2, false}, {4, false}, {1, true}, {2, true}}) {
    Pool<kDefaultRing> pool(workers, 20'001);
    if (is_warm) {
      pool.successor_placement = Placement::kNext;
      for (size_t i = 0; i < 20'000; ++i) pool.actors()[i].successor = &pool.actors()[i ^ 1];
      for (size_t i = 0; i < 20'000; i += 2) pool.queues().RegisterReady(0, pool.actors()[i], Placement::kBack);
    } else {
      pool.MakeReady(0, 20'000);
    }
    for (int i = 0; i < 30'000; ++i) {
      for (WorkerIndex w = 0; w < workers; ++w) ASSERT_TRUE(pool.Turn(w));
    }
    BusyActor& foreign = pool.actors().back();
    uint64_t longest = 0;
    for (int i = 0; i < 1'000; ++i) {
      const uint64_t before = pool.turns();
      const uint64_t turns = foreign.turns;
      ASSERT_TRUE(pool.queues().RegisterReady(kForeign, foreign, Placement::kBack));
      for (WorkerIndex w = static_cast<WorkerIndex>(i) % workers; foreign.turns == turns; w = (w + 1) % workers) {
        ASSERT_TRUE(pool.Turn(w));
      }
      longest = std::max(longest, pool.turns() - before);
      // The turn ends, and the actor is idle.
      for (WorkerIndex w = 0; w < workers; ++w) {
        if (pool.running(w) == &foreign) pool.GoIdle(w);
      }
    }
    std::cout << workers << (is_warm ? " warm" : "") << " workers: a foreign actor waited for " << longest
              << " turns at most\n";
    EXPECT_LE(longest, 2 * workers);
  }
}

}  // namespace
}  // namespace fraktor::actor_internal
