// The state word of a future in every interleaving of the side that completes and the side that
// waits. The waiter is woken exactly once and sees the value, and exactly one side frees the memory
// when both are done with it. Includes the proof that these tests can fail.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/future/internal/future_word.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {

using future_internal::FutureWord;

namespace {

// The state that the two sides share. The value lies beside the word, as in Future.
struct Shared {
  explicit Shared(Model& model) : m(model) {}

  Model& m;
  FutureWord<ModelAtomics> word;
  ModelPlain<int> value{0};

  void FreeIf(bool is_last) {
    if (is_last) m.Destroy(*this);
  }
};

// A waiter that may be woken only once.
struct Sleeper {
  ModelSemaphore wakes{0};
  ModelAtomic<int> count{0};

  Waker MakeWaker(uint64_t first = 0) {
    return {.function =
                [](void* target, uint64_t, uint64_t) noexcept {
                  auto& sleeper = *static_cast<Sleeper*>(target);
                  MODEL_ASSERT(sleeper.count.fetch_add(1, std::memory_order_relaxed) == 0, "woken twice");
                  sleeper.wakes.Release();
                },
            .target = this,
            .first = first};
  }
  int Count() const { return count.load(std::memory_order_relaxed); }
};

void CompleteAndGo(Shared& shared) {
  shared.value = 42;
  shared.FreeIf(shared.word.Complete().is_last);
}

// Waits until it is woken, and takes the value.
void CompleterAndPoller(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& sleeper = m.Make<Sleeper>();
  auto& waited = m.Make<bool>(false);
  m.Thread("promise", [&] { CompleteAndGo(shared); });
  m.Thread("future", [&] {
    while (!shared.word.Poll(sleeper.MakeWaker())) {
      waited = true;
      sleeper.wakes.Acquire();
    }
    MODEL_ASSERT(shared.value == 42);
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  // One wake-up for each wait, and none without.
  m.After([&] { MODEL_ASSERT(sleeper.Count() <= 1 && (!waited || sleeper.Count() == 1)); });
}

// Checks without waiting.
void CompleterAndLooker(Model& m) {
  auto& shared = m.Make<Shared>(m);
  m.Thread("promise", [&] { CompleteAndGo(shared); });
  m.Thread("future", [&] {
    if (shared.word.IsReady()) MODEL_ASSERT(shared.value == 42);
    shared.FreeIf(shared.word.ReleaseFuture());
  });
}

// Replaces its waker by another one; only one of them is woken.
void WakerIsReplaced(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& first = m.Make<Sleeper>();
  auto& second = m.Make<Sleeper>();
  m.Thread("promise", [&] { CompleteAndGo(shared); });
  m.Thread("future", [&] {
    if (!shared.word.Poll(first.MakeWaker(1)) && !shared.word.Poll(second.MakeWaker(2))) {
      second.wakes.Acquire();
      MODEL_ASSERT(first.Count() == 0);
    }
    MODEL_ASSERT(shared.word.IsReady());
    MODEL_ASSERT(shared.value == 42);
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] { MODEL_ASSERT(first.Count() + second.Count() <= 1); });
}

// Gives up waiting. If StopWaking says that the waker will not be called, it is not.
void WaiterStops(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& sleeper = m.Make<Sleeper>();
  auto& expected = m.Make<int>(0);
  m.Thread("promise", [&] { CompleteAndGo(shared); });
  m.Thread("future", [&] {
    const bool ready = shared.word.Poll(sleeper.MakeWaker());
    if (!ready && !shared.word.StopWaking()) {
      expected = 1;
      MODEL_ASSERT(shared.value == 42);
    }
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] { MODEL_ASSERT(sleeper.Count() == expected); });
}

// Cancels after waiting. Either the value or the cancellation is accepted, and the promise side
// learns of it once.
void CompleterAndCanceller(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& waiter = m.Make<Sleeper>();
  auto& canceller = m.Make<Sleeper>();
  auto& accepted = m.Make<bool>(false);
  auto& cancelled = m.Make<bool>(false);
  auto& asked = m.Make<bool>(false);
  m.Thread("promise", [&] {
    asked = shared.word.OnCancel(canceller.MakeWaker());
    MODEL_ASSERT(asked || shared.word.IsCancelled());
    shared.value = 42;
    const auto completion = shared.word.Complete();
    accepted = completion.accepted;
    shared.FreeIf(completion.is_last);
  });
  m.Thread("future", [&] {
    shared.word.Poll(waiter.MakeWaker());
    cancelled = shared.word.Cancel();
    if (!cancelled) MODEL_ASSERT(shared.value == 42);
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] {
    MODEL_ASSERT(accepted != cancelled);
    MODEL_ASSERT(canceller.Count() == (asked && cancelled ? 1 : 0));
    MODEL_ASSERT(!cancelled || waiter.Count() == 0);
  });
}

// The promise side waits for a cancellation, replaces its waker, and takes it back.
void PromiseWatchesForCancellation(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& first = m.Make<Sleeper>();
  auto& second = m.Make<Sleeper>();
  auto& input = m.Make<ModelPlain<int>>(0);
  m.Thread("promise", [&] {
    if (shared.word.OnCancel(first.MakeWaker(1)) && shared.word.OnCancel(second.MakeWaker(2)) &&
        shared.word.StopCancelWaking()) {
      MODEL_ASSERT(first.Count() + second.Count() == 0);
    } else {
      // Everything that the future side did before it cancelled has ended.
      MODEL_ASSERT(input == 1);
    }
    shared.FreeIf(shared.word.ReleasePromise());
  });
  m.Thread("future", [&] {
    input = 1;
    MODEL_ASSERT(shared.word.Cancel());
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] { MODEL_ASSERT(first.Count() + second.Count() <= 1); });
}

// Checks for a cancellation, and reads the data of the other side.
void PromiseLooksForCancellation(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& input = m.Make<ModelPlain<int>>(0);
  m.Thread("promise", [&] {
    if (shared.word.IsCancelled()) MODEL_ASSERT(input == 1);
    shared.FreeIf(shared.word.ReleasePromise());
  });
  m.Thread("future", [&] {
    input = 1;
    shared.FreeIf(shared.word.ReleaseFuture());
  });
}

// Checks whether its wait is over, and ends it in one step: it knows whether it is woken.
void WaiterLooks(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& sleeper = m.Make<Sleeper>();
  auto& expected = m.Make<int>(-1);
  m.Thread("promise", [&] { CompleteAndGo(shared); });
  m.Thread("future", [&] {
    bool wake_is_owed = false;
    const bool waits = !shared.word.Poll(sleeper.MakeWaker());
    if (shared.word.EndWaitIfReady(wake_is_owed)) {
      MODEL_ASSERT(shared.value == 42);
      MODEL_ASSERT(wake_is_owed == waits);
      expected = wake_is_owed ? 1 : 0;
    }
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] { MODEL_ASSERT(expected == -1 || sleeper.Count() == expected); });
}

// The two sides take turns while one waits. A semaphore hands over the turn.
void SidesTakeTurns(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& sleeper = m.Make<Sleeper>();
  auto& waits = m.Make<ModelSemaphore>(0);
  m.Thread("promise", [&] {
    waits.Acquire();
    shared.value = 42;
    const auto completion = shared.word.Complete();
    MODEL_ASSERT(completion.accepted && !completion.is_last);
  });
  m.Thread("future", [&] {
    MODEL_ASSERT(!shared.word.PollInTurns(sleeper.MakeWaker()));
    waits.Release();
    sleeper.wakes.Acquire();
    bool wake_is_owed = false;
    MODEL_ASSERT(shared.word.EndWaitIfReady(wake_is_owed) && wake_is_owed);
    MODEL_ASSERT(shared.value == 42);
    MODEL_ASSERT(shared.word.ReleaseFuture());
    shared.FreeIf(true);
  });
  m.After([&] { MODEL_ASSERT(sleeper.Count() == 1); });
}

// When a wait in turns is given up, also because another waker replaces it, the turns are over.
void TurnsEndWithTheWait(Model& m, bool replaces) {
  auto& shared = m.Make<Shared>(m);
  auto& sleeper = m.Make<Sleeper>();
  auto& waited = m.Make<bool>(false);
  auto& gone = m.Make<Sleeper>();
  auto& given_up = m.Make<ModelSemaphore>(0);
  m.Thread("promise", [&] {
    given_up.Acquire();
    CompleteAndGo(shared);
  });
  m.Thread("future", [&, replaces] {
    MODEL_ASSERT(!shared.word.PollInTurns(gone.MakeWaker(1)));
    if (replaces) {
      waited = !shared.word.Poll(sleeper.MakeWaker(2));
    } else {
      MODEL_ASSERT(shared.word.StopWaking());
    }
    given_up.Release();
    while (!shared.word.Poll(sleeper.MakeWaker(2))) {
      waited = true;
      sleeper.wakes.Acquire();
    }
    MODEL_ASSERT(shared.value == 42);
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] { MODEL_ASSERT(gone.Count() == 0 && sleeper.Count() == (waited ? 1 : 0)); });
}
void WaiterInTurnsStops(Model& m) { TurnsEndWithTheWait(m, /*replaces=*/false); }
void WaiterInTurnsIsReplaced(Model& m) { TurnsEndWithTheWait(m, /*replaces=*/true); }
void WaiterInTurnsCancels(Model& m) {
  auto& shared = m.Make<Shared>(m);
  auto& sleeper = m.Make<Sleeper>();
  auto& cancelled = m.Make<ModelSemaphore>(0);
  m.Thread("promise", [&] {
    cancelled.Acquire();
    shared.value = 42;
    const auto completion = shared.word.Complete();
    MODEL_ASSERT(!completion.accepted);
    shared.FreeIf(completion.is_last);
  });
  m.Thread("future", [&] {
    MODEL_ASSERT(!shared.word.PollInTurns(sleeper.MakeWaker()));
    MODEL_ASSERT(shared.word.Cancel());
    cancelled.Release();
    shared.FreeIf(shared.word.ReleaseFuture());
  });
  m.After([&] { MODEL_ASSERT(sleeper.Count() == 0); });
}

const std::vector<ModelTest>& Cases() {
  static const auto& cases =
      *new std::vector<ModelTest>{{"completer and poller", CompleterAndPoller},
                                  {"completer and looker", CompleterAndLooker},
                                  {"waker is replaced", WakerIsReplaced},
                                  {"waiter stops", WaiterStops},
                                  {"completer and canceller", CompleterAndCanceller},
                                  {"promise watches for cancellation", PromiseWatchesForCancellation},
                                  {"promise looks for cancellation", PromiseLooksForCancellation},
                                  {"waiter looks", WaiterLooks},
                                  {"sides take turns", SidesTakeTurns},
                                  {"waiter in turns stops", WaiterInTurnsStops},
                                  {"waiter in turns is replaced", WaiterInTurnsIsReplaced},
                                  {"waiter in turns cancels", WaiterInTurnsCancels}};
  return cases;
}

TEST(FutureWordInterleaving, WakesOnceAndFreesOnce) {
  for (const ModelTest& test : Cases()) {
    const ModelResult result = CheckInterleavings({.max_spurious_failures = 1}, test.run);
    EXPECT_TRUE(result.ok()) << test.name << ": " << result;
    EXPECT_TRUE(result.complete) << test.name;
    std::cout << test.name << ": " << result << "\n";
  }
}

TEST(FutureWordInterleaving, FailsIfAMemoryOrderIsWeaker) {
  const ModelWeakeningReport report = FindUnnoticedWeakenings({}, Cases(), "future_word.h");
  EXPECT_TRUE(report.unweakened.ok()) << report.unweakened;
  const std::vector<std::string> unnoticed = {
      // The exchange that follows, or the final Release, acquires the same data.
      "Complete load: acquire -> relaxed",
      "Complete compare_exchange (failure): acquire -> relaxed",
      // If these succeed, the other side has not published anything yet.
      "Set compare_exchange: acq_rel -> release",
      "Clear compare_exchange: acq_rel -> acquire",
      "Clear compare_exchange: acq_rel -> release",
  };
  EXPECT_EQ(report.unnoticed, unnoticed) << report.text;
  EXPECT_GE(report.weakenings, 23);
  std::cout << report.text;
}

}  // namespace
}  // namespace fraktor
