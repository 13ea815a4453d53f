#include "fraktor/utils/future/with_stop.h"

#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor {
namespace {

TEST(WithStop, GivesTheResultThatComesFirst) {
  std::stop_source stop;
  auto [promise, future] = MakePromise<int>();
  Future<int> whole = WithStop(std::move(future), stop.get_token());
  EXPECT_FALSE(whole.IsReady());
  promise.Set(1);
  ASSERT_TRUE(whole.IsReady());
  stop.request_stop();
  EXPECT_EQ(whole.Take().value(), 1);
}

TEST(WithStop, IsCancelledByAStop) {
  std::stop_source stop;
  auto [promise, future] = MakePromise<int>();
  Future<int> whole = WithStop(std::move(future), stop.get_token());
  stop.request_stop();
  ASSERT_TRUE(whole.IsReady());
  EXPECT_TRUE(promise.IsCancelled()) << "the promise side is told";
  EXPECT_EQ(whole.Take().status(), absl::CancelledError("a stop was requested"));
  promise.Set(1);
}

TEST(WithStop, IsCancelledAtOnceIfTheStopWasRequestedBefore) {
  std::stop_source stop;
  stop.request_stop();
  auto [promise, future] = MakePromise<void>();
  EXPECT_EQ(WithStop(std::move(future), stop.get_token()).Take().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(WithStop(MakeReadyFuture<int>(2), stop.get_token()).Take().value(), 2) << "a result that is there is kept";
}

TEST(WithStop, NeverStopsByATokenWithoutASource) {
  auto [promise, future] = MakePromise<int>();
  Future<int> whole = WithStop(std::move(future), std::stop_token());
  promise.Set(3);
  EXPECT_EQ(whole.Take().value(), 3);
}

TEST(WithStop, PassesACancellationOn) {
  std::stop_source stop;
  auto [promise, future] = MakePromise<int>();
  Future<int> whole = WithStop(std::move(future), stop.get_token());
  EXPECT_TRUE(whole.Cancel());
  EXPECT_TRUE(promise.IsCancelled());
  stop.request_stop();
  EXPECT_EQ(whole.Take().status().code(), absl::StatusCode::kCancelled);
}

// The waker of a future drops the future, on the thread that requests the stop.
TEST(WithStop, MayBeDroppedByWhomItWakes) {
  std::stop_source stop;
  auto [promise, future] = MakePromise<int>();
  auto whole = std::make_unique<Future<int>>(WithStop(std::move(future), stop.get_token()));
  ASSERT_FALSE(whole->Poll(
      Waker{.function = [](void* target, uint64_t,
                           uint64_t) noexcept { static_cast<std::unique_ptr<Future<int>>*>(target)->reset(); },
            .target = &whole}));
  stop.request_stop();
  EXPECT_EQ(whole, nullptr);
  EXPECT_TRUE(promise.IsCancelled());
}

TEST(WithStop, ComesToOneEndIfStopResultAndDropRace) {
  for (int i = 0; i < 2000; ++i) {
    std::stop_source stop;
    auto [promise, future] = MakePromise<int>();
    Future<int> whole = WithStop(std::move(future), stop.get_token());
    std::thread stopping([&] { stop.request_stop(); });
    std::thread setting([its = std::move(promise)]() mutable { its.Set(1); });
    if (i % 2 == 0) {
      const absl::StatusOr<int> result = whole.Wait();
      EXPECT_TRUE(result.ok() ? *result == 1 : absl::IsCancelled(result.status())) << result.status();
    } else {
      whole = Future<int>();
    }
    stopping.join();
    setting.join();
  }
}

}  // namespace
}  // namespace fraktor
