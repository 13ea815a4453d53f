// The verdicts of the model checker on the classic small programs, whose verdicts under C++20 are
// known. The tests also check the number of executions: if it changes, the reduction or the memory
// model has changed.
#include <array>
#include <atomic>
#include <functional>
#include <set>
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

  bool Allows(const Outcome& outcome) const { return outcomes.count(outcome) != 0; }
};

// The variables and registers of a litmus test.
struct Litmus {
  ModelAtomic<int>& x;
  ModelAtomic<int>& y;
  ModelAtomic<int>& z;
  std::array<int, 4>& r;  // one thread writes each
  Model& m;
};

// Every final state: the first `registers` of r, then x, y, z if `finals` asks for them.
Explored Explore(int registers, int finals, const std::function<void(const Litmus&)>& program,
                 const ModelOptions& options = {}) {
  Explored explored;
  explored.result = CheckInterleavings(options, [&](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0).Named("x");
    auto& y = m.Make<ModelAtomic<int>>(0).Named("y");
    auto& z = m.Make<ModelAtomic<int>>(0).Named("z");
    auto& r = m.Make<std::array<int, 4>>(std::array<int, 4>{});
    program({x, y, z, r, m});
    m.After([&explored, &m, &x, &y, &z, &r, registers, finals] {
      if (m.IsRedundant()) return;
      Outcome outcome(r.begin(), r.begin() + registers);
      const std::array<int, 3> values = {x.load(), y.load(), z.load()};
      outcome.insert(outcome.end(), values.begin(), values.begin() + finals);
      explored.outcomes.insert(outcome);
    });
  });
  EXPECT_TRUE(explored.result.ok()) << explored.result;
  EXPECT_TRUE(explored.result.complete);
  return explored;
}

Explored StoreBuffering(std::memory_order store, std::memory_order load) {
  return Explore(2, 0, [=](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, store);
      l.r[0] = l.y.load(load);
    });
    l.m.Thread([=] {
      l.y.store(1, store);
      l.r[1] = l.x.load(load);
    });
  });
}

TEST(Litmus, StoreBufferingIsAllowedUnlessSequentiallyConsistent) {
  const std::set<Outcome> weak = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  EXPECT_EQ(StoreBuffering(kRelaxed, kRelaxed).outcomes, weak);
  EXPECT_EQ(StoreBuffering(kRelease, kAcquire).outcomes, weak);
  EXPECT_EQ(StoreBuffering(kSeqCst, kAcquire).outcomes, weak);
  EXPECT_EQ(StoreBuffering(kRelease, kSeqCst).outcomes, weak);
  const Explored strong = StoreBuffering(kSeqCst, kSeqCst);
  EXPECT_EQ(strong.outcomes, (std::set<Outcome>{{0, 1}, {1, 0}, {1, 1}}));
  EXPECT_EQ(strong.result.executions, 3);
}

TEST(Litmus, StoreBufferingWithReadModifyWritesIsForbiddenIfTheyAreSequentiallyConsistent) {
  const auto explore = [](std::memory_order order) {
    return Explore(2, 0, [=](const Litmus& l) {
      l.m.Thread([=] {
        l.x.exchange(1, order);
        l.r[0] = l.y.load(kSeqCst);
      });
      l.m.Thread([=] {
        l.y.fetch_add(1, order);
        l.r[1] = l.x.load(kSeqCst);
      });
    });
  };
  EXPECT_FALSE(explore(kSeqCst).Allows({0, 0}));
  EXPECT_TRUE(explore(kAcqRel).Allows({0, 0}));
}

Explored MessagePassing(std::memory_order store, std::memory_order load) {
  return Explore(2, 0, [=](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.y.store(1, store);
    });
    l.m.Thread([=] {
      l.r[0] = l.y.load(load);
      l.r[1] = l.x.load(kRelaxed);
    });
  });
}

TEST(Litmus, MessagePassingNeedsReleaseAndAcquire) {
  const Outcome stale = {1, 0};
  EXPECT_TRUE(MessagePassing(kRelaxed, kRelaxed).Allows(stale));
  EXPECT_TRUE(MessagePassing(kRelease, kRelaxed).Allows(stale));
  EXPECT_TRUE(MessagePassing(kRelaxed, kAcquire).Allows(stale));
  EXPECT_FALSE(MessagePassing(kRelease, kAcquire).Allows(stale));
  EXPECT_FALSE(MessagePassing(kSeqCst, kSeqCst).Allows(stale));
  EXPECT_EQ(MessagePassing(kRelease, kAcquire).result.executions, 3);
  EXPECT_EQ(MessagePassing(kRelaxed, kRelaxed).result.executions, 4);
}

// C++20 allows {1, 1} for relaxed operations. The checker does not explore it: a load sees only
// stores that were executed before.
TEST(Litmus, LoadBufferingIsNotExplored) {
  const Explored explored = Explore(2, 0, [](const Litmus& l) {
    l.m.Thread([=] {
      l.r[0] = l.x.load(kRelaxed);
      l.y.store(1, kRelaxed);
    });
    l.m.Thread([=] {
      l.r[1] = l.y.load(kRelaxed);
      l.x.store(1, kRelaxed);
    });
  });
  EXPECT_EQ(explored.outcomes, (std::set<Outcome>{{0, 0}, {0, 1}, {1, 0}}));
}

Explored IndependentReads(std::memory_order store, std::memory_order load) {
  return Explore(4, 0, [=](const Litmus& l) {
    l.m.Thread([=] { l.x.store(1, store); });
    l.m.Thread([=] { l.y.store(1, store); });
    l.m.Thread([=] {
      l.r[0] = l.x.load(load);
      l.r[1] = l.y.load(load);
    });
    l.m.Thread([=] {
      l.r[2] = l.y.load(load);
      l.r[3] = l.x.load(load);
    });
  });
}

TEST(Litmus, IndependentReadersMayDisagreeUnlessSequentiallyConsistent) {
  const Outcome disagree = {1, 0, 1, 0};
  EXPECT_TRUE(IndependentReads(kRelaxed, kRelaxed).Allows(disagree));
  EXPECT_TRUE(IndependentReads(kRelease, kAcquire).Allows(disagree));
  EXPECT_FALSE(IndependentReads(kSeqCst, kSeqCst).Allows(disagree));
  // C++20: the values that two sequentially consistent loads have seen of an atomic are ordered
  // too, independent of the thread that stored them.
  EXPECT_FALSE(IndependentReads(kRelaxed, kSeqCst).Allows(disagree));
  EXPECT_EQ(IndependentReads(kRelease, kAcquire).result.executions, 16);
  EXPECT_EQ(IndependentReads(kSeqCst, kSeqCst).result.executions, 15);
}

TEST(Litmus, ReadsOfOneAtomicAreCoherent) {
  const Explored explored = Explore(2, 0, [](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.x.store(2, kRelaxed);
    });
    l.m.Thread([=] {
      l.r[0] = l.x.load(kRelaxed);
      l.r[1] = l.x.load(kRelaxed);
    });
  });
  EXPECT_EQ(explored.outcomes, (std::set<Outcome>{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}));
  EXPECT_EQ(explored.result.executions, 6);
}

TEST(Litmus, TwoReadersSeeStoresOfOneAtomicInTheSameOrder) {
  const Explored explored = Explore(4, 0, [](const Litmus& l) {
    l.m.Thread([=] { l.x.store(1, kRelaxed); });
    l.m.Thread([=] { l.x.store(2, kRelaxed); });
    l.m.Thread([=] {
      l.r[0] = l.x.load(kRelaxed);
      l.r[1] = l.x.load(kRelaxed);
    });
    l.m.Thread([=] {
      l.r[2] = l.x.load(kRelaxed);
      l.r[3] = l.x.load(kRelaxed);
    });
  });
  EXPECT_FALSE(explored.Allows({1, 2, 2, 1}));
  EXPECT_TRUE(explored.Allows({1, 2, 1, 2}));
  EXPECT_TRUE(explored.Allows({2, 1, 2, 1}));
}

TEST(Litmus, WriteToReadCausalityNeedsAcquireAndReleaseInTheMiddle) {
  const auto explore = [](std::memory_order middle_load, std::memory_order middle_store) {
    return Explore(3, 0, [=](const Litmus& l) {
      l.m.Thread([=] { l.x.store(1, kRelease); });
      l.m.Thread([=] {
        l.r[0] = l.x.load(middle_load);
        l.y.store(1, middle_store);
      });
      l.m.Thread([=] {
        l.r[1] = l.y.load(kAcquire);
        l.r[2] = l.x.load(kRelaxed);
      });
    });
  };
  EXPECT_FALSE(explore(kAcquire, kRelease).Allows({1, 1, 0}));
  // Coherence: the middle thread has seen x, so a release is enough.
  EXPECT_FALSE(explore(kRelaxed, kRelease).Allows({1, 1, 0}));
  EXPECT_TRUE(explore(kAcquire, kRelaxed).Allows({1, 1, 0}));
}

// A release publishes x, `middle` passes it on, and an acquire receives it.
Explored ReleaseSequence(const std::function<void(const Litmus&)>& middle) {
  return Explore(2, 0, [=](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.y.store(1, kRelease);
    });
    l.m.Thread([=] { middle(l); });
    l.m.Thread([=] {
      l.r[0] = l.y.load(kAcquire);
      l.r[1] = l.x.load(kRelaxed);
    });
  });
}

TEST(Litmus, ReadModifyWritesContinueAReleaseSequence) {
  const Explored explored = ReleaseSequence([](const Litmus& l) { l.y.fetch_add(1, kRelaxed); });
  EXPECT_FALSE(explored.Allows({2, 0}));
  EXPECT_TRUE(explored.Allows({2, 1}));
  EXPECT_TRUE(explored.Allows({1, 0})) << "the increment came first, and released nothing";
}

TEST(Litmus, AStoreEndsAReleaseSequence) {
  const Explored explored = ReleaseSequence([](const Litmus& l) {
    if (l.y.load(kRelaxed) == 1) l.y.store(2, kRelaxed);
  });
  EXPECT_TRUE(explored.Allows({2, 0}));
}

// Before C++20, a later store of the same thread continued the release sequence. It does not any
// more.
TEST(Litmus, AnOwnRelaxedStoreEndsAReleaseSequence) {
  const Explored explored = Explore(2, 0, [](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.y.store(1, kRelease);
      l.y.store(2, kRelaxed);
    });
    l.m.Thread([=] {
      l.r[0] = l.y.load(kAcquire);
      l.r[1] = l.x.load(kRelaxed);
    });
  });
  EXPECT_FALSE(explored.Allows({1, 0}));
  EXPECT_TRUE(explored.Allows({2, 0}));
}

// C++20 allows x == 1 and y == 1 in the end for relaxed stores. The checker does not explore it:
// the modification order is the order of execution.
TEST(Litmus, CrossedStoresAreNotExplored) {
  const Explored explored = Explore(0, 2, [](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.y.store(2, kRelaxed);
    });
    l.m.Thread([=] {
      l.y.store(1, kRelaxed);
      l.x.store(2, kRelaxed);
    });
  });
  EXPECT_EQ(explored.outcomes, (std::set<Outcome>{{1, 2}, {2, 1}, {2, 2}}));
  EXPECT_EQ(explored.result.executions, 3);
}

TEST(Litmus, IncrementsByCompareExchangeAreNotLost) {
  const Explored explored = Explore(0, 1,
                                    [](const Litmus& l) {
                                      for (int t = 0; t < 3; ++t) {
                                        l.m.Thread([=] {
                                          int value = l.x.load(kRelaxed);
                                          while (!l.x.compare_exchange_weak(value, value + 1, kRelaxed)) {
                                          }
                                        });
                                      }
                                    },
                                    {.max_spurious_failures = 1});
  EXPECT_EQ(explored.outcomes, (std::set<Outcome>{{3}}));
}

TEST(Litmus, IncrementsByLoadAndStoreAreLost) {
  const Explored explored = Explore(0, 1, [](const Litmus& l) {
    for (int t = 0; t < 2; ++t) l.m.Thread([=] { l.x.store(l.x.load(kSeqCst) + 1, kSeqCst); });
  });
  EXPECT_EQ(explored.outcomes, (std::set<Outcome>{{1}, {2}}));
}

TEST(Litmus, ACompareExchangeThatFailsMayReadAnOlderStore) {
  const Explored explored = Explore(2, 0, [](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.y.store(1, kRelaxed);
    });
    l.m.Thread([=] {
      l.r[0] = l.y.load(kRelaxed);
      int expected = 7;
      l.x.compare_exchange_strong(expected, 8, kRelaxed);
      l.r[1] = expected;
    });
  });
  EXPECT_TRUE(explored.Allows({1, 0}));
}

TEST(Litmus, ACompareExchangeThatExpectsAnOlderStoreDoesNotSucceed) {
  const Explored explored = Explore(2, 1, [](const Litmus& l) {
    l.m.Thread([=] {
      l.x.store(1, kRelaxed);
      l.y.store(1, kRelaxed);
    });
    l.m.Thread([=] {
      l.r[0] = l.y.load(kRelaxed);
      int expected = 0;
      l.r[1] = l.x.compare_exchange_strong(expected, 8, kRelaxed) ? 1 : 0;
    });
  });
  EXPECT_FALSE(explored.Allows({1, 1, 8}));
  EXPECT_TRUE(explored.Allows({0, 1, 1})) << "it succeeded, and then 1 was stored";
  EXPECT_TRUE(explored.Allows({1, 0, 1}));
}

}  // namespace
}  // namespace fraktor
