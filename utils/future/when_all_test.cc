#include "fraktor/utils/future/when_all.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor {
namespace {

Waker CountInto(std::atomic<int>& count) {
  return Waker{.function = [](void* target, uint64_t, uint64_t) noexcept { ++*static_cast<std::atomic<int>*>(target); },
               .target = &count};
}

template <class T>
struct Pairs {
  explicit Pairs(int count) {
    for (int i = 0; i < count; ++i) {
      PromiseAndFuture<T> pair = MakePromise<T>();
      promises.push_back(std::move(pair.promise));
      futures.push_back(std::move(pair.future));
    }
  }
  std::vector<Promise<T>> promises;
  std::vector<Future<T>> futures;
};

TEST(WhenAll, KeepsTheOrderOfTheFuturesAndWakesOnce) {
  Pairs<int> pairs(3);
  Future<std::vector<int>> all = WhenAll(std::move(pairs.futures));
  std::atomic<int> wakes{0};
  EXPECT_FALSE(all.Poll(CountInto(wakes)));
  pairs.promises[2].Set(2);
  pairs.promises[0].Set(0);
  EXPECT_FALSE(all.IsReady());
  EXPECT_EQ(wakes, 0);
  pairs.promises[1].Set(1);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(all.Take().value(), std::vector<int>({0, 1, 2}));
}

TEST(WhenAll, IsReadyWithoutFuturesAndWithReadyOnes) {
  EXPECT_EQ(WhenAll(std::vector<Future<int>>()).Take().value(), std::vector<int>());
  EXPECT_EQ(WhenAll(std::vector<Future<void>>()).Take(), absl::OkStatus());
  EXPECT_EQ(WhenAll().Take().value(), std::tuple<>());
  std::vector<Future<int>> ready;
  ready.push_back(MakeReadyFuture<int>(1));
  Future<std::vector<int>> all = WhenAll(std::move(ready));
  EXPECT_TRUE(all.IsReady());
  EXPECT_EQ(all.Take().value(), std::vector<int>({1}));
}

TEST(WhenAll, FailsWithTheFirstErrorInOrderAfterAllAreThere) {
  Pairs<int> pairs(3);
  Future<std::vector<int>> all = WhenAll(std::move(pairs.futures));
  pairs.promises[2].Set(absl::AbortedError("last"));
  EXPECT_FALSE(all.IsReady());
  pairs.promises[1].Set(absl::NotFoundError("middle"));
  EXPECT_FALSE(all.IsReady());
  pairs.promises[0].Set(1);
  EXPECT_EQ(all.Take().status(), absl::NotFoundError("middle"));
}

TEST(WhenAll, GivesEveryResultByItself) {
  Pairs<int> pairs(2);
  auto all = WhenAllResults(std::move(pairs.futures));
  pairs.promises[0].Set(absl::AbortedError("x"));
  pairs.promises[1].Set(5);
  std::vector<absl::StatusOr<int>> results = all.Take().value();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].status(), absl::AbortedError("x"));
  EXPECT_EQ(results[1].value(), 5);
}

TEST(WhenAll, TakesFuturesOfDifferentTypes) {
  auto [number, future_number] = MakePromise<int>();
  auto [box, future_box] = MakePromise<std::unique_ptr<std::string>>();
  auto [flag, future_flag] = MakePromise<void>();
  auto all = WhenAll(std::move(future_number), std::move(future_box), std::move(future_flag));
  flag.Set();
  number.Set(1);
  EXPECT_FALSE(all.IsReady());
  box.Set(std::make_unique<std::string>("x"));
  std::tuple<int, std::unique_ptr<std::string>, std::monostate> values = all.Take().value();
  EXPECT_EQ(std::get<0>(values), 1);
  EXPECT_EQ(*std::get<1>(values), "x");
  EXPECT_EQ(WhenAll(MakeReadyFuture<int>(1), MakeReadyFuture<void>(absl::AbortedError("no"))).Take().status(),
            absl::AbortedError("no"));
}

TEST(WhenAll, WaitsForVoid) {
  Pairs<void> pairs(2);
  Future<void> all = WhenAll(std::move(pairs.futures));
  pairs.promises[0].Set();
  pairs.promises[1].Set(absl::AbortedError("x"));
  EXPECT_EQ(all.Take(), absl::AbortedError("x"));
}

TEST(WhenAll, RunsMapsOfItsPartsWhenTheWholeIsTaken) {
  int calls = 0;
  std::vector<Future<int>> futures;
  futures.push_back(MakeReadyFuture<int>(1).Map([&](int n) {
    ++calls;
    return n + 1;
  }));
  Future<int> sum = WhenAll(std::move(futures)).Map([](std::vector<int> values) { return values[0]; });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(sum.Take().value(), 2);
  EXPECT_EQ(calls, 1);
}

TEST(WhenAll, CancelsItsPartsWhenItIsDroppedOrCancelled) {
  Pairs<int> dropped(2);
  Future<std::vector<int>> all = WhenAll(std::move(dropped.futures));
  dropped.promises[0].Set(1);
  all = {};
  EXPECT_TRUE(dropped.promises[1].IsCancelled());

  Pairs<int> cancelled(2);
  all = WhenAll(std::move(cancelled.futures));
  EXPECT_TRUE(all.Cancel());
  EXPECT_TRUE(cancelled.promises[0].IsCancelled() && cancelled.promises[1].IsCancelled());
  EXPECT_EQ(all.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST(WhenAll, TakesAHundredThousandFutures) {
  constexpr int kMany = 100'000;
  Pairs<int> pairs(kMany);
  Future<std::vector<int>> all = WhenAll(std::move(pairs.futures));
  std::atomic<int> wakes{0};
  EXPECT_FALSE(all.Poll(CountInto(wakes)));
  for (int i = kMany - 1; i >= 0; --i) pairs.promises[i].Set(i);
  EXPECT_EQ(wakes, 1);
  const std::vector<int> values = all.Take().value();
  ASSERT_EQ(values.size(), static_cast<size_t>(kMany));
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(values[i], i);
}

// Two threads complete the parts while a third one polls, drops or waits for the whole.
TEST(WhenAllStress, MeetsItsPartsFromSeveralThreads) {
  constexpr int kRounds = 2'000;
  constexpr int kParts = 8;
  int completed = 0;
  int owed = 0;
  std::atomic<int> wakes{0};
  std::vector<Pairs<int>> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.emplace_back(kParts);
  std::atomic<int> position{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        while (position.load(std::memory_order_acquire) < round) std::this_thread::yield();
        for (int i = t; i < kParts; i += 2) rounds[round].promises[i].Set(i);
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    position.store(round, std::memory_order_release);
    Future<std::vector<int>> all = WhenAll(std::move(rounds[round].futures));
    if (round % 3 == 0) continue;  // dropped
    // A waker that was taken back is never called. A waker that was not is called once.
    if (round % 3 == 1 && !all.Poll(CountInto(wakes)) && !all.StopWaking()) ++owed;
    if (all.Wait().value().size() == kParts) ++completed;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed, kRounds - (kRounds + 2) / 3);
  EXPECT_EQ(wakes.load(), owed);
}

}  // namespace
}  // namespace fraktor
