// Tests tasks and continuations whose executor is full, closed or destroyed.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor {
namespace {

class ExecutorLifetimeTest : public testing::Test {
 protected:
  std::unique_ptr<SerialExecutor> MakeExecutor(int64_t capacity) {
    return SerialExecutor::Make(*toolbox_, {.capacity = capacity}).value();
  }
  void Pump() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }

  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
};

Task<int> AddOne(Future<int> number) {
  FRAKTOR_CO_ASSIGN_OR_RETURN(int n, co_await number);
  co_return n + 1;
}

TEST_F(ExecutorLifetimeTest, ATaskThatWaitsIsCancelledWhenItsExecutorHasGone) {
  auto executor = MakeExecutor(10);
  PromiseAndFuture<int> number = MakePromise<int>();
  Future<int> sum = AddOne(std::move(number.future)).Start(*executor);
  Pump();
  executor.reset();
  EXPECT_TRUE(number.promise.Set(1));
  ASSERT_TRUE(sum.IsReady());
  EXPECT_EQ(sum.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ExecutorLifetimeTest, AContinuationIsCancelledWhenItsExecutorHasGone) {
  auto executor = MakeExecutor(10);
  PromiseAndFuture<int> number = MakePromise<int>();
  Future<int> sum = std::move(number.future).Then(*executor, [](absl::StatusOr<int> n) { return *n + 1; });
  executor.reset();
  EXPECT_TRUE(number.promise.Set(1));
  ASSERT_TRUE(sum.IsReady());
  EXPECT_EQ(sum.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ExecutorLifetimeTest, ATaskMayOutliveTheToolboxToo) {
  auto executor = MakeExecutor(10);
  PromiseAndFuture<int> number = MakePromise<int>();
  Future<int> sum = AddOne(std::move(number.future)).Start(*executor);
  Pump();
  executor.reset();
  toolbox_.reset();
  { const Promise<int> broken = std::move(number.promise); }
  ASSERT_TRUE(sum.IsReady());
  EXPECT_EQ(sum.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ExecutorLifetimeTest, WorkThatWasTakenOnGoesOnWhenTheExecutorIsFull) {
  auto executor = MakeExecutor(1);
  PromiseAndFuture<int> number = MakePromise<int>();
  PromiseAndFuture<int> other = MakePromise<int>();
  Future<int> sum = AddOne(std::move(number.future)).Start(*executor);
  Future<int> then = std::move(other.future).Then(*executor, [](absl::StatusOr<int> n) { return *n + 1; });
  Pump();

  ASSERT_TRUE(executor->TryPost([] {}).ok());
  ASSERT_EQ(executor->TryPost([] {}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(number.promise.Set(5));
  EXPECT_TRUE(other.promise.Set(7));
  Pump();
  EXPECT_EQ(sum.Take().value(), 6);
  EXPECT_EQ(then.Take().value(), 8);
}

TEST_F(ExecutorLifetimeTest, ATaskIsNotBegunWhenTheExecutorIsFull) {
  auto executor = MakeExecutor(1);
  ASSERT_TRUE(executor->TryPost([] {}).ok());
  Future<int> sum = AddOne(MakeReadyFuture<int>(1)).Start(*executor);
  ASSERT_TRUE(sum.IsReady());
  EXPECT_EQ(sum.Take().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fraktor
