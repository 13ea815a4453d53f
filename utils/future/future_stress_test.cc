// Races between the two ends of a future, counted over many rounds. ThreadSanitizer runs this too.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/test_executors.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor {
namespace {

constexpr int kRounds = 100'000;
// The threads synchronize after each batch of this many futures. A batch of one would mostly
// measure the synchronization; a batch of all would hardly ever race.
constexpr int kBatch = 50;

// Runs `first(i)` and `second(i)` on two threads for each i, in step.
template <class First, class Second>
void Race(First first, Second second) {
  std::array<std::atomic<int>, 2> progress{0, 0};
  const auto run = [&](int me, auto& step) {
    for (int begin = 0; begin < kRounds; begin += kBatch) {
      progress[me].store(begin, std::memory_order_release);
      while (progress[1 - me].load(std::memory_order_acquire) < begin) std::this_thread::yield();
      for (int i = begin; i < begin + kBatch; ++i) step(i);
    }
    progress[me].store(kRounds, std::memory_order_release);
  };
  std::thread other([&] { run(1, second); });
  run(0, first);
  other.join();
}

struct Rounds {
  Rounds() : wakes(kRounds), cancels(kRounds) {
    pairs.reserve(kRounds);
    for (int i = 0; i < kRounds; ++i) pairs.push_back(MakePromise<std::unique_ptr<int>>());
  }

  static void Count(void* target, uint64_t, uint64_t) noexcept {
    static_cast<std::atomic<int>*>(target)->fetch_add(1, std::memory_order_relaxed);
  }
  Waker waker(int i) { return Waker{.function = &Count, .target = &wakes[i]}; }
  Waker cancel_waker(int i) { return Waker{.function = &Count, .target = &cancels[i]}; }

  std::vector<PromiseAndFuture<std::unique_ptr<int>>> pairs;
  std::vector<std::atomic<int>> wakes;
  std::vector<std::atomic<int>> cancels;
};

TEST(FutureStress, WakesExactlyOnceIfAndOnlyIfThePollWasPending) {
  Rounds rounds;
  std::vector<char> pending(kRounds);
  Race([&](int i) { rounds.pairs[i].promise.Set(std::make_unique<int>(i)); },
       [&](int i) { pending[i] = rounds.pairs[i].future.Poll(rounds.waker(i)) ? 0 : 1; });
  int waited = 0;
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(rounds.wakes[i].load(), pending[i]) << i;
    ASSERT_EQ(**rounds.pairs[i].future.Take(), i);
    waited += pending[i];
  }
  RecordProperty("waited", waited);
}

TEST(FutureStress, WakesTheLastOfTheWakersWhenTheyAreReplaced) {
  Rounds rounds;
  std::vector<std::atomic<int>> replaced(kRounds);
  enum Outcome : char { kNoWake, kOneWake, kWakeOfTheLast };
  std::vector<Outcome> expected(kRounds, kNoWake);
  Race([&](int i) { rounds.pairs[i].promise.Set(std::make_unique<int>(i)); },
       [&](int i) {
         Future<std::unique_ptr<int>>& future = rounds.pairs[i].future;
         const Waker first{.function = &Rounds::Count, .target = &replaced[i], .first = 1};
         // A Poll that returns false has replaced the previous waker. A Poll that returns true may
         // have come too late for that: then the previous waker is woken, or none, and StopWaking
         // tells which.
         if (future.Poll(first) || future.Poll(rounds.waker(i)) || future.Poll(first)) {
           expected[i] = future.StopWaking() ? kNoWake : kOneWake;
         } else {
           expected[i] = kWakeOfTheLast;
         }
       });
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(replaced[i].load() + rounds.wakes[i].load(), expected[i] == kNoWake ? 0 : 1) << i;
    if (expected[i] == kWakeOfTheLast) {
      ASSERT_EQ(replaced[i].load(), 1) << i;
    }
    ASSERT_EQ(**rounds.pairs[i].future.Take(), i);
  }
}

TEST(FutureStress, TakesTheWakerBackOrGetsTheWakeUp) {
  Rounds rounds;
  std::vector<char> owed(kRounds);
  Race([&](int i) { rounds.pairs[i].promise.Set(std::make_unique<int>(i)); },
       [&](int i) {
         Future<std::unique_ptr<int>>& future = rounds.pairs[i].future;
         if (!future.Poll(rounds.waker(i))) owed[i] = future.StopWaking() ? 0 : 1;
       });
  for (int i = 0; i < kRounds; ++i) ASSERT_EQ(rounds.wakes[i].load(), owed[i]) << i;
}

TEST(FutureStress, IsCompletedOrCancelledButNotBoth) {
  Rounds rounds;
  std::vector<char> accepted(kRounds), cancelled(kRounds);
  Race([&](int i) { accepted[i] = rounds.pairs[i].promise.Set(std::make_unique<int>(i)) ? 1 : 0; },
       [&](int i) {
         Future<std::unique_ptr<int>>& future = rounds.pairs[i].future;
         const bool is_ready = future.Poll(rounds.waker(i));
         cancelled[i] = future.Cancel() ? 1 : 0;
         ASSERT_TRUE(!is_ready || cancelled[i] == 0);
         ASSERT_EQ(future.Take().ok(), cancelled[i] == 0);
       });
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(accepted[i] + cancelled[i], 1) << i;
    ASSERT_LE(rounds.wakes[i].load(), accepted[i]) << i;
  }
}

TEST(FutureStress, TellsThePromiseOnceWhenTheFutureIsDropped) {
  Rounds rounds;
  std::vector<char> registered(kRounds);
  Race([&](int i) { registered[i] = rounds.pairs[i].promise.OnCancel(rounds.cancel_waker(i)) ? 1 : 0; },
       [&](int i) { rounds.pairs[i].future = {}; });
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(rounds.cancels[i].load(), registered[i]) << i;
    ASSERT_TRUE(rounds.pairs[i].promise.IsCancelled());
  }
}

TEST(FutureStress, FreesEverythingOnceWhenBothEndsGoTogether) {
  Rounds rounds;
  std::vector<std::shared_ptr<int>> values;
  for (int i = 0; i < kRounds; ++i) values.push_back(std::make_shared<int>(i));
  std::vector<PromiseAndFuture<std::shared_ptr<int>>> shared;
  for (int i = 0; i < kRounds; ++i) shared.push_back(MakePromise<std::shared_ptr<int>>());
  Race(
      [&](int i) {
        if (i % 2 == 0) shared[i].promise.Set(values[i]);
        shared[i].promise = {};
        if (i % 3 == 0) rounds.pairs[i].promise.OnCancel(rounds.cancel_waker(i));
        rounds.pairs[i].promise = {};
      },
      [&](int i) {
        if (i % 5 == 0) (void)shared[i].future.Poll(rounds.waker(i));
        shared[i].future = {};
        rounds.pairs[i].future = {};
      });
  for (int i = 0; i < kRounds; ++i) ASSERT_EQ(values[i].use_count(), 1) << i;
}

TEST(FutureStress, RunsEachContinuationOnceOnItsThread) {
  std::vector<std::atomic<int>> calls(kRounds);
  std::vector<PromiseAndFuture<int>> pairs;
  for (int i = 0; i < kRounds; ++i) pairs.push_back(MakePromise<int>());
  std::vector<Future<int>> results(kRounds);
  std::atomic<int> elsewhere{0};
  {
    ThreadExecutor executor;
    const std::thread::id home = executor.thread_id();
    Race([&](int i) { pairs[i].promise.Set(i); },
         [&](int i) {
           results[i] = std::move(pairs[i].future).Then(executor, [&calls, &elsewhere, home, i](absl::StatusOr<int> n) {
             if (std::this_thread::get_id() != home) ++elsewhere;
             calls[i].fetch_add(1, std::memory_order_relaxed);
             return *n;
           });
           if (i % 4 == 0) results[i] = {};
         });
  }
  for (int i = 0; i < kRounds; ++i) {
    if (i % 4 == 0) {
      ASSERT_LE(calls[i].load(), 1) << i;
    } else {
      ASSERT_EQ(calls[i].load(), 1) << i;
      ASSERT_EQ(results[i].Take().value(), i);
    }
  }
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST(FutureStress, WaitsAndTimesOutAgainstTheCompletion) {
  Rounds rounds;
  Race([&](int i) { rounds.pairs[i].promise.Set(std::make_unique<int>(i)); },
       [&](int i) {
         Future<std::unique_ptr<int>>& future = rounds.pairs[i].future;
         auto result = future.WaitFor(absl::ZeroDuration());
         if (!result.has_value()) result = future.Wait();
         ASSERT_EQ(***result, i);
       });
}

}  // namespace
}  // namespace fraktor
