#include "fraktor/utils/future/stoppable_task.h"

#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/test_executors.h"

namespace fraktor {
namespace {

// Waits for two futures, and counts what it has reached.
Task<void> WaitTwice(Future<int> first, Future<int> second, std::shared_ptr<int> reached) {
  auto one = co_await first;
  *reached += one.ok() ? 1 : 100;
  auto two = co_await second;
  *reached += two.ok() ? 1 : 100;
}
Task<void> Throw(Future<int> first) {
  auto one = co_await first;
  throw std::runtime_error("as told");
}

TEST(RunUntilStopped, RunsToTheEndWithoutAStop) {
  ManualExecutor executor;
  auto first = MakePromise<int>();
  auto second = MakePromise<int>();
  auto reached = std::make_shared<int>(0);
  std::stop_source stop;
  Future<void> done =
      RunUntilStopped(WaitTwice(std::move(first.future), std::move(second.future), reached), stop.get_token())
          .Start(executor);
  executor.RunAll();
  first.promise.Set(1);
  executor.RunAll();
  EXPECT_EQ(*reached, 1);
  EXPECT_FALSE(done.IsReady());
  second.promise.Set(2);
  executor.RunAll();
  ASSERT_TRUE(done.IsReady());
  EXPECT_TRUE(done.Take().ok());
  EXPECT_EQ(*reached, 2);
  EXPECT_EQ(reached.use_count(), 1);
}

TEST(RunUntilStopped, EndsAtThePresentAwaitOnTheExecutorOfTheOuterTask) {
  ManualExecutor executor;
  auto first = MakePromise<int>();
  auto second = MakePromise<int>();
  auto reached = std::make_shared<int>(0);
  std::stop_source stop;
  Future<void> done =
      RunUntilStopped(WaitTwice(std::move(first.future), std::move(second.future), reached), stop.get_token())
          .Start(executor);
  executor.RunAll();
  first.promise.Set(1);
  executor.RunAll();
  std::thread([&] { stop.request_stop(); }).join();
  EXPECT_EQ(reached.use_count(), 2) << "the frames end where the task runs, and not where the stop is requested";
  executor.RunAll();
  ASSERT_TRUE(done.IsReady());
  EXPECT_TRUE(done.Take().ok());
  EXPECT_EQ(*reached, 1);
  EXPECT_EQ(reached.use_count(), 1);
  EXPECT_TRUE(second.promise.IsCancelled());
}

TEST(RunUntilStopped, RethrowsAnException) {
  ManualExecutor executor;
  auto first = MakePromise<int>();
  Future<void> done = RunUntilStopped(Throw(std::move(first.future)), std::stop_token()).Start(executor);
  executor.RunAll();
  first.promise.Set(1);
  executor.RunAll();
  ASSERT_TRUE(done.IsReady());
  EXPECT_NE(done.Take().message().find("as told"), absl::string_view::npos);
}

}  // namespace
}  // namespace fraktor
