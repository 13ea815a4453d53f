// One suite for both coordinators: normal use, misuse, limits, and a stress test.
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/run_queue/internal/work_stealing_coordinator.h"

namespace fraktor::actor_internal {
namespace {

using Placement = ReadyQueueCoordinator::Placement;

class TestNode : public ReadyNode {
 public:
  int number = 0;
  std::atomic<int> runs{0};
};

// Records the workers that were woken.
class RecordingWaker : public WorkerWaker {
 public:
  void WakeWorker(WorkerIndex worker) override { woken.push_back(worker); }
  std::vector<WorkerIndex> woken;
};

enum class Kind { kMutex, kWorkStealing };

std::string NameOf(const testing::TestParamInfo<Kind>& kind) {
  return kind.param == Kind::kMutex ? "Mutex" : "WorkStealing";
}

std::unique_ptr<ReadyQueueCoordinator> Make(Kind kind, WorkerIndex workers, WorkerWaker& waker) {
  if (kind == Kind::kMutex) return std::make_unique<MutexCoordinator>(workers, waker);
  return std::make_unique<WorkStealingCoordinator>(workers, waker);
}

// SCH-2
class CoordinatorTest : public testing::TestWithParam<Kind> {
 protected:
  static constexpr WorkerIndex kWorkers = 3;

  CoordinatorTest() : coordinator_(Make(GetParam(), kWorkers, waker_)) {
    for (int i = 0; i < 2000; ++i) nodes_.emplace_back().number = i;
  }

  bool Register(int number, WorkerIndex worker = 0, Placement placement = Placement::kBack) {
    return coordinator_->RegisterReady(worker, nodes_[static_cast<size_t>(number)], placement);
  }

  // Returns the numbers of the nodes of one drain.
  std::vector<int> Drain(size_t most, WorkerIndex worker = 0) {
    std::vector<ReadyNode*> buffer(most, nullptr);
    const size_t drained = coordinator_->DrainReady(worker, absl::MakeSpan(buffer));
    std::vector<int> numbers;
    for (size_t i = 0; i < drained; ++i) numbers.push_back(static_cast<TestNode*>(buffer[i])->number);
    return numbers;
  }

  TestNode& node(int number) { return nodes_[static_cast<size_t>(number)]; }

  RecordingWaker waker_;
  std::unique_ptr<ReadyQueueCoordinator> coordinator_;
  std::deque<TestNode> nodes_;
};

// Normal use.

TEST_P(CoordinatorTest, GivesWhatWasRegistered) {
  EXPECT_TRUE(Register(1));
  EXPECT_TRUE(node(1).IsRegistered());
  EXPECT_EQ(Drain(8), std::vector<int>({1}));
  EXPECT_FALSE(node(1).IsRegistered());
  EXPECT_TRUE(Drain(8).empty());
}

TEST_P(CoordinatorTest, KeepsTheOrderOfRegistration) {
  for (int i = 0; i < 5; ++i) Register(i);
  EXPECT_EQ(Drain(8), std::vector<int>({0, 1, 2, 3, 4}));
}

TEST_P(CoordinatorTest, KeepsTheOrderOfForeignThreads) {
  for (int i = 0; i < 5; ++i) Register(i, kForeign);
  EXPECT_EQ(Drain(8), std::vector<int>({0, 1, 2, 3, 4}));
}

TEST_P(CoordinatorTest, CountsWhatIsLeftOfForeignThreads) {
  for (int i = 0; i < 5; ++i) Register(i, kForeign);
  EXPECT_EQ(Drain(2), std::vector<int>({0, 1}));
  EXPECT_EQ(coordinator_->ReadyCountHint(), 3u);
  for (int i = 5; i < 7; ++i) Register(i, kForeign);
  EXPECT_EQ(coordinator_->ReadyCountHint(), 5u);
  EXPECT_EQ(Drain(4), std::vector<int>({2, 3, 4, 5}));
  EXPECT_EQ(coordinator_->ReadyCountHint(), 1u);
  EXPECT_TRUE(coordinator_->WantsDrain());
  EXPECT_EQ(Drain(4), std::vector<int>({6}));
  EXPECT_EQ(coordinator_->ReadyCountHint(), 0u);
}

TEST_P(CoordinatorTest, FillsTheCallersBufferAndNoMore) {
  for (int i = 0; i < 5; ++i) Register(i);
  EXPECT_EQ(Drain(2).size(), 2u);
  EXPECT_EQ(coordinator_->ReadyCountHint(), 3u);
  EXPECT_EQ(Drain(8).size(), 3u);
}

TEST_P(CoordinatorTest, GivesAnActorToWhateverWorkerAsks) {
  Register(1, 0);
  EXPECT_EQ(Drain(1, 1), std::vector<int>({1}));
  Register(2, kForeign);
  EXPECT_EQ(Drain(1, 2), std::vector<int>({2}));
}

TEST_P(CoordinatorTest, WakesAWorkerThatWaits) {
  EXPECT_TRUE(coordinator_->BeginWait(1));
  Register(1, kForeign);
  EXPECT_EQ(waker_.woken, std::vector<WorkerIndex>({1}));
  coordinator_->EndWait(1);
  EXPECT_EQ(Drain(1, 1), std::vector<int>({1}));
}

TEST_P(CoordinatorTest, WakesAWorkerWhileAnotherRunsWhatItDrained) {
  Register(1);
  ASSERT_EQ(Drain(8), std::vector<int>({1}));  // Less than the buffer takes, and now worker 0 is busy with it.
  EXPECT_TRUE(coordinator_->BeginWait(1));
  Register(2, kForeign);
  EXPECT_EQ(waker_.woken, std::vector<WorkerIndex>({1}));
}

TEST_P(CoordinatorTest, QueuesAnActorAgainThatHasMoreToDo) {
  Register(1);
  Register(2);
  ASSERT_EQ(Drain(1), std::vector<int>({1}));
  EXPECT_TRUE(Register(1, 0, Placement::kYield));
  EXPECT_EQ(Drain(1), std::vector<int>({2}));  // At the back, not before the others.
  EXPECT_TRUE(Register(2, 0, Placement::kYield));
  EXPECT_EQ(Drain(8), std::vector<int>({1, 2}));
}

// Misuse, and cases that look like it.

TEST_P(CoordinatorTest, RegistersAnActorOnceHoweverOften) {
  EXPECT_TRUE(Register(1));
  EXPECT_FALSE(Register(1));
  EXPECT_FALSE(Register(1, kForeign));
  EXPECT_FALSE(Register(1, 0, Placement::kNext));
  EXPECT_EQ(Drain(8), std::vector<int>({1}));
}

TEST_P(CoordinatorTest, LetsNobodyWaitWhileSomethingIsReady) {
  Register(1, kForeign);
  EXPECT_FALSE(coordinator_->BeginWait(0));
  EXPECT_EQ(Drain(1), std::vector<int>({1}));
  EXPECT_TRUE(coordinator_->BeginWait(0));
}

TEST_P(CoordinatorTest, LetsNobodyWaitWhileAnotherWorkerHasSomethingReady) {
  Register(1, 0);
  EXPECT_FALSE(coordinator_->BeginWait(2));
  EXPECT_EQ(Drain(1, 2), std::vector<int>({1}));
  EXPECT_TRUE(coordinator_->BeginWait(2));
}

TEST_P(CoordinatorTest, LetsAWorkerNotWaitThatHasAnActorToRunNext) {
  EXPECT_TRUE(Drain(1).empty());
  Register(1, 0, Placement::kNext);
  EXPECT_FALSE(coordinator_->BeginWait(0));
  EXPECT_EQ(Drain(1), std::vector<int>({1}));
}

TEST_P(CoordinatorTest, DoesNotGiveAWorkerWhatItHasDrainedAlready) {
  Register(1);
  ASSERT_EQ(Drain(1), std::vector<int>({1}));
  EXPECT_TRUE(Drain(8, 1).empty());
}

TEST_P(CoordinatorTest, WakesNobodyWhoIsAwakeAgain) {
  EXPECT_TRUE(coordinator_->BeginWait(1));
  coordinator_->EndWait(1);  // It woke up by itself.
  Register(1, kForeign);
  EXPECT_TRUE(waker_.woken.empty());
}

TEST_P(CoordinatorTest, WakesOneWorkerForOneActor) {
  EXPECT_TRUE(coordinator_->BeginWait(0));
  EXPECT_TRUE(coordinator_->BeginWait(1));
  EXPECT_TRUE(coordinator_->BeginWait(2));
  Register(1, kForeign);
  EXPECT_EQ(waker_.woken.size(), 1u);
}

// Limits.

TEST_P(CoordinatorTest, DrainsNothingIntoAnEmptyBuffer) {
  Register(1);
  EXPECT_TRUE(Drain(0).empty());
  EXPECT_TRUE(node(1).IsRegistered());
}

TEST_P(CoordinatorTest, HasNothingToGiveInTheBeginning) {
  EXPECT_TRUE(Drain(8).empty());
  EXPECT_EQ(coordinator_->ReadyCountHint(), 0u);
}

TEST_P(CoordinatorTest, TakesMoreThanOneWorkersRingHolds) {
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(Register(i));
  EXPECT_EQ(coordinator_->ReadyCountHint(), 2000u);
  std::vector<bool> seen(2000, false);
  for (int drained = 0; drained < 2000; ++drained) {
    std::vector<int> one = Drain(1, static_cast<WorkerIndex>(drained % 3));
    ASSERT_EQ(one.size(), 1u) << drained;
    EXPECT_FALSE(seen[static_cast<size_t>(one[0])]) << one[0];
    seen[static_cast<size_t>(one[0])] = true;
  }
  EXPECT_TRUE(Drain(8).empty());
}

TEST_P(CoordinatorTest, WorksWithOneWorkerAndWithTheMost) {
  for (WorkerIndex workers : {WorkerIndex{1}, kMaxWorkers}) {
    RecordingWaker waker;
    std::unique_ptr<ReadyQueueCoordinator> coordinator = Make(GetParam(), workers, waker);
    EXPECT_TRUE(coordinator->BeginWait(workers - 1));
    EXPECT_TRUE(coordinator->RegisterReady(kForeign, node(1), Placement::kBack));
    EXPECT_EQ(waker.woken, std::vector<WorkerIndex>({workers - 1}));
    coordinator->EndWait(workers - 1);
    ReadyNode* out = nullptr;
    EXPECT_EQ(coordinator->DrainReady(workers - 1, absl::MakeSpan(&out, 1)), 1u);
    EXPECT_EQ(out, &node(1));
  }
}

TEST_P(CoordinatorTest, LetsAWaitingWorkerStealWhatABusyOneKeeps) {
  // Worker 0 schedules three actors and continues to work. Worker 1 was asleep.
  EXPECT_TRUE(coordinator_->BeginWait(1));
  for (int i = 0; i < 3; ++i) Register(i, 0);
  ASSERT_EQ(waker_.woken, std::vector<WorkerIndex>({1}));
  coordinator_->EndWait(1);
  size_t found = 0;
  while (!Drain(1, 1).empty()) ++found;
  EXPECT_EQ(found, 3u);
}

INSTANTIATE_TEST_SUITE_P(Both, CoordinatorTest, testing::Values(Kind::kMutex, Kind::kWorkStealing), NameOf);

// SCH-8: no wake-up is lost. Real threads park, and a thread that registers wakes them. If a
// wake-up were lost, the test would hang.
class ParkingWaker : public WorkerWaker {
 public:
  explicit ParkingWaker(size_t workers) {
    for (size_t i = 0; i < workers; ++i) doors_.emplace_back(0);
  }
  void WakeWorker(WorkerIndex worker) override { doors_[worker].release(); }
  void Park(WorkerIndex worker) { doors_[worker].acquire(); }

 private:
  std::deque<std::counting_semaphore<>> doors_;
};

class CoordinatorStress : public testing::TestWithParam<Kind> {};

TEST_P(CoordinatorStress, RunsEachRegistrationOnceAndLosesNoWakeUp) {
  constexpr WorkerIndex kWorkers = 3;
  constexpr int kProducers = 3;
  constexpr int kRounds = 2000;
  ParkingWaker waker(kWorkers);
  std::unique_ptr<ReadyQueueCoordinator> coordinator = Make(GetParam(), kWorkers, waker);
  std::deque<TestNode> nodes(kProducers * 2);
  std::deque<std::counting_semaphore<>> ran;  // For each node: a producer registers it again after its run.
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].number = static_cast<int>(i);
    ran.emplace_back(0);
  }
  std::atomic<bool> stop{false};
  std::atomic<int> total{0};

  std::vector<std::thread> workers;
  for (WorkerIndex me = 0; me < kWorkers; ++me) {
    workers.emplace_back([&, me] {
      while (!stop.load()) {
        ReadyNode* out = nullptr;
        if (coordinator->DrainReady(me, absl::MakeSpan(&out, 1)) == 1) {
          auto& node = static_cast<TestNode&>(*out);
          // Every third actor is queued once more, in the ring of this worker.
          if (++node.runs % 3 == 0) {
            coordinator->RegisterReady(me, node, Placement::kYield);
            continue;
          }
          ++total;
          ran[static_cast<size_t>(node.number)].release();
        } else if (coordinator->BeginWait(me)) {
          waker.Park(me);
          coordinator->EndWait(me);
        }
      }
    });
  }
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int round = 0; round < kRounds; ++round) {
        for (int k = 0; k < 2; ++k) {
          const auto i = static_cast<size_t>(p * 2 + k);
          ASSERT_TRUE(coordinator->RegisterReady(kForeign, nodes[i], Placement::kBack));
        }
        for (int k = 0; k < 2; ++k) ran[static_cast<size_t>(p * 2 + k)].acquire();
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(total.load(), kProducers * 2 * kRounds);
  stop.store(true);
  for (WorkerIndex me = 0; me < kWorkers; ++me) waker.WakeWorker(me);
  for (std::thread& worker : workers) worker.join();
}

INSTANTIATE_TEST_SUITE_P(Both, CoordinatorStress, testing::Values(Kind::kMutex, Kind::kWorkStealing), NameOf);

// Behaviour of only one of the coordinators.

class WorkStealingTest : public testing::Test {
 protected:
  ReadyNode* Next(WorkerIndex worker) {
    ReadyNode* out = nullptr;
    coordinator_.DrainReady(worker, absl::MakeSpan(&out, 1));
    return out;
  }

  RecordingWaker waker_;
  WorkStealingCoordinator coordinator_{2, waker_};
  TestNode a_, b_, c_;
};

TEST_F(WorkStealingTest, RunsTheWarmActorNext) {
  coordinator_.RegisterReady(0, a_, Placement::kBack);
  coordinator_.RegisterReady(0, b_, Placement::kNext);
  EXPECT_EQ(coordinator_.ReadyCountHint(), 2u);
  EXPECT_EQ(Next(0), &b_);
  EXPECT_EQ(Next(0), &a_);
}

TEST_F(WorkStealingTest, KeepsTheNewestWarm) {
  coordinator_.RegisterReady(0, a_, Placement::kNext);
  coordinator_.RegisterReady(0, b_, Placement::kNext);
  EXPECT_EQ(Next(0), &b_);
  EXPECT_EQ(Next(0), &a_);
}

TEST_F(WorkStealingTest, WakesNobodyForTheWarmActor) {
  EXPECT_TRUE(coordinator_.BeginWait(1));
  coordinator_.RegisterReady(0, a_, Placement::kNext);
  EXPECT_TRUE(waker_.woken.empty());
  EXPECT_EQ(Next(1), nullptr);  // Worker 1 does not steal it.
  EXPECT_EQ(Next(0), &a_);
}

TEST_F(WorkStealingTest, DoesNotLetTwoWarmActorsStarveTheOthers) {
  coordinator_.RegisterReady(0, c_, Placement::kBack);
  coordinator_.RegisterReady(0, a_, Placement::kNext);
  uint32_t runs = 0;
  for (ReadyNode* node = Next(0); node != &c_; node = Next(0)) {
    ASSERT_LE(++runs, WorkStealingCoordinator::kWarmStreak);
    coordinator_.RegisterReady(0, node == &a_ ? b_ : a_, Placement::kNext);
  }
  EXPECT_EQ(runs, WorkStealingCoordinator::kWarmStreak);
}

TEST_F(WorkStealingTest, DoesNotLetAWarmActorStarveTheOthersOfAFullRing) {
  std::deque<TestNode> others(WorkStealingCoordinator::kRingCapacity);
  for (TestNode& other : others) coordinator_.RegisterReady(0, other, Placement::kBack);
  for (uint32_t i = 0; i < WorkStealingCoordinator::kWarmStreak; ++i) {
    coordinator_.RegisterReady(0, a_, Placement::kNext);
    ASSERT_EQ(Next(0), &a_) << i;
  }
  coordinator_.RegisterReady(0, a_, Placement::kNext);
  EXPECT_EQ(Next(0), &others[0]);
  EXPECT_EQ(coordinator_.ReadyCountHint(), others.size());
}

// An actor that yields is not new work, so no worker is woken for it.
TEST_F(WorkStealingTest, WakesNobodyForAnActorThatYields) {
  EXPECT_TRUE(coordinator_.BeginWait(1));
  coordinator_.RegisterReady(0, a_, Placement::kYield);
  EXPECT_TRUE(waker_.woken.empty());
  EXPECT_EQ(Next(0), &a_);
  coordinator_.RegisterReady(0, a_, Placement::kBack);
  EXPECT_EQ(waker_.woken, std::vector<WorkerIndex>({1}));
  EXPECT_EQ(Next(0), &a_);
}

// Otherwise a worker that always has a warm actor would never run the actors of foreign threads.
TEST_F(WorkStealingTest, WantsWorkersToDrainWhenAForeignThreadHasRegistered) {
  EXPECT_FALSE(coordinator_.WantsDrain());
  coordinator_.RegisterReady(0, a_, Placement::kBack);
  EXPECT_FALSE(coordinator_.WantsDrain()) << "others of the pool wait for the end of a streak";
  coordinator_.RegisterReady(kForeign, c_, Placement::kBack);
  EXPECT_TRUE(coordinator_.WantsDrain());
  EXPECT_EQ(Next(0), &c_);
  EXPECT_FALSE(coordinator_.WantsDrain());
  EXPECT_EQ(Next(0), &a_);
}

// The actors of a full ring do not delay those of foreign threads.
TEST_F(WorkStealingTest, KeepsWhatOverflowsApartFromForeignActors) {
  std::deque<TestNode> others(2 * WorkStealingCoordinator::kRingCapacity);
  for (TestNode& other : others) coordinator_.RegisterReady(0, other, Placement::kYield);
  EXPECT_FALSE(coordinator_.WantsDrain());
  EXPECT_EQ(coordinator_.ReadyCountHint(), others.size());
  coordinator_.RegisterReady(kForeign, c_, Placement::kBack);
  EXPECT_EQ(Next(0), &c_);
  for (size_t i = 0; i < others.size(); ++i) {
    if (i + 1 == others.size()) {
      EXPECT_FALSE(coordinator_.BeginWait(i % 2)) << "the last one is in no ring";
    }
    ASSERT_NE(Next(i % 2), nullptr) << i;
  }
  EXPECT_EQ(Next(0), nullptr);
}

TEST_F(WorkStealingTest, LetsAForeignActorInBetweenWarmOnes) {
  coordinator_.RegisterReady(0, a_, Placement::kNext);
  coordinator_.RegisterReady(kForeign, c_, Placement::kBack);
  EXPECT_EQ(Next(0), &c_);
  EXPECT_EQ(Next(0), &a_);
}

TEST_F(WorkStealingTest, WakesNobodyWhileAWorkerSearches) {
  EXPECT_TRUE(coordinator_.BeginWait(1));
  EXPECT_EQ(Next(0), nullptr);  // Worker 0 searches from here on.
  coordinator_.RegisterReady(kForeign, a_, Placement::kBack);
  EXPECT_TRUE(waker_.woken.empty());
  EXPECT_EQ(Next(0), &a_);  // Worker 0 finds it and wakes worker 1, since there may be more.
  EXPECT_EQ(waker_.woken, std::vector<WorkerIndex>({1}));
}

TEST(MutexCoordinator, LetsASimulationChoose) {
  RecordingWaker waker;
  size_t asked = 0;
  MutexCoordinator coordinator(1, waker, [&](size_t ready) {
    asked = ready;
    return ready - 1;
  });
  TestNode a, b, c;
  for (TestNode* node : {&a, &b, &c}) coordinator.RegisterReady(0, *node, Placement::kBack);
  ReadyNode* out[3] = {};
  EXPECT_EQ(coordinator.DrainReady(0, absl::MakeSpan(out)), 3u);
  EXPECT_EQ(asked, 2u);  // The last one needs no choice.
  EXPECT_EQ(out[0], &c);
  EXPECT_EQ(out[1], &b);
  EXPECT_EQ(out[2], &a);
}

}  // namespace
}  // namespace fraktor::actor_internal
