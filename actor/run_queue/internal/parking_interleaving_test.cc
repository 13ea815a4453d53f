// Parking and waking of workers, in every interleaving: if an actor is ready and a worker sleeps,
// another worker searches or a wake-up is under way. The tests can fail: one of them does without
// the second look, without the hand-over, or with a weaker memory order.
//
// Each worker makes one attempt to find work. It stays busy with the work that it finds, or sleeps.
// When the threads have ended, all workers continue that are awake and not busy, or have been
// woken. If an actor is ready and a worker sleeps then, a wake-up was lost. At last the busy
// workers continue as well, and the state must be as in the beginning: one more piece of work wakes
// one worker.
//
// SCH-8
#include <array>
#include <atomic>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/run_queue/internal/idle_workers.h"
#include "fraktor/actor/run_queue/internal/injection_queue.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/internal/stealing_queues.h"
#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_cases.h"
#include "fraktor/utils/testing/model_lock.h"

namespace fraktor::actor_internal {
namespace {

constexpr WorkerIndex kWorkers = 2;

// The state of a worker. The worker writes it, and After.
enum class Doing { kAwake, kBusy, kAsleep };

// Runs the workers of a pool, which has Attempt(worker) -> Doing, EndWait(worker),
// TakeToken(worker), AnythingReady() and GiveOneMore(), one after the other until they sleep.
template <typename Pool>
void Settle(Pool& pool, std::array<Doing, kWorkers>& doing) {
  for (const bool with_busy : {false, true}) {
    for (bool moved = true; moved;) {
      moved = false;
      for (WorkerIndex i = 0; i < kWorkers; ++i) {
        if (doing[i] == Doing::kAsleep) {
          if (!pool.TakeToken(i)) continue;
          pool.EndWait(i);
          doing[i] = Doing::kAwake;
        }
        if (doing[i] == Doing::kBusy && !with_busy) continue;
        doing[i] = pool.Attempt(i);
        moved = true;
      }
    }
    const bool sleeps = doing[0] == Doing::kAsleep || doing[1] == Doing::kAsleep;
    MODEL_ASSERT(!(sleeps && pool.AnythingReady()), "something is ready, a worker sleeps, and nobody wakes it");
  }
  MODEL_ASSERT(doing[0] == Doing::kAsleep && doing[1] == Doing::kAsleep);
  pool.GiveOneMore();
  MODEL_ASSERT(pool.TakeToken(0) != pool.TakeToken(1), "more or less than one worker was woken for one piece of work");
}

// The protocol alone, with a counter for work.

enum class Mutation {
  kNone,
  kNoSecondLook,   // Sleeps without looking again.
  kLooksTooEarly,  // Looks again, and says only then that it sleeps.
  kNoHandOver,     // Wakes nobody when its search ends.
  kSearchesOn,     // Counts as searching while it is busy.
};

template <Mutation kMutation>
class CounterPool {
 public:
  void Give() {
    work_.fetch_add(1, std::memory_order_seq_cst);
    WakeOne();
  }
  void GiveOneMore() { Give(); }

  Doing Attempt(WorkerIndex me) {
    idle_.StartSearch(me);
    if (!Take()) return Sleep(me);
    Found(me);
    return Doing::kBusy;
  }

  void Found(WorkerIndex me) {
    if (kMutation == Mutation::kSearchesOn) return;
    if (idle_.EndSearch(me) && kMutation != Mutation::kNoHandOver) WakeOne();
  }

  Doing Sleep(WorkerIndex me) {
    const auto look = [this] { return AnythingReady(); };
    bool sleeps = false;
    if constexpr (kMutation == Mutation::kNoSecondLook) {
      sleeps = idle_.BeginWait(me, [] { return false; });
    } else if constexpr (kMutation == Mutation::kLooksTooEarly) {
      const bool ready = look();
      sleeps = idle_.BeginWait(me, [ready] { return ready; });
    } else {
      sleeps = idle_.BeginWait(me, look);
    }
    return sleeps ? Doing::kAsleep : Doing::kAwake;
  }

  void StartSearch(WorkerIndex me) { idle_.StartSearch(me); }
  void EndWait(WorkerIndex me) { idle_.EndWait(me); }
  bool AnythingReady() const { return work_.load(std::memory_order_seq_cst) > 0; }
  bool TakeToken(WorkerIndex me) { return tokens_[me].exchange(false, std::memory_order_acq_rel); }

 private:
  void WakeOne() {
    const WorkerIndex sleeper = idle_.TakeSleeper();
    if (sleeper != kForeign) tokens_[sleeper].store(true, std::memory_order_release);
  }

  bool Take() {
    int available = work_.load(std::memory_order_relaxed);
    while (available > 0) {
      if (work_.compare_exchange_weak(available, available - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  BasicIdleWorkers<ModelAtomics> idle_{kWorkers};
  ModelAtomic<int> work_{0};
  std::array<ModelAtomic<bool>, kWorkers> tokens_{};
};

template <Mutation kMutation>
struct CounterCase {
  using Pool = CounterPool<kMutation>;

  // Worker 1 sleeps.
  static void OneWorkerAndOneGiver(Model& m) {
    auto& pool = m.Make<Pool>();
    auto& doing = m.Make<std::array<Doing, kWorkers>>();
    doing[1] = pool.Attempt(1);
    m.Thread("worker", [&] { doing[0] = pool.Attempt(0); });
    m.Thread("giver", [&] { pool.Give(); });
    m.After([&] { Settle(pool, doing); });
  }

  // Both workers have found nothing, and the giver comes while they park.
  static void TwoSleepersAndOneGiver(Model& m) {
    auto& pool = m.Make<Pool>();
    auto& doing = m.Make<std::array<Doing, kWorkers>>();
    for (WorkerIndex i = 0; i < kWorkers; ++i) m.Thread("worker", [&, i] { doing[i] = pool.Sleep(i); });
    m.Thread("giver", [&] { pool.Give(); });
    m.After([&] { Settle(pool, doing); });
  }

  // A worker that searches finds one piece, and must wake the sleeping worker for the other.
  static void TwoPiecesForASearcher(Model& m) {
    auto& pool = m.Make<Pool>();
    auto& doing = m.Make<std::array<Doing, kWorkers>>();
    doing[1] = pool.Attempt(1);
    pool.StartSearch(0);
    m.Thread("searcher", [&] { doing[0] = pool.Attempt(0); });
    m.Thread("giver", [&] {
      pool.Give();
      pool.Give();
    });
    m.After([&] { Settle(pool, doing); });
  }

  // Both workers sleep, and one wakes by itself while a giver looks for a sleeper.
  static void OneGiverAndATimer(Model& m) {
    auto& pool = m.Make<Pool>();
    auto& doing = m.Make<std::array<Doing, kWorkers>>();
    for (WorkerIndex i = 0; i < kWorkers; ++i) doing[i] = pool.Attempt(i);
    m.Thread("woken by a timer", [&] {
      pool.EndWait(0);
      doing[0] = pool.Attempt(0);
    });
    m.Thread("giver", [&] { pool.Give(); });
    m.After([&] { Settle(pool, doing); });
  }

  // A worker that searches finds a piece and sees no sleeper, because the other one parks just
  // then. The giver relies on the search until it sees its end.
  static void ASearchEndsBesideASleeper(Model& m) {
    auto& pool = m.Make<Pool>();
    auto& doing = m.Make<std::array<Doing, kWorkers>>();
    pool.StartSearch(0);
    m.Thread("searcher", [&] {
      pool.Found(0);
      doing[0] = Doing::kBusy;
    });
    m.Thread("worker", [&] { doing[1] = pool.Sleep(1); });
    m.Thread("giver", [&] { pool.Give(); });
    m.After([&] { Settle(pool, doing); });
  }

  static std::vector<ModelTest> All() {
    return {{"one worker and one giver", OneWorkerAndOneGiver},
            {"two sleepers and one giver", TwoSleepersAndOneGiver},
            {"two pieces for a searcher", TwoPiecesForASearcher},
            {"one giver and a timer", OneGiverAndATimer},
            {"a search ends beside a sleeper", ASearchEndsBesideASleeper}};
  }
};

// The queues of the work-stealing coordinator.

class Node : public BasicReadyNode<ModelAtomics> {
 public:
  // The data of the holder of the mailbox: the thread that registers the node writes it, and the
  // worker that runs the node.
  ModelPlain<int> owed{0};
  ModelPlain<int> runs{0};
};

template <size_t kRingCapacity = 2, uint32_t kLookInterval = 64>
class QueuePoolOf final : public WorkerWaker {
 public:
  using Placement = ReadyQueueCoordinator::Placement;
  using Queues = BasicStealingQueues<ModelAtomics, ModelLock, kRingCapacity, kLookInterval>;
  static constexpr uint32_t kLookRounds = Queues::kLookRounds;

  void WakeWorker(WorkerIndex worker) override { tokens_[worker].store(true, std::memory_order_release); }

  void Register(Node& node, WorkerIndex worker = kForeign, Placement placement = Placement::kBack) {
    ++node.owed;
    MODEL_ASSERT(queues_.RegisterReady(worker, node, placement));
  }
  void GiveOneMore() { Register(one_more_); }

  static void Run(Node& node) {
    ++node.runs;
    --node.owed;
    MODEL_ASSERT(node.owed == 0);
  }

  Doing Attempt(WorkerIndex me) {
    BasicReadyNode<ModelAtomics>* out = nullptr;
    if (queues_.DrainReady(me, absl::MakeSpan(&out, 1)) == 1) {
      Run(static_cast<Node&>(*out));
      return Doing::kBusy;
    }
    return Sleep(me);
  }
  // The two halves of an attempt that finds no work.
  void SearchInVain(WorkerIndex me) {
    BasicReadyNode<ModelAtomics>* out = nullptr;
    MODEL_ASSERT(queues_.DrainReady(me, absl::MakeSpan(&out, 1)) == 0);
  }
  Doing Sleep(WorkerIndex me) { return queues_.BeginWait(me) ? Doing::kAsleep : Doing::kAwake; }

  void EndWait(WorkerIndex me) { queues_.EndWait(me); }
  bool AnythingReady() const { return queues_.ReadyCountHint() > 0; }
  bool TakeToken(WorkerIndex me) { return tokens_[me].exchange(false, std::memory_order_acq_rel); }

 private:
  Queues queues_{kWorkers, *this};
  std::array<ModelAtomic<bool>, kWorkers> tokens_{};
  Node one_more_;
};

using QueuePool = QueuePoolOf<>;

template <class Pool>
struct QueueCaseOf {
  explicit QueueCaseOf(Model& m) : pool(m.Make<Pool>()), doing(m.Make<std::array<Doing, kWorkers>>()) {
    for (Node*& node : nodes) node = &m.Make<Node>();
  }

  // Lets worker 0 run each node once, before the threads of the model begin. A node that has run
  // goes to another overflow queue than a new one.
  void RunEachBefore() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      pool.Register(*nodes[i], 0);
      MODEL_ASSERT(pool.Attempt(0) == Doing::kBusy);
      ++expected_runs[i];
    }
  }

  void Settle() {
    actor_internal::Settle(pool, doing);
    for (size_t i = 0; i < nodes.size(); ++i) {
      MODEL_ASSERT(nodes[i]->owed == 0 && nodes[i]->runs == expected_runs[i], "a node was not run, or run twice");
    }
  }

  Pool& pool;
  std::array<Doing, kWorkers>& doing;
  std::array<Node*, 3> nodes{};
  std::array<int, 3> expected_runs{};
};

using QueueCase = QueueCaseOf<QueuePool>;

void WorkerAndForeignThread(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 0, 0};
  c.doing[1] = c.pool.Attempt(1);
  m.Thread("worker", [&] { c.doing[0] = c.pool.Attempt(0); });
  m.Thread("foreign", [&] { c.pool.Register(*c.nodes[0]); });
  m.After([&] { c.Settle(); });
}

// The worker ends its search, sees work in its last look, and takes one of two pieces.
void WorkerAndTwoForeignActors(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 1, 0};
  c.doing[1] = c.pool.Attempt(1);
  m.Thread("worker", [&] { c.doing[0] = c.pool.Attempt(0); });
  m.Thread("foreign", [&] {
    c.pool.Register(*c.nodes[0]);
    c.pool.Register(*c.nodes[1]);
  });
  m.After([&] { c.Settle(); });
}

// A worker schedules an actor in the middle of a run, while the other worker is about to sleep.
void WorkerBesideABusyOne(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 0, 0};
  c.doing[0] = Doing::kBusy;
  m.Thread("busy", [&] { c.pool.Register(*c.nodes[0], 0); });
  m.Thread("worker", [&] { c.doing[1] = c.pool.Attempt(1); });
  m.After([&] { c.Settle(); });
}

// The ring of the worker is full: half of it goes to an overflow queue.
void WorkerBesideAFullOneOf(Model& m, bool have_run) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 1, 1};
  c.doing[0] = Doing::kBusy;
  if (have_run) c.RunEachBefore();
  c.pool.Register(*c.nodes[0], 0);
  c.pool.Register(*c.nodes[1], 0);
  m.Thread("busy", [&] { c.pool.Register(*c.nodes[2], 0); });
  m.Thread("worker", [&] { c.doing[1] = c.pool.Attempt(1); });
  m.After([&] { c.Settle(); });
}

void WorkerBesideAFullOne(Model& m) { WorkerBesideAFullOneOf(m, /*have_run=*/false); }
void WorkerBesideAFullOneOfOldActors(Model& m) { WorkerBesideAFullOneOf(m, /*have_run=*/true); }

// The ring of the worker is full, and the other worker steals all of it before half of it goes to
// the overflow queue.
void TwiceRobbedWhenFull(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 1, 1};
  c.doing[0] = Doing::kBusy;
  c.pool.Register(*c.nodes[0], 0);
  c.pool.Register(*c.nodes[1], 0);
  m.Thread("busy", [&] { c.pool.Register(*c.nodes[2], 0); });
  m.Thread("worker", [&] {
    c.pool.Attempt(1);
    c.doing[1] = c.pool.Attempt(1);
  });
  m.After([&] { c.Settle(); });
}

// A worker whose ring was full runs the actors that are left there, and stays busy with the last.
// The other worker must run those in the overflow queue. It has looked before all that, is about to
// sleep, and finds nothing in any ring.
void OverflowBesideABusyOneOf(Model& m, bool have_run) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 1, 1};
  c.doing[0] = Doing::kBusy;
  if (have_run) c.RunEachBefore();
  c.pool.SearchInVain(1);
  c.pool.Register(*c.nodes[0], 0);
  c.pool.Register(*c.nodes[1], 0);
  m.Thread("busy", [&] {
    c.pool.Register(*c.nodes[2], 0);
    c.pool.Attempt(0);
    c.doing[0] = c.pool.Attempt(0);
  });
  m.Thread("worker", [&] { c.doing[1] = c.pool.Sleep(1); });
  m.After([&] { c.Settle(); });
}

void OverflowBesideABusyOne(Model& m) { OverflowBesideABusyOneOf(m, /*have_run=*/false); }
void OverflowOfOldActorsBesideABusyOne(Model& m) { OverflowBesideABusyOneOf(m, /*have_run=*/true); }

// A busy worker finds that the other one has taken nothing for long, and steals half of its ring.
// The other one continues, runs the rest, and is about to sleep while the stolen actors are in
// neither ring.
void RobbedByABusyOne(Model& m) {
  using Pool = QueuePoolOf<4, 2>;
  auto& c = m.Make<QueueCaseOf<Pool>>(m);
  constexpr int kTakes = static_cast<int>(Pool::kLookRounds) * 2;
  c.expected_runs = {kTakes, 1, 1};
  // The next take compares the rings.
  for (int i = 0; i < kTakes - 1; ++i) {
    c.pool.Register(*c.nodes[0], 0);
    MODEL_ASSERT(c.pool.Attempt(0) == Doing::kBusy);
  }
  for (Node* const node : c.nodes) c.pool.Register(*node, 1);
  m.Thread("busy", [&] { c.doing[0] = c.pool.Attempt(0); });
  m.Thread("other", [&] {
    c.pool.Attempt(1);
    c.doing[1] = c.pool.Attempt(1);
  });
  m.After([&] { c.Settle(); });
}

// While one worker reverses the stack, the other must not take the queue for empty.
void TwoWorkersAtTheInjectionQueue(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 1, 0};
  c.pool.Register(*c.nodes[0]);
  c.pool.Register(*c.nodes[1]);
  for (WorkerIndex i = 0; i < kWorkers; ++i) m.Thread("worker", [&, i] { c.doing[i] = c.pool.Attempt(i); });
  m.After([&] { c.Settle(); });
}

// Both workers see that an actor is ready, and one finds that the other has taken it.
void TwoWorkersAtOneActor(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  c.expected_runs = {1, 0, 0};
  c.pool.Register(*c.nodes[0]);
  for (WorkerIndex i = 0; i < kWorkers; ++i) m.Thread("worker", [&, i] { c.doing[i] = c.pool.Attempt(i); });
  m.After([&] { c.Settle(); });
}

// A worker pops while two nodes are pushed at once. It gets neither or both, in their order, with
// the data that the pusher wrote.
void TwoAtOnceBesideAWorker(Model& m) {
  struct Case {
    explicit Case(Model& model) : queue(model.Make<BasicInjectionQueue<ModelAtomics, ModelLock>>()) {
      for (Node*& node : nodes) node = &model.Make<Node>();
    }
    void PushBoth() {
      for (Node* const node : nodes) ++node->owed;
      const std::array<BasicReadyNode<ModelAtomics>*, 2> both{nodes[0], nodes[1]};
      queue.PushAll(both);
    }
    bool Pop() {
      auto* const node = static_cast<Node*>(queue.TryPop());
      if (node == nullptr) return false;
      MODEL_ASSERT(node == nodes[popped], "the younger one came first");
      ++popped;
      QueuePool::Run(*node);
      return true;
    }

    BasicInjectionQueue<ModelAtomics, ModelLock>& queue;
    std::array<Node*, 2> nodes{};
    size_t popped = 0;
  };
  auto& c = m.Make<Case>(m);
  m.Thread("pusher", [&] { c.PushBoth(); });
  m.Thread("worker", [&] {
    if (c.Pop()) MODEL_ASSERT(c.Pop(), "the second one was not there");
  });
  m.After([&] {
    while (c.Pop()) {
    }
    MODEL_ASSERT(c.popped == 2 && c.queue.IsEmptyForParking() && c.queue.SizeHint() == 0);
  });
}

// A foreign thread schedules an actor again that a worker has run. Only the mailbox, here
// `is_idle`, orders the accesses of the two to the node.
void ReadyAgainAfterItsRun(Model& m) {
  auto& c = m.Make<QueueCase>(m);
  auto& is_idle = m.Make<ModelAtomic<bool>>(false);
  c.pool.Register(*c.nodes[0]);
  m.Thread("worker", [&] {
    c.doing[0] = c.pool.Attempt(0);
    is_idle.store(true, std::memory_order_release);
  });
  m.Thread("foreign", [&] {
    c.expected_runs[0] = is_idle.load(std::memory_order_acquire) ? 2 : 1;
    if (c.expected_runs[0] == 2) c.pool.Register(*c.nodes[0]);
  });
  m.After([&] { c.Settle(); });
}

std::vector<ModelTest> QueueCases() {
  return {{"worker and foreign thread", WorkerAndForeignThread},
          {"worker and two foreign actors", WorkerAndTwoForeignActors},
          {"worker beside a busy one", WorkerBesideABusyOne},
          {"worker beside a full one", WorkerBesideAFullOne},
          {"worker beside a full one of old actors", WorkerBesideAFullOneOfOldActors},
          {"twice robbed when full", TwiceRobbedWhenFull},
          {"overflow beside a busy one", OverflowBesideABusyOne},
          {"overflow of old actors beside a busy one", OverflowOfOldActorsBesideABusyOne},
          {"robbed by a busy one", RobbedByABusyOne},
          {"two workers at the injection queue", TwoWorkersAtTheInjectionQueue},
          {"two workers at one actor", TwoWorkersAtOneActor},
          {"two at once beside a worker", TwoAtOnceBesideAWorker},
          {"ready again after its run", ReadyAgainAfterItsRun}};
}

TEST(ParkingInterleaving, LeavesNoWorkToSleepers) { ExpectAllPass(CounterCase<Mutation::kNone>::All()); }

TEST(ParkingInterleaving, RunsEachRegistrationOnceAndLeavesNoneToSleepers) { ExpectAllPass(QueueCases()); }

template <Mutation kMutation>
std::vector<std::string> CasesThatFailWith() {
  std::vector<std::string> failed;
  for (const ModelTest& test : CounterCase<kMutation>::All()) {
    if (!CheckInterleavings({}, test.run).ok()) failed.emplace_back(test.name);
  }
  return failed;
}

TEST(ParkingInterleaving, FailsIfAStepIsLeftOut) {
  using Names = std::vector<std::string>;
  const Names all = {"one worker and one giver", "two sleepers and one giver", "two pieces for a searcher",
                     "one giver and a timer", "a search ends beside a sleeper"};
  const Names with_a_search = {"two pieces for a searcher", "a search ends beside a sleeper"};
  EXPECT_EQ(CasesThatFailWith<Mutation::kNoSecondLook>(), all);
  EXPECT_EQ(CasesThatFailWith<Mutation::kLooksTooEarly>(), all);
  EXPECT_EQ(CasesThatFailWith<Mutation::kNoHandOver>(), with_a_search);
  EXPECT_EQ(CasesThatFailWith<Mutation::kSearchesOn>(), with_a_search);
}

void ExpectAllNoticed(const std::vector<ModelTest>& cases, const char* file, int weakenings) {
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, cases, file);
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  EXPECT_EQ(report.unnoticed, std::vector<std::string>{}) << report.text;
  EXPECT_GE(report.weakenings, weakenings);
  std::cout << report.text;
}

TEST(ParkingInterleaving, FailsIfAnyMemoryOrderOfIdleWorkersIsWeaker) {
  ExpectAllNoticed(CounterCase<Mutation::kNone>::All(), "idle_workers.h", 4);
}

TEST(ParkingInterleaving, FailsIfAnyMemoryOrderOfTheInjectionQueueIsWeaker) {
  ExpectAllNoticed(QueueCases(), "injection_queue.h", 6);
}

}  // namespace
}  // namespace fraktor::actor_internal
