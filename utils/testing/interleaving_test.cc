#include "fraktor/utils/testing/interleaving.h"

#include <atomic>
#include <functional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

using Program = std::function<void(Model&)>;

void ExpectPasses(const Program& test, int64_t executions) {
  const ModelResult result = CheckInterleavings({}, test);
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.executions, executions);
}

// Also checks that the trail replays the failure.
ModelResult ExpectFails(ModelFailure failure, const Program& test, const ModelOptions& options = {}) {
  const ModelResult result = CheckInterleavings(options, test);
  EXPECT_EQ(result.failure, failure) << result;
  ModelOptions replay = options;
  replay.replay = result.trail;
  const ModelResult again = CheckInterleavings(replay, test);
  EXPECT_EQ(again.failure, failure) << again;
  EXPECT_EQ(again.trail, result.trail);
  EXPECT_EQ(again.executions + again.redundant_executions, 1);
  return result;
}

// Passes a message through a plain variable.

Program PassMail(std::memory_order store, std::memory_order load) {
  return [=](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    auto& ready = m.Make<ModelAtomic<bool>>(false).Named("ready");
    m.Thread("writer", [&, store] {
      data = 42;
      ready.store(true, store);
    });
    m.Thread("reader", [&, load] {
      while (!ready.load(load)) ModelYield();
      MODEL_ASSERT(data == 42);
    });
  };
}

TEST(Interleaving, PassesAPlainVariableThatAnAtomicHandsOver) { ExpectPasses(PassMail(kRelease, kAcquire), 2); }

TEST(Interleaving, FindsTheRaceIfTheFlagIsRelaxed) {
  ExpectFails(ModelFailure::kDataRace, PassMail(kRelaxed, kAcquire));
  const ModelResult result = ExpectFails(ModelFailure::kDataRace, PassMail(kRelease, kRelaxed));
  // The message names both accesses and shows every operation with its place.
  EXPECT_NE(result.message.find("data race on plain#0: a read by thread 2 (reader) at step 4, and a write by thread 1 "
                                "(writer) at step 1, which nothing orders"),
            std::string::npos)
      << result.message;
  EXPECT_NE(result.message.find("atomic#0 (ready).store(true, release)\tinterleaving_test.cc:"), std::string::npos)
      << result.message;
  EXPECT_NE(result.message.find("atomic#0 (ready).load(relaxed) -> true of step 2"), std::string::npos)
      << result.message;
}

TEST(Interleaving, FindsARaceWhicheverAccessIsExecutedFirst) {
  ExpectFails(ModelFailure::kDataRace, [](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    m.Thread([&] { data = 1; });
    m.Thread([&] { data = 2; });
  });
  ExpectFails(ModelFailure::kDataRace, [](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    m.Thread([&] { static_cast<void>(data.Get()); });
    m.Thread([&] { ++data; });
  });
}

TEST(Interleaving, LetsThreadsReadAPlainVariableTogether) {
  ExpectPasses(
      [](Model& m) {
        auto& data = m.Make<ModelPlain<int>>(7);
        for (int i = 0; i < 3; ++i) m.Thread([&] { MODEL_ASSERT(data == 7); });
        m.After([&] { data = 8; });
      },
      1);
}

// Mutual exclusion. Two holders at once race on the plain variable.

Program Peterson(std::memory_order store, std::memory_order load) {
  return [=](Model& m) {
    auto& want0 = m.Make<ModelAtomic<bool>>(false).Named("want0");
    auto& want1 = m.Make<ModelAtomic<bool>>(false).Named("want1");
    auto& turn = m.Make<ModelAtomic<int>>(0).Named("turn");
    auto& guarded = m.Make<ModelPlain<int>>(0);
    const auto run = [&, store, load](ModelAtomic<bool>& mine, ModelAtomic<bool>& other, int others_turn) {
      mine.store(true, store);
      turn.store(others_turn, store);
      while (other.load(load) && turn.load(load) == others_turn) ModelYield();
      ++guarded;
      mine.store(false, kRelease);
    };
    m.Thread([&, run] { run(want0, want1, 1); });
    m.Thread([&, run] { run(want1, want0, 0); });
    m.After([&] { MODEL_ASSERT(guarded == 2); });
  };
}

TEST(Interleaving, PetersonsLockHoldsIfSequentiallyConsistentAndNotOtherwise) {
  const ModelResult result = CheckInterleavings({}, Peterson(kSeqCst, kSeqCst));
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(result.executions, 12);
  ExpectFails(ModelFailure::kDataRace, Peterson(kRelease, kAcquire));
  ExpectFails(ModelFailure::kDataRace, Peterson(kSeqCst, kAcquire));
  ExpectFails(ModelFailure::kDataRace, Peterson(kRelease, kSeqCst));
}

// The core of Dekker's algorithm: a thread that sees the wish of the other one stays out.
Program Dekker(std::memory_order store, std::memory_order load) {
  return [=](Model& m) {
    auto& want0 = m.Make<ModelAtomic<bool>>(false);
    auto& want1 = m.Make<ModelAtomic<bool>>(false);
    auto& guarded = m.Make<ModelPlain<int>>(0);
    const auto run = [&guarded, store, load](ModelAtomic<bool>& mine, ModelAtomic<bool>& other) {
      mine.store(true, store);
      if (!other.load(load)) ++guarded;
    };
    m.Thread([&, run] { run(want0, want1); });
    m.Thread([&, run] { run(want1, want0); });
  };
}

TEST(Interleaving, DekkersEntryExcludesIfSequentiallyConsistentAndNotOtherwise) {
  ExpectPasses(Dekker(kSeqCst, kSeqCst), 3);
  ExpectFails(ModelFailure::kDataRace, Dekker(kRelease, kAcquire));
}

Program SpinLock(std::memory_order lock, std::memory_order unlock) {
  return [=](Model& m) {
    auto& locked = m.Make<ModelAtomic<bool>>(false);
    auto& guarded = m.Make<ModelPlain<int>>(0);
    for (int i = 0; i < 3; ++i) {
      m.Thread([&, lock, unlock] {
        while (locked.exchange(true, lock)) ModelYield();
        ++guarded;
        locked.store(false, unlock);
      });
    }
    m.After([&] { MODEL_ASSERT(guarded == 3); });
  };
}

TEST(Interleaving, ASpinLockNeedsItsAcquireAndItsRelease) {
  const ModelResult result = CheckInterleavings({}, SpinLock(kAcquire, kRelease));
  EXPECT_TRUE(result.ok()) << result;
  ExpectFails(ModelFailure::kDataRace, SpinLock(kRelaxed, kRelease));
  ExpectFails(ModelFailure::kDataRace, SpinLock(kAcquire, kRelaxed));
}

// A Treiber stack: two threads push, one pops.
struct StackNode {
  explicit StackNode(int v) : value(v) {}
  ModelPlain<int> value;
  ModelPlain<StackNode*> next{nullptr};
};

Program TreiberStack(std::memory_order push, std::memory_order pop) {
  return [=](Model& m) {
    auto& head = m.Make<ModelAtomic<StackNode*>>(nullptr).Named("head");
    auto& popped = m.Make<std::vector<int>>();
    for (int i = 1; i <= 2; ++i) {
      auto& node = m.Make<StackNode>(i);
      m.Thread([&, push] {
        StackNode* top = head.load(kRelaxed);
        do {
          node.next = top;
        } while (!head.compare_exchange_weak(top, &node, push, kRelaxed));
      });
    }
    m.Thread("popper", [&, pop] {
      StackNode* top = head.load(pop);
      while (top != nullptr && !head.compare_exchange_weak(top, top->next, pop, pop)) {
      }
      if (top != nullptr) popped.push_back(top->value);
    });
    m.After([&] {
      std::multiset<int> all(popped.begin(), popped.end());
      for (StackNode* node = head.load(); node != nullptr; node = node->next) all.insert(node->value);
      MODEL_ASSERT((all == std::multiset<int>{1, 2}));
    });
  };
}

TEST(Interleaving, ATreiberStackNeedsItsReleaseAndItsAcquire) {
  const ModelResult result = CheckInterleavings({.max_spurious_failures = 1}, TreiberStack(kRelease, kAcquire));
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_TRUE(result.complete);
  ExpectFails(ModelFailure::kDataRace, TreiberStack(kRelaxed, kAcquire));
  ExpectFails(ModelFailure::kDataRace, TreiberStack(kRelease, kRelaxed));
}

// Parking. A consumer sleeps if there is no work; a producer wakes it if it sleeps.
enum class Recheck { kNone, kAfterAnnouncing };

Program Park(Recheck recheck, std::memory_order order) {
  return [=](Model& m) {
    auto& work = m.Make<ModelAtomic<int>>(0).Named("work");
    auto& asleep = m.Make<ModelAtomic<bool>>(false).Named("asleep");
    auto& token = m.Make<ModelSemaphore>(0, 1).Named("token");
    const auto load = order == kSeqCst ? kSeqCst : kAcquire;
    const auto store = order == kSeqCst ? kSeqCst : kRelease;
    m.Thread("producer", [&, load, store] {
      work.store(1, store);
      if (asleep.load(load)) token.Release();
    });
    m.Thread("consumer", [&, load, store, recheck] {
      while (work.load(load) == 0) {
        asleep.store(true, store);
        if (recheck == Recheck::kNone || work.load(load) == 0) token.Acquire();
        asleep.store(false, store);
      }
    });
  };
}

TEST(Interleaving, FindsALostWakeUpAndPassesItsRepair) {
  const ModelResult lost = ExpectFails(ModelFailure::kDeadlock, Park(Recheck::kNone, kSeqCst));
  EXPECT_NE(lost.message.find("thread 1 (producer): has ended\n  thread 2 (consumer): acquires atomic#2 (token)"),
            std::string::npos)
      << lost.message;
  ExpectFails(ModelFailure::kDeadlock, Park(Recheck::kAfterAnnouncing, kAcqRel));
  const ModelResult repaired = CheckInterleavings({}, Park(Recheck::kAfterAnnouncing, kSeqCst));
  EXPECT_TRUE(repaired.ok()) << repaired;
  EXPECT_EQ(repaired.executions, 5);
}

TEST(Interleaving, WaitReturnsWhenItIsNotified) {
  const auto test = [](bool notify) {
    return [notify](Model& m) {
      auto& word = m.Make<ModelAtomic<int>>(0);
      auto& data = m.Make<ModelPlain<int>>(0);
      m.Thread([&] {
        word.wait(0, kAcquire);
        MODEL_ASSERT(data == 1);
      });
      m.Thread([&, notify] {
        data = 1;
        word.store(1, kRelease);
        if (notify) word.notify_one();
      });
    };
  };
  ExpectPasses(test(true), 2);
  const ModelResult result = ExpectFails(ModelFailure::kDeadlock, test(false));
  EXPECT_NE(result.message.find("thread 1: waits for a notify of atomic#0"), std::string::npos) << result.message;
}

TEST(Interleaving, NotifyOneWakesOneAndNotifyAllWakesAll) {
  const auto test = [](bool all) {
    return [all](Model& m) {
      auto& word = m.Make<ModelAtomic<int>>(0);
      for (int i = 0; i < 2; ++i) m.Thread([&] { word.wait(0, kAcquire); });
      m.Thread([&, all] {
        word.store(1, kRelease);
        all ? word.notify_all() : word.notify_one();
      });
    };
  };
  ExpectFails(ModelFailure::kDeadlock, test(false));
  const ModelResult result = CheckInterleavings({}, test(true));
  EXPECT_TRUE(result.ok()) << result;
}

TEST(Interleaving, WaitLooksAgainAfterANotifyWithoutAChange) {
  const ModelResult result = CheckInterleavings({}, [](Model& m) {
    auto& word = m.Make<ModelAtomic<int>>(0);
    m.Thread([&] {
      word.wait(0, kAcquire);
      MODEL_ASSERT(word.load(kRelaxed) == 1);
    });
    m.Thread([&] {
      word.notify_one();
      word.store(1, kRelease);
      word.notify_one();
    });
  });
  EXPECT_TRUE(result.ok()) << result;
}

TEST(Interleaving, ASemaphoreHandsOutNoMoreThanItHas) {
  const ModelResult result = CheckInterleavings({}, [](Model& m) {
    auto& permits = m.Make<ModelSemaphore>(1);
    auto& guarded = m.Make<ModelPlain<int>>(0);
    for (int i = 0; i < 3; ++i) {
      m.Thread([&] {
        permits.Acquire();
        ++guarded;
        permits.Release();
      });
    }
    m.After([&] { MODEL_ASSERT(guarded == 3); });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(result.executions, 6);
  ExpectFails(ModelFailure::kDataRace, [](Model& m) {
    auto& permits = m.Make<ModelSemaphore>(2);
    auto& guarded = m.Make<ModelPlain<int>>(0);
    for (int i = 0; i < 2; ++i) {
      m.Thread([&] {
        permits.Acquire();
        ++guarded;
        permits.Release();
      });
    }
  });
}

TEST(Interleaving, ASemaphoreKeepsNoMoreThanItsMaximum) {
  ExpectFails(ModelFailure::kDeadlock, [](Model& m) {
    auto& token = m.Make<ModelSemaphore>(0, 1);
    m.Thread([&] {
      token.Release();
      token.Release();
    });
    m.Thread([&] {
      token.Acquire();
      token.Acquire();
    });
  });
}

// Loops that wait.

TEST(Interleaving, EveryThreadThatYieldsForeverIsADeadlock) {
  ExpectFails(ModelFailure::kDeadlock, [](Model& m) {
    auto& flag = m.Make<ModelAtomic<bool>>(false);
    m.Thread([&] {
      while (!flag.load(kRelaxed)) ModelYield();
    });
  });
}

TEST(Interleaving, ALoopThatWaitsSeesEachOfTheStoresItWaitsFor) {
  std::set<int> seen;
  const ModelResult result = CheckInterleavings({}, [&](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    m.Thread([&] {
      for (int i = 1; i <= 3; ++i) x.store(i, kRelaxed);
    });
    m.Thread([&] {
      int value = 0;
      while ((value = x.load(kRelaxed)) == 0) ModelYield();
      seen.insert(value);
    });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3}));
}

TEST(Interleaving, ALoopThatWaitsForOneVariableMayStillSeeAnOldValueOfAnother) {
  std::set<int> seen;
  const ModelResult result = CheckInterleavings({}, [&](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    auto& flag = m.Make<ModelAtomic<bool>>(false);
    m.Thread([&] {
      x.store(1, kRelaxed);
      flag.store(true, kRelaxed);
    });
    m.Thread([&] {
      int rounds = 0;
      int last = x.load(kRelaxed);
      while (!flag.load(kRelaxed)) {
        ModelYield();
        ++rounds;
        last = x.load(kRelaxed);
      }
      if (rounds > 0) seen.insert(last);
    });
  });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(seen, (std::set<int>{0, 1}));
}

TEST(Interleaving, ALoopWithoutAYieldRunsIntoTheStepLimit) {
  const ModelResult result = ExpectFails(ModelFailure::kStepLimit,
                                         [](Model& m) {
                                           auto& flag = m.Make<ModelAtomic<bool>>(false);
                                           m.Thread([&] {
                                             while (!flag.load(kRelaxed)) {
                                             }
                                           });
                                           m.Thread([&] { flag.store(true, kRelaxed); });
                                         },
                                         {.max_steps = 100});
  EXPECT_NE(result.message.find("more than 100 operations"), std::string::npos) << result.message;
}

// Lifetimes.

TEST(Interleaving, FindsAnAtomicThatIsUsedAfterItWasDestroyed) {
  const auto test = [](std::memory_order order) {
    return [order](Model& m) {
      auto& count = m.Make<ModelAtomic<int>>(2).Named("count");
      auto& payload = m.Make<ModelAtomic<int>>(0).Named("payload");
      for (int i = 0; i < 2; ++i) {
        m.Thread([&, order] {
          payload.store(1, kRelaxed);
          if (count.fetch_sub(1, order) == 1) m.Destroy(payload);
        });
      }
    };
  };
  const ModelResult result = CheckInterleavings({}, test(kAcqRel));
  EXPECT_TRUE(result.ok()) << result;
  const ModelResult unordered = ExpectFails(ModelFailure::kUseAfterFree, test(kRelaxed));
  EXPECT_NE(unordered.message.find("destroys atomic#1 (payload), and nothing orders that after its last use by thread"),
            std::string::npos)
      << unordered.message;

  const ModelResult late = ExpectFails(ModelFailure::kUseAfterFree, [](Model& m) {
    auto& flag = m.Make<ModelAtomic<bool>>(false).Named("flag");
    auto& payload = m.Make<ModelAtomic<int>>(0).Named("payload");
    m.Thread([&] {
      m.Destroy(payload);
      flag.store(true, kRelease);
    });
    m.Thread([&] {
      while (!flag.load(kAcquire)) ModelYield();
      payload.store(1);
    });
  });
  EXPECT_NE(late.message.find("thread 2 uses atomic#1 (payload) after it was destroyed"), std::string::npos)
      << late.message;
}

TEST(Interleaving, FindsAPlainVariableThatIsUsedAfterItWasDestroyed) {
  ExpectFails(ModelFailure::kUseAfterFree, [](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    m.Thread([&] {
      m.Destroy(data);
      data = 1;
    });
  });
  ExpectFails(ModelFailure::kDataRace, [](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    m.Thread([&] { static_cast<void>(data.Get()); });
    m.Thread([&] { m.Destroy(data); });
  });
}

TEST(Interleaving, FindsAnAtomicThatIsUsedBeforeItsConstructionIsVisible) {
  const auto test = [](std::memory_order order) {
    return [order](Model& m) {
      auto& pointer = m.Make<ModelAtomic<ModelAtomic<int>*>>(nullptr);
      m.Thread([&, order] { pointer.store(&m.Make<ModelAtomic<int>>(5), order); });
      m.Thread([&] {
        ModelAtomic<int>* made = pointer.load(kAcquire);
        if (made != nullptr) MODEL_ASSERT(made->load(kRelaxed) == 5);
      });
    };
  };
  ExpectPasses(test(kRelease), 2);
  ExpectFails(ModelFailure::kDataRace, test(kRelaxed));
}

// Other reports of the checker.

TEST(Interleaving, NamesTheAssertionThatFailed) {
  const ModelResult result = ExpectFails(ModelFailure::kAssertion, [](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    m.Thread([&] { x.store(1); });
    m.Thread([&] { MODEL_ASSERT(x.load() == 0, "x was " + std::to_string(x.load())); });
  });
  EXPECT_NE(result.message.find("interleaving_test.cc:"), std::string::npos);
  EXPECT_NE(result.message.find("x.load() == 0: x was 1"), std::string::npos) << result.message;
  std::ostringstream text;
  text << result;
  EXPECT_EQ(text.str().rfind("failed: assertion, ", 0), 0u) << text.str();
}

TEST(Interleaving, ShowsPointersAsNumbersAndNotAsAddresses) {
  const ModelResult result = ExpectFails(ModelFailure::kAssertion, [](Model& m) {
    auto& x = m.Make<ModelAtomic<int*>>(nullptr);
    auto& w = m.Make<ModelAtomic<uintptr_t>>(0u);
    auto& target = m.Make<int>(0);
    m.Thread([&] {
      x.store(&target);
      w.store(reinterpret_cast<uintptr_t>(&target) | 1);
      MODEL_ASSERT(false);
    });
  });
  EXPECT_NE(result.message.find("atomic#0.store(pointer#0, seq_cst)"), std::string::npos) << result.message;
}

TEST(Interleaving, ReportsAnExceptionThatLeavesAThread) {
  const ModelResult result = ExpectFails(
      ModelFailure::kException, [](Model& m) { m.Thread("thrower", [] { throw std::runtime_error("out of luck"); }); });
  EXPECT_NE(result.message.find("thread 1 (thrower) threw an exception: out of luck"), std::string::npos);
}

TEST(Interleaving, LetsOtherThreadsRunWhileAnExceptionIsHandled) {
  ExpectPasses(
      [](Model& m) {
        auto& x = m.Make<ModelAtomic<int>>(0);
        for (int i = 0; i < 2; ++i) {
          m.Thread([&, i] {
            try {
              throw i;
            } catch (int) {
              x.fetch_add(1);
              try {
                throw;
              } catch (int caught) {
                MODEL_ASSERT(caught == i);
              }
            }
          });
        }
        m.After([&] { MODEL_ASSERT(x.load() == 2); });
      },
      2);
}

TEST(Interleaving, FailsAtTheExecutionLimitUnlessAskedNotTo) {
  const Program test = [](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    for (int i = 0; i < 2; ++i) {
      m.Thread([&] {
        x.fetch_add(1);
        x.fetch_add(1);
      });
    }
  };
  ExpectPasses(test, 6);
  const ModelResult limited = CheckInterleavings({.max_executions = 5}, test);
  EXPECT_EQ(limited.failure, ModelFailure::kExecutionLimit);
  EXPECT_FALSE(limited.complete);
  const ModelResult accepted = CheckInterleavings({.max_executions = 5, .allow_incomplete = true}, test);
  EXPECT_TRUE(accepted.ok());
  EXPECT_FALSE(accepted.complete);
  EXPECT_EQ(accepted.executions, 5);
}

TEST(Interleaving, APreemptionBoundLeavesOutWhatNeedsMoreSwitches) {
  // The lost update needs one preemption: between the load and the store of a thread.
  const Program test = [](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(0);
    for (int i = 0; i < 2; ++i) m.Thread([&] { x.store(x.load(kSeqCst) + 1, kSeqCst); });
    m.After([&] { MODEL_ASSERT(x.load() == 2); });
  };
  const ModelResult none = CheckInterleavings({.preemption_bound = 0}, test);
  EXPECT_TRUE(none.ok()) << none;
  EXPECT_EQ(none.executions, 2);
  ExpectFails(ModelFailure::kAssertion, test, {.preemption_bound = 1});
}

TEST(Interleaving, ExploresEveryValueOfAChoice) {
  std::set<int> chosen;
  const ModelResult result =
      CheckInterleavings({}, [&](Model& m) { m.Thread([&] { chosen.insert(ModelChoose(3) * 10 + ModelChoose(2)); }); });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(result.executions, 6);
  EXPECT_EQ(chosen, (std::set<int>{0, 1, 10, 11, 20, 21}));
}

TEST(Interleaving, ReportsATestThatDoesNotRepeatItself) {
  int calls = 0;
  const ModelResult result = CheckInterleavings({}, [&](Model& m) {
    ++calls;
    auto& x = m.Make<ModelAtomic<int>>(0);
    m.Thread([&] { x.store(1, kRelaxed); });
    if (calls == 1) m.Thread([&] { x.store(2, kRelaxed); });
    m.Thread([&] { x.load(kRelaxed); });
  });
  EXPECT_EQ(result.failure, ModelFailure::kNotRepeatable) << result;
}

TEST(Interleaving, RefusesATrailThatDoesNotFit) {
  const Program test = [](Model& m) { m.Thread([] { ModelChoose(2); }); };
  EXPECT_EQ(CheckInterleavings({.replay = "nonsense"}, test).failure, ModelFailure::kMisuse);
  EXPECT_EQ(CheckInterleavings({.replay = "5"}, test).failure, ModelFailure::kNotRepeatable);
  EXPECT_TRUE(CheckInterleavings({.replay = "1"}, test).ok());
}

TEST(Interleaving, RefusesOrdersThatAnOperationDoesNotTake) {
  const auto check = [](const std::function<void(ModelAtomic<int>&)>& use) {
    return CheckInterleavings({}, [&](Model& m) { use(m.Make<ModelAtomic<int>>(0)); }).failure;
  };
  EXPECT_EQ(check([](auto& x) { x.load(kRelease); }), ModelFailure::kMisuse);
  EXPECT_EQ(check([](auto& x) { x.store(1, kAcquire); }), ModelFailure::kMisuse);
  EXPECT_EQ(check([](auto& x) {
              int expected = 0;
              x.compare_exchange_strong(expected, 1, kAcqRel, kAcqRel);
            }),
            ModelFailure::kMisuse);
}

TEST(Interleaving, ExploresTheSameWayTwice) {
  const Program test = SpinLock(kRelaxed, kRelaxed);
  const ModelResult first = CheckInterleavings({}, test);
  const ModelResult second = CheckInterleavings({}, test);
  EXPECT_EQ(first.message, second.message);
  EXPECT_EQ(first.trail, second.trail);
}

// The orders that a test depends on.

TEST(Interleaving, TellsWhichOrdersATestDependsOn) {
  const auto results = CheckEachWeakening({}, [](Model& m) {
    auto& data = m.Make<ModelPlain<int>>(0);
    auto& ready = m.Make<ModelAtomic<bool>>(false);
    auto& unused = m.Make<ModelAtomic<int>>(0);
    m.Thread([&] {
      data = 1;
      unused.store(1, kSeqCst);
      ready.store(true, kRelease);
    });
    m.Thread([&] {
      if (ready.load(kAcquire)) MODEL_ASSERT(data == 1);
    });
  });
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0].result.ok());
  EXPECT_EQ(results[1].weakening.operation, "store");
  EXPECT_EQ(results[1].weakening.from, kSeqCst);
  EXPECT_EQ(results[1].weakening.to, kRelease);
  EXPECT_TRUE(results[1].result.ok()) << "nothing depends on it";
  EXPECT_EQ(results[2].weakening.from, kRelease);
  EXPECT_EQ(results[2].weakening.to, kRelaxed);
  EXPECT_EQ(results[2].result.failure, ModelFailure::kDataRace);
  EXPECT_EQ(results[3].weakening.operation, "load");
  EXPECT_EQ(results[3].result.failure, ModelFailure::kDataRace);
  EXPECT_EQ(results[3].weakening.Name(), "operator() load: acquire -> relaxed");
  std::ostringstream text;
  text << results[3].weakening;
  EXPECT_EQ(text.str(),
            "interleaving_test.cc:" + std::to_string(results[3].weakening.line) + " " + results[3].weakening.Name());
}

// ModelAtomic and ModelPlain as types.

TEST(ModelAtomic, DoesWhatStdAtomicDoes) {
  const ModelResult result = CheckInterleavings({}, [](Model& m) {
    auto& x = m.Make<ModelAtomic<int>>(5);
    MODEL_ASSERT(x == 5);
    MODEL_ASSERT(x.fetch_add(3) == 5 && x.fetch_sub(1) == 8 && x == 7);
    MODEL_ASSERT(x.fetch_and(6) == 7 && x.fetch_or(8) == 6 && x.fetch_xor(2) == 14 && x == 12);
    MODEL_ASSERT(++x == 13 && x++ == 13 && --x == 13 && x-- == 13);
    MODEL_ASSERT((x += 2) == 14 && (x -= 4) == 10 && (x = 1) == 1);
    MODEL_ASSERT(x.exchange(9) == 1);
    int expected = 1;
    MODEL_ASSERT(!x.compare_exchange_strong(expected, 2) && expected == 9);
    MODEL_ASSERT(x.compare_exchange_weak(expected, 2) && x.load() == 2 && expected == 9);
    x.wait(1);

    auto& narrow = m.Make<ModelAtomic<uint8_t>>(uint8_t{255});
    MODEL_ASSERT(narrow.fetch_add(2) == 255 && narrow == 1);
    auto& wide = m.Make<ModelAtomic<int64_t>>(int64_t{-1});
    MODEL_ASSERT(wide.fetch_sub(int64_t{1} << 40) == -1 && wide == -1 - (int64_t{1} << 40));
    static const int array[3] = {0, 1, 2};
    auto& pointer = m.Make<ModelAtomic<const int*>>(&array[0]);
    MODEL_ASSERT(pointer.fetch_add(2) == &array[0] && pointer.fetch_sub(1) == &array[2] && *pointer.load() == 1);
    enum class Color : uint8_t { kRed, kGreen };
    auto& color = m.Make<ModelAtomic<Color>>(Color::kRed);
    MODEL_ASSERT(color.exchange(Color::kGreen) == Color::kRed && color.load() == Color::kGreen);
    auto& none = m.Make<ModelAtomic<int>>();
    MODEL_ASSERT(none == 0);
  });
  EXPECT_TRUE(result.ok()) << result;
}

TEST(ModelPlain, StandsForItsValue) {
  const ModelResult result = CheckInterleavings({}, [](Model& m) {
    auto& x = m.Make<ModelPlain<int>>(5);
    MODEL_ASSERT(++x == 6 && x++ == 6 && --x == 6 && x-- == 6 && x == 5);
    x += 3;
    x -= 1;
    ModelPlain<int> copy = x;
    copy = 1;
    MODEL_ASSERT(x == 7 && copy == 1);
    x = copy;
    MODEL_ASSERT(x == 1);
    std::string text = "abc";
    auto& pointer = m.Make<ModelPlain<std::string*>>(&text);
    MODEL_ASSERT(pointer->size() == 3 && *pointer == "abc" && pointer != nullptr);
  });
  EXPECT_TRUE(result.ok()) << result;
}

}  // namespace
}  // namespace fraktor
