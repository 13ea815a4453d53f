// Compares the model checker with the axioms of C++20 on random programs: its reduction loses
// nothing, and it explores exactly the executions that the axioms allow.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

using Outcome = std::vector<int>;

struct Explored {
  std::set<Outcome> outcomes;
  ModelResult result;
};

struct RandomOperation {
  int location;
  int kind;  // 0, 1: load, 2, 3: store, 4: fetch_add, 5: exchange, 6, 7: compare_exchange
  std::memory_order load;
  std::memory_order store;
  std::memory_order modify;
  int value;
  int expected;
};

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  int Below(int n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_;
};

// The number of programs that each test makes. A sanitizer looks for mistakes in the checker, not
// in the memory model.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kReducedPrograms = 20;
constexpr uint64_t kBlockingPrograms = 30;
constexpr uint64_t kAxiomPrograms = 20;
#else
constexpr uint64_t kReducedPrograms = 80;
constexpr uint64_t kBlockingPrograms = 200;
constexpr uint64_t kAxiomPrograms = 60;
#endif

using RandomProgram = std::vector<std::vector<RandomOperation>>;

RandomProgram MakeProgram(Random& random) {
  RandomProgram program(static_cast<std::size_t>(2 + random.Below(2)));
  int value = 1;
  const int locations = 1 + random.Below(2);
  for (auto& thread : program) {
    const int length = program.size() == 2 ? 3 + random.Below(2) : 2;
    for (int i = 0; i < length; ++i) {
      const std::array<std::memory_order, 3> loads = {kRelaxed, kAcquire, kSeqCst};
      const std::array<std::memory_order, 3> stores = {kRelaxed, kRelease, kSeqCst};
      const std::array<std::memory_order, 3> modifies = {kRelaxed, kAcqRel, kSeqCst};
      RandomOperation op;
      op.location = random.Below(locations);
      op.kind = random.Below(8);
      op.load = loads[static_cast<std::size_t>(random.Below(3))];
      op.store = stores[static_cast<std::size_t>(random.Below(3))];
      op.modify = modifies[static_cast<std::size_t>(random.Below(3))];
      op.value = value++;
      op.expected = random.Below(3);
      thread.push_back(op);
    }
  }
  return program;
}

int Perform(const RandomOperation& op, ModelAtomic<int>& x) {
  switch (op.kind) {
    case 0:
    case 1:
      return x.load(op.load);
    case 2:
    case 3:
      x.store(op.value, op.store);
      return 0;
    case 4:
      return x.fetch_add(10, op.modify);
    case 5:
      return x.exchange(op.value, op.modify);
    default: {
      int expected = op.expected;
      const bool done = x.compare_exchange_strong(expected, op.value, op.modify, op.load);
      return done ? -1 : expected;
    }
  }
}

// Every final state: the value that each operation returned, and the values at the end.
Explored ExploreProgram(const RandomProgram& program, const ModelOptions& options) {
  Explored explored;
  explored.result = CheckInterleavings(options, [&](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    auto& y = m.Make<ModelAtomic<int>>(0);
    auto& seen = m.Make<std::vector<Outcome>>(program.size());
    for (std::size_t t = 0; t < program.size(); ++t) {
      m.Thread([&, t] {
        for (const RandomOperation& op : program[t]) seen[t].push_back(Perform(op, op.location == 0 ? x : y));
      });
    }
    m.After([&] {
      if (m.IsRedundant()) return;
      Outcome outcome;
      for (const Outcome& part : seen) outcome.insert(outcome.end(), part.begin(), part.end());
      outcome.push_back(x.load());
      outcome.push_back(y.load());
      explored.outcomes.insert(outcome);
    });
  });
  return explored;
}

TEST(MemoryModel, TheReductionLosesNoFinalStateOfRandomPrograms) {
  int64_t reduced_executions = 0;
  int64_t all_executions = 0;
  int programs = 0;
  for (uint64_t seed = 0; seed < kReducedPrograms; ++seed) {
    Random random(seed);
    const RandomProgram program = MakeProgram(random);
    const Explored all = ExploreProgram(program, {.max_executions = 20'000, .allow_incomplete = true, .reduce = false});
    if (!all.result.complete) continue;
    ++programs;
    const Explored reduced = ExploreProgram(program, {});
    ASSERT_TRUE(reduced.result.ok()) << reduced.result;
    ASSERT_EQ(reduced.outcomes, all.outcomes) << "seed " << seed;
    reduced_executions += reduced.result.executions + reduced.result.redundant_executions;
    all_executions += all.result.executions;
  }
  EXPECT_GT(programs, static_cast<int>(kReducedPrograms) * 2 / 3);
  EXPECT_LT(reduced_executions * 3, all_executions);
  RecordProperty("reduced", static_cast<int>(reduced_executions));
  RecordProperty("all", static_cast<int>(all_executions));
}

// Programs in which threads wait: for a semaphore, for a notify, in a loop.
enum class Blocking {
  kStore,
  kLoad,
  kAdd,
  kTakePermit,
  kGivePermit,
  kWait,
  kNotifyOne,
  kNotifyAll,
  kLoop,
  kLoopOverTwo,
  kStoreOther,
  kCount
};

struct BlockingOperation {
  Blocking kind;
  std::memory_order load;
  std::memory_order store;
  int value;
};

// The final states. If one execution deadlocks, only the fact that it does.
Explored ExploreBlocking(const std::vector<std::vector<BlockingOperation>>& program, const ModelOptions& options) {
  Explored explored;
  explored.result = CheckInterleavings(options, [&](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    auto& y = m.Make<ModelAtomic<int>>(0);
    auto& semaphore = m.Make<ModelSemaphore>(0);
    auto& seen = m.Make<std::vector<Outcome>>(program.size());
    for (std::size_t t = 0; t < program.size(); ++t) {
      m.Thread([&, t] {
        for (const BlockingOperation& op : program[t]) {
          switch (op.kind) {
            case Blocking::kStore:
              x.store(op.value, op.store);
              break;
            case Blocking::kLoad:
              seen[t].push_back(x.load(op.load));
              break;
            case Blocking::kAdd:
              seen[t].push_back(x.fetch_add(1, op.store));
              break;
            case Blocking::kTakePermit:
              semaphore.Acquire();
              break;
            case Blocking::kGivePermit:
              semaphore.Release();
              break;
            case Blocking::kWait:
              x.wait(0, op.load);
              break;
            case Blocking::kNotifyOne:
              x.notify_one();
              break;
            case Blocking::kNotifyAll:
              x.notify_all();
              break;
            case Blocking::kStoreOther:
              y.store(op.value, op.store);
              break;
            case Blocking::kLoopOverTwo: {
              int first = 0;
              int second = 0;
              while ((first = x.load(op.load)) == 0 && (second = y.load(kRelaxed)) == 0) ModelYield();
              seen[t].push_back(first * 10 + second);
              break;
            }
            default: {
              int value = 0;
              while ((value = x.load(op.load)) == 0) ModelYield();
              seen[t].push_back(value);
            }
          }
        }
      });
    }
    m.After([&] {
      if (m.IsRedundant()) return;
      Outcome outcome;
      for (const Outcome& part : seen) outcome.insert(outcome.end(), part.begin(), part.end());
      outcome.push_back(x.load());
      explored.outcomes.insert(outcome);
    });
  });
  return explored;
}

TEST(MemoryModel, TheReductionLosesNothingOfRandomProgramsThatBlock) {
  int passed = 0;
  int deadlocked = 0;
  for (uint64_t seed = 0; seed < kBlockingPrograms; ++seed) {
    Random random(seed + 77);
    std::vector<std::vector<BlockingOperation>> program(static_cast<std::size_t>(2 + random.Below(2)));
    for (auto& thread : program) {
      const int length = program.size() == 2 ? 4 : 2 + random.Below(2);
      for (int i = 0; i < length; ++i) {
        BlockingOperation op;
        op.kind = static_cast<Blocking>(random.Below(static_cast<int>(Blocking::kCount)));
        op.load = random.Below(2) == 0 ? kAcquire : kSeqCst;
        op.store = random.Below(2) == 0 ? kRelease : kSeqCst;
        op.value = random.Below(3);
        thread.push_back(op);
      }
    }
    const Explored all = ExploreBlocking(program, {.max_executions = 3'000, .allow_incomplete = true, .reduce = false});
    if (all.result.ok() && !all.result.complete) continue;
    const Explored reduced = ExploreBlocking(program, {});
    ASSERT_EQ(reduced.result.failure, all.result.failure) << "seed " << seed << "\n" << all.result << reduced.result;
    if (all.result.ok()) {
      ++passed;
      ASSERT_EQ(reduced.outcomes, all.outcomes) << "seed " << seed;
    } else {
      ASSERT_EQ(all.result.failure, ModelFailure::kDeadlock) << all.result;
      ++deadlocked;
    }
  }
  EXPECT_GE(passed, static_cast<int>(kBlockingPrograms) / 10);
  EXPECT_GE(deadlocked, static_cast<int>(kBlockingPrograms) / 10);
}

// The axioms. Takes every order in which the operations could be executed, lets every load read
// from any earlier store, builds the relations of [intro.races] and [atomics.order] over the
// events, and keeps the executions that they do not forbid. The order stands for the modification
// orders and for the order of sequentially consistent operations at once, which is the range that
// the checker promises to cover.
class Axioms {
 public:
  explicit Axioms(const RandomProgram& program) : program_(program) {
    for (int location = 0; location < 2; ++location) {
      events_.push_back({.thread = -1, .location = location, .writes = true, .written = 0, .order = kRelaxed});
    }
    returned_.resize(program.size());
    next_.resize(program.size(), 0);
    Extend();
  }

  const std::set<Outcome>& outcomes() const { return outcomes_; }

 private:
  static constexpr int kMaxEvents = 16;
  using Relation = std::array<std::array<bool, kMaxEvents>, kMaxEvents>;

  struct Event {
    int thread;
    int location;
    bool reads = false;
    bool writes = false;
    int read_from = -1;
    int written = 0;
    std::memory_order order;
  };

  static bool Acquires(const Event& e) { return e.reads && e.order != kRelaxed && e.order != kRelease; }
  static bool Releases(const Event& e) { return e.writes && e.order != kRelaxed && e.order != kAcquire; }

  // Tries the next operation of each thread, with each store that it could read.
  void Extend() {
    bool ended = true;
    for (std::size_t t = 0; t < program_.size(); ++t) {
      if (next_[t] == program_[t].size()) continue;
      ended = false;
      const RandomOperation& op = program_[t][next_[t]++];
      for (int from = static_cast<int>(events_.size()) - 1; from >= 0; --from) {
        const Event& store = events_[static_cast<std::size_t>(from)];
        if (!store.writes || store.location != op.location) continue;
        Event e{.thread = static_cast<int>(t), .location = op.location, .read_from = from, .order = op.modify};
        int result = store.written;
        const bool last = from == LastStore(op.location);
        e.reads = true;
        e.writes = true;
        if (op.kind <= 1) {
          e.writes = false;
          e.order = op.load;
        } else if (op.kind <= 3) {
          if (!last) continue;  // Reads nothing: there is only one way.
          e.reads = false;
          e.read_from = -1;
          e.order = op.store;
          e.written = op.value;
          result = 0;
        } else if (op.kind == 4) {
          if (!last) continue;
          e.written = result + 10;
        } else if (op.kind == 5) {
          if (!last) continue;
          e.written = op.value;
        } else if (result == op.expected) {
          if (!last) continue;
          e.written = op.value;
          result = -1;
        } else {
          e.writes = false;
          e.order = op.load;
        }
        events_.push_back(e);
        returned_[t].push_back(result);
        // Consistency is closed under prefixes, so stop early.
        if (IsConsistent()) Extend();
        returned_[t].pop_back();
        events_.pop_back();
      }
      --next_[t];
    }
    if (!ended) return;
    Outcome outcome;
    for (const Outcome& part : returned_) outcome.insert(outcome.end(), part.begin(), part.end());
    for (int location = 0; location < 2; ++location) {
      outcome.push_back(events_[static_cast<std::size_t>(LastStore(location))].written);
    }
    outcomes_.insert(outcome);
  }

  int LastStore(int location) const {
    int last = -1;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].writes && events_[i].location == location) last = static_cast<int>(i);
    }
    return last;
  }

  static void Close(Relation& relation, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) relation[i][j] |= relation[i][k] && relation[k][j];
      }
    }
  }

  bool IsConsistent() const {
    const std::size_t n = events_.size();
    Relation happens_before{};
    Relation coherence{};  // [atomics.order]: coherence-ordered before
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const Event& a = events_[i];
        const Event& b = events_[j];
        // Sequenced before; the initial stores come before everything.
        if (i < j && (a.thread == b.thread || a.thread < 0)) happens_before[i][j] = true;
        if (a.location != b.location || i == j) continue;
        if (a.writes && b.writes && i < j) coherence[i][j] = true;
        if (b.reads && b.read_from == static_cast<int>(i)) coherence[i][j] = true;
        if (a.reads && b.writes && a.read_from < static_cast<int>(j)) coherence[i][j] = true;
      }
      // Synchronizes with: goes back from the store that was read, through the release sequence.
      const Event& reader = events_[i];
      if (!Acquires(reader)) continue;
      for (int head = reader.read_from; head >= 0;) {
        const Event& e = events_[static_cast<std::size_t>(head)];
        if (Releases(e)) happens_before[static_cast<std::size_t>(head)][i] = true;
        head = e.reads ? e.read_from : -1;
      }
    }
    Close(happens_before, n);
    Close(coherence, n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (happens_before[i][j] && coherence[j][i]) return false;
        const bool both = events_[i].order == kSeqCst && events_[j].order == kSeqCst;
        if (both && coherence[i][j] && i > j) return false;
      }
    }
    return true;
  }

  const RandomProgram& program_;
  std::vector<Event> events_;  // in the order of execution
  std::vector<std::size_t> next_;
  std::vector<Outcome> returned_;
  std::set<Outcome> outcomes_;
};

TEST(MemoryModel, ExploresExactlyWhatTheAxiomsAllow) {
  std::size_t outcomes = 0;
  for (uint64_t seed = 1000; seed < 1000 + kAxiomPrograms; ++seed) {
    Random random(seed);
    const RandomProgram program = MakeProgram(random);
    const Explored explored = ExploreProgram(program, {});
    ASSERT_TRUE(explored.result.ok()) << explored.result;
    ASSERT_EQ(explored.outcomes, Axioms(program).outcomes()) << "seed " << seed;
    outcomes += explored.outcomes.size();
  }
  RecordProperty("outcomes", static_cast<int>(outcomes));
  EXPECT_GT(outcomes, 5 * kAxiomPrograms);
}

}  // namespace
}  // namespace fraktor
