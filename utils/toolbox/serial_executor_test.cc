#include "fraktor/utils/toolbox/serial_executor.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_under_test.h"

namespace fraktor {
namespace {

template <typename Toolbox>
class SerialExecutorOn : public testing::Test {
 protected:
  std::unique_ptr<Toolbox> toolbox_ = Toolbox::Make({}).value();
};
using Toolboxes = testing::Types<StdToolbox, LocalToolbox, SimToolbox>;
TYPED_TEST_SUITE(SerialExecutorOn, Toolboxes);

TYPED_TEST(SerialExecutorOn, RunsTasksInOrderAndNeverInline) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {.tasks_per_step = 3}).value();
  std::vector<int> order;
  Tally ran;
  std::atomic<bool> posting = true;
  executor->Post([&] {
    // The other tasks are posted from inside a task: none of them runs before this task has ended.
    for (int i = 0; i < 10; ++i) {
      executor->Post([&, i] {
        EXPECT_FALSE(posting);
        order.push_back(i);
        ran.Add();
      });
    }
    posting = false;
  });
  Await(*this->toolbox_, ran, 10);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TYPED_TEST(SerialExecutorOn, ClosingRunsWhatWasTakenAndRefusesTheRest) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {.name = "disk"}).value();
  int ran = 0;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(executor->TryPost([&] { ++ran; }).ok());
  executor->Close();
  absl::Status refused = executor->TryPost([] { ADD_FAILURE(); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), "executor \"disk\" is closed; post before Close, or to another executor");
  auto owned = std::make_shared<int>();
  executor->Post([owned] { ADD_FAILURE(); });
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_TRUE(executor->Join().ok());
  EXPECT_EQ(ran, 200);
  EXPECT_EQ(executor->refused(), 2u);
  EXPECT_EQ(executor->pending(), 0u);
}

TYPED_TEST(SerialExecutorOn, TheDestructorRunsWhatWasTaken) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {}).value();
  int ran = 0;
  for (int i = 0; i < 100; ++i) executor->Post([&] { ++ran; });
  executor.reset();
  EXPECT_EQ(ran, 100);
}

TYPED_TEST(SerialExecutorOn, RefusesWhatIsBeyondItsCapacity) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {.name = "disk", .capacity = 4}).value();
  // The first task fills the queue from inside, so that no task is taken out meanwhile. It counts
  // itself.
  Tally ran;
  executor->Post([&] {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(executor->TryPost([&] { ran.Add(); }).ok());
    absl::Status refused = executor->TryPost([] { ADD_FAILURE(); });
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(refused.message(), "executor \"disk\" has 4 tasks waiting, its capacity; post less or raise capacity");
    EXPECT_EQ(executor->pending(), 4u);
    ran.Add();
  });
  Await(*this->toolbox_, ran, 4);
  EXPECT_EQ(executor->refused(), 1u);
}

TYPED_TEST(SerialExecutorOn, CannotBeJoinedByItsOwnTask) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {}).value();
  Tally ran;
  absl::Status joined;
  executor->Post([&] {
    executor->Close();
    joined = executor->Join();
    ran.Add();
  });
  Await(*this->toolbox_, ran, 1);
  EXPECT_EQ(joined.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(executor->Join().ok());
}

TYPED_TEST(SerialExecutorOn, MayBeDestroyedByItsOwnTask) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {}).value();
  Tally ran;
  SerialExecutor* raw = executor.get();
  raw->Post([&ran, mine = std::move(executor)]() mutable {
    mine.reset();
    ran.Add();
  });
  Await(*this->toolbox_, ran, 1);
}

TYPED_TEST(SerialExecutorOn, OutlivesItsToolboxAndDropsWhatHasNotRun) {
  auto executor = SerialExecutor::Make(*this->toolbox_, {}).value();
  this->toolbox_.reset();
  auto owned = std::make_shared<int>();
  executor->Post([owned] { ADD_FAILURE(); });
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(executor->TryPost([] {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(executor->Join().ok());
}

TYPED_TEST(SerialExecutorOn, RefusesBadOptions) {
  EXPECT_EQ(SerialExecutor::Make(*this->toolbox_, {.name = "x", .capacity = 0}).status().message(),
            "executor \"x\": capacity is 0; use 1 to 1073741824");
  EXPECT_FALSE(SerialExecutor::Make(*this->toolbox_, {.capacity = int64_t{1} << 31}).ok());
  EXPECT_EQ(SerialExecutor::Make(*this->toolbox_, {.name = "x", .tasks_per_step = -1}).status().message(),
            "executor \"x\": tasks_per_step is -1; use 1 to 65536");
  EXPECT_FALSE(SerialExecutor::Make(*this->toolbox_, {.cpus = {-1}}).ok());
}

TEST(SerialExecutor, TasksLeftWhenTheToolboxEndsAreDroppedAndCounted) {
  auto toolbox = LocalToolbox::Make({}).value();
  auto executor = SerialExecutor::Make(*toolbox, {.tasks_per_step = 2}).value();
  int ran = 0;
  auto owned = std::make_shared<int>();
  for (int i = 0; i < 5; ++i) executor->Post([&ran, owned] { ++ran; });
  ASSERT_TRUE(toolbox->RunUntil([&] { return ran > 0; }, absl::Seconds(1)).ok());
  executor->Post([&ran, owned] { ++ran; });
  toolbox.reset();
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(executor->refused(), 4u);
  EXPECT_EQ(executor->pending(), 0u);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(SerialExecutor, TakesFromManyThreadsInTheOrderOfEach) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 5000;
  auto toolbox = StdToolbox::Make({}).value();
  auto executor = SerialExecutor::Make(*toolbox, {.capacity = kThreads * kTasks}).value();
  std::vector<int> next(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        ASSERT_TRUE(executor
                        ->TryPost([&next, t, i] {
                          EXPECT_EQ(next[t], i);
                          next[t] = i + 1;
                        })
                        .ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor.reset();
  EXPECT_EQ(next, std::vector<int>(kThreads, kTasks));
}

TEST(SerialExecutor, TakesFromAnotherThreadOnAPumpedToolbox) {
  Tally woken;
  auto toolbox = LocalToolbox::Make({.on_wake = [&] { woken.Add(); }}).value();
  auto executor = SerialExecutor::Make(*toolbox, {}).value();
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  bool ran = false;
  std::thread poster([&] { executor->Post([&] { ran = true; }); });
  woken.WaitFor(1);
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_TRUE(ran);
  poster.join();
}

}  // namespace
}  // namespace fraktor
