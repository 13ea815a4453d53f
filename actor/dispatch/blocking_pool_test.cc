#include "fraktor/actor/dispatch/blocking_pool.h"

#include <atomic>
#include <functional>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/each_toolbox.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/dispatch/internal/scripted_actor.h"
#include "fraktor/actor/dispatch/internal/worker_executor.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

using actor_internal::ActorSlot;
using actor_internal::EachToolbox;
using actor_internal::Go;
using actor_internal::MailboxRegistry;
using actor_internal::MakeToolbox;
using actor_internal::NameOfToolbox;
using actor_internal::NoLifecycle;
using actor_internal::Scripted;
using actor_internal::ToolboxKind;
using actor_internal::WorkerExecutor;

namespace {

class BlockingPoolTest : public testing::TestWithParam<ToolboxKind> {
 protected:
  bool has_threads() const { return GetParam() == ToolboxKind::kStd; }
  void Pump() {
    if (!has_threads()) {
      ASSERT_TRUE(static_cast<PumpedToolbox&>(*toolbox_).RunUntilIdle().ok());
    }
  }
  template <class T>
  FutureResult<T> ResultOf(Future<T> future) {
    Pump();
    return future.Wait();
  }

  std::unique_ptr<RuntimeToolbox> toolbox_ = MakeToolbox(GetParam());
};

TEST_P(BlockingPoolTest, RunsWhatItIsGiven) {
  auto pool = BlockingPool::Start({}, *toolbox_).value();
  EXPECT_EQ(pool->threads(), 0u);
  EXPECT_EQ(ResultOf(RunBlocking(*pool, [] { return 17; })).value(), 17);
  EXPECT_EQ(ResultOf(RunBlocking(*pool, [] { return std::string("text"); })).value(), "text");
  EXPECT_EQ(ResultOf(RunBlocking(*pool, [] { return std::make_unique<int>(3); })).value().operator*(), 3);
  EXPECT_TRUE(ResultOf(RunBlocking(*pool, [] {})).ok());
  EXPECT_TRUE(ResultOf(RunBlocking(*pool, [] { return absl::OkStatus(); })).ok());
  EXPECT_EQ(ResultOf(RunBlocking(*pool, [] { return absl::NotFoundError("no such file"); })),
            absl::NotFoundError("no such file"));
  EXPECT_EQ(ResultOf(RunBlocking(*pool, []() -> absl::StatusOr<int> { return 4; })).value(), 4);
  EXPECT_EQ(ResultOf(RunBlocking(*pool, []() -> absl::StatusOr<int> { return absl::DataLossError("bad"); })).status(),
            absl::DataLossError("bad"));
  // A function that can only be moved.
  EXPECT_EQ(ResultOf(RunBlocking(*pool, [n = std::make_unique<int>(5)] { return *n; })).value(), 5);
}

TEST_P(BlockingPoolTest, TellsWhatWasThrown) {
  auto pool = BlockingPool::Start({.max_threads = 1}, *toolbox_).value();
  const absl::StatusOr<int> result =
      ResultOf(RunBlocking(*pool, []() -> int { throw std::runtime_error("the disk is gone"); }));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(result.status().message(), "work on a blocking pool ended by an exception: the disk is gone");
  EXPECT_EQ(ResultOf(RunBlocking(*pool, []() -> int { throw 3; })).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ResultOf(RunBlocking(*pool, [] { return 1; })).value(), 1) << "the thread goes on";
}

TEST_P(BlockingPoolTest, RunsInOrderOnOneThread) {
  auto pool = BlockingPool::Start({.max_threads = 1}, *toolbox_).value();
  std::vector<int> order;  // The one thread writes it; the test reads it after the last work.
  std::vector<Future<void>> futures;
  for (int i = 0; i < 100; ++i) futures.push_back(RunBlocking(*pool, [&order, i] { order.push_back(i); }));
  for (Future<void>& future : futures) EXPECT_TRUE(ResultOf(std::move(future)).ok());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(pool->threads(), 1u);
}

TEST_P(BlockingPoolTest, StartsNoMoreThreadsThanItMay) {
  auto pool = BlockingPool::Start({.max_threads = 3}, *toolbox_).value();
  std::atomic<int> done{0};
  std::vector<Future<void>> futures;
  for (int i = 0; i < 200; ++i) futures.push_back(RunBlocking(*pool, [&] { done.fetch_add(1); }));
  for (Future<void>& future : futures) EXPECT_TRUE(ResultOf(std::move(future)).ok());
  EXPECT_EQ(done.load(), 200);
  EXPECT_LE(pool->threads(), 3u);
  EXPECT_EQ(pool->queued(), 0u);
}

TEST_P(BlockingPoolTest, UsesAThreadAgain) {
  auto pool = BlockingPool::Start({.max_threads = 8}, *toolbox_).value();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(ResultOf(RunBlocking(*pool, [i] { return i; })).value(), i);
  if (!has_threads()) {
    EXPECT_EQ(pool->threads(), 1u);
  }
  EXPECT_LE(pool->threads(), 8u);
}

TEST_P(BlockingPoolTest, RefusesWhatItHasNoRoomFor) {
  auto pool = BlockingPool::Start({.name = "tight", .max_threads = 2, .max_queued = 3}, *toolbox_).value();
  std::counting_semaphore<> go_on{0};
  std::vector<Future<void>> futures;
  const bool blocks = has_threads();
  const auto work = [&go_on, blocks] {
    if (blocks) go_on.acquire();
  };
  // Two pieces of work run, or are about to, and three wait.
  for (int i = 0; i < 5; ++i) futures.push_back(RunBlocking(*pool, work));
  for (const Future<void>& future : futures) EXPECT_FALSE(future.IsReady());
  Future<void> refused = RunBlocking(*pool, work);
  ASSERT_TRUE(refused.IsReady());
  const absl::Status status = refused.Take();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.ToString().find("\"tight\""), std::string::npos) << status;
  EXPECT_NE(status.ToString().find("max_queued"), std::string::npos) << status;
  EXPECT_EQ(pool->Submit([] {}).code(), absl::StatusCode::kResourceExhausted);
  go_on.release(5);
  for (Future<void>& future : futures) EXPECT_TRUE(ResultOf(std::move(future)).ok());
  EXPECT_TRUE(ResultOf(RunBlocking(*pool, [] {})).ok()) << "there is room again";
}

TEST_P(BlockingPoolTest, CancelsWhatWaitsWhenItIsStopped) {
  auto pool = BlockingPool::Start({.max_threads = 1}, *toolbox_).value();
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
  std::atomic<int> ran{0};
  Future<void> running;
  if (has_threads()) {
    running = RunBlocking(*pool, [&] {
      begun.release();
      go_on.acquire();
      ran.fetch_add(1);
    });
    begun.acquire();
  }
  std::vector<Future<void>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(RunBlocking(*pool, [&] { ran.fetch_add(1); }));
  // The callback of the first cancellation releases the running work, for which Stop waits.
  Future<void> told = std::move(waiting[0]).MapResult([](absl::Status status) { return status; });
  std::thread stopping;
  if (has_threads()) {
    stopping = std::thread([&] { pool->Stop(); });
    EXPECT_EQ(told.Wait().code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(running.IsReady());
    go_on.release();
    stopping.join();
    ASSERT_TRUE(running.IsReady());
    EXPECT_TRUE(running.Take().ok());
    EXPECT_EQ(ran.load(), 1);
  } else {
    pool->Stop();
    EXPECT_EQ(told.Take().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(ran.load(), 0);
  }
  for (size_t i = 1; i < waiting.size(); ++i) {
    ASSERT_TRUE(waiting[i].IsReady());
    EXPECT_EQ(waiting[i].Take().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(pool->Submit([] {}).code(), absl::StatusCode::kFailedPrecondition);
  Future<int> late = RunBlocking(*pool, [] { return 1; });
  ASSERT_TRUE(late.IsReady());
  EXPECT_EQ(late.Take().status().code(), absl::StatusCode::kFailedPrecondition);
  pool->Stop();
}

TEST_P(BlockingPoolTest, DoesNotRunWhatNobodyWaitsFor) {
  auto pool = BlockingPool::Start({.max_threads = 1}, *toolbox_).value();
  std::binary_semaphore go_on{0};
  const bool blocks = has_threads();
  Future<void> first = RunBlocking(*pool, [&go_on, blocks] {
    if (blocks) go_on.acquire();
  });
  bool ran = false;
  {
    Future<void> dropped = RunBlocking(*pool, [&ran] { ran = true; });
  }
  Future<void> last = RunBlocking(*pool, [] {});
  go_on.release();
  EXPECT_TRUE(ResultOf(std::move(last)).ok());
  EXPECT_FALSE(ran);
  EXPECT_TRUE(first.Take().ok());
}

TEST_P(BlockingPoolTest, MayBeGivenWorkByItsWork) {
  auto pool = BlockingPool::Start({.max_threads = 2}, *toolbox_).value();
  std::binary_semaphore over{0};
  ASSERT_TRUE(pool->Submit([&] { EXPECT_TRUE(pool->Submit([&over] { over.release(); }).ok()); }).ok());
  Pump();
  over.acquire();
}

TEST_P(BlockingPoolTest, SaysWhenTheToolboxHasNoThread) {
  const std::unique_ptr<RuntimeToolbox> small = MakeToolbox(GetParam(), /*max_workers=*/1);
  auto first = BlockingPool::Start({.max_threads = 2}, *small).value();
  auto second = BlockingPool::Start({}, *small).value();
  // The first pool works with the one thread that it has.
  std::vector<Future<int>> futures;
  for (int i = 0; i < 3; ++i) futures.push_back(RunBlocking(*first, [i] { return i; }));
  EXPECT_EQ(first->threads(), 1u);
  EXPECT_EQ(second->Submit([] {}).code(), absl::StatusCode::kResourceExhausted);
  if (!has_threads()) {
    ASSERT_TRUE(static_cast<PumpedToolbox&>(*small).RunUntilIdle().ok());
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(futures[static_cast<size_t>(i)].Wait().value(), i);
}

class BlockingForActorsTest : public BlockingPoolTest {
 protected:
  ActorRef Spawn(const WorkerExecutor& executor, Scripted::Script script) {
    instances_.push_back(std::make_unique<Scripted>(std::move(script)));
    ActorSlot* const slot =
        mailboxes_.Register({.instance = instances_.back().get(), .dispatcher = executor.number()}).value();
    const ActorRef ref = slot->ref();
    MailboxRegistry::LetGo(*slot);
    return ref;
  }

  NoLifecycle lifecycle_;
  MailboxRegistry mailboxes_{GetParam() == ToolboxKind::kStd};
  std::vector<std::unique_ptr<ActorInstance>> instances_;
};

TEST_P(BlockingForActorsTest, LeavesTheWorkersToTheActors) {
  auto executor = WorkerExecutor::Start({}, {*toolbox_, lifecycle_, mailboxes_}).value();
  auto pool = BlockingPool::Start({.max_threads = 2}, *toolbox_).value();
  std::counting_semaphore<> go_on{0};
  const bool blocks = has_threads();
  std::vector<Future<void>> blocked;  // The actor writes it; the test reads it after its run.
  std::atomic<int> handled{0};
  std::binary_semaphore over{0};
  const ActorRef other = Spawn(*executor, [&](ActorContext&) {
    if (handled.fetch_add(1) == 99) over.release();
  });
  const ActorRef asking = Spawn(*executor, [&](ActorContext& context) {
    for (int i = 0; i < 4; ++i) {
      blocked.push_back(RunBlocking(*pool, [&go_on, blocks] {
        if (blocks) go_on.acquire();
      }));
    }
    for (int i = 0; i < 100; ++i) context.Tell(other, Go{});
  });
  Tell(asking, Go{});
  Pump();
  over.acquire();  // All threads of the pool are blocked, and the actors run.
  if (blocks) {
    for (const Future<void>& future : blocked) EXPECT_FALSE(future.IsReady());
  }
  go_on.release(4);
  for (Future<void>& future : blocked) EXPECT_TRUE(ResultOf(std::move(future)).ok());
  pool->Stop();
  executor->Stop();
}

// Chained messages and deferred actors would otherwise wait for the end of the handler.
TEST_P(BlockingForActorsTest, HasWhatTheActorSentBeforeDelivered) {
  auto executor = WorkerExecutor::Start({}, {*toolbox_, lifecycle_, mailboxes_}).value();
  auto pool = BlockingPool::Start({}, *toolbox_).value();
  std::binary_semaphore over{0};
  size_t ready_before = 99;
  size_t ready_after = 99;
  const ActorRef peer = Spawn(*executor, [](ActorContext&) {});
  const ActorRef asking = Spawn(*executor, [&](ActorContext& context) {
    context.Tell(peer, Go{});
    context.Tell(peer, Go{});
    ready_before = executor->coordinator().ReadyCountHint();
    {
      Future<void> dropped = RunBlocking(*pool, [] {});
    }
    ready_after = executor->coordinator().ReadyCountHint();
    EXPECT_TRUE(context.worker().outbox.deferred().empty());
    over.release();
  });
  Tell(asking, Go{});
  Pump();
  over.acquire();
  executor->Stop();
  // On threads the watch may have been faster.
  if (!has_threads()) {
    EXPECT_EQ(ready_before, 0u);
  }
  EXPECT_EQ(ready_after, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, BlockingPoolTest, EachToolbox(), NameOfToolbox);
INSTANTIATE_TEST_SUITE_P(All, BlockingForActorsTest, EachToolbox(), NameOfToolbox);

TEST(BlockingPoolOptions, RefuseAbsurdValuesByName) {
  auto toolbox = LocalToolbox::Make({}).value();
  EXPECT_TRUE(BlockingPoolOptions().Validate().ok());
  for (const auto& [options, name] :
       std::vector<std::pair<BlockingPoolOptions, std::string>>{{{.name = ""}, "name has 0 bytes"},
                                                                {{.name = std::string(81, 'x')}, "name has 81 bytes"},
                                                                {{.max_threads = 0}, "max_threads is 0"},
                                                                {{.max_threads = 1025}, "max_threads is 1025"},
                                                                {{.max_queued = 0}, "max_queued is 0"},
                                                                {{.max_queued = 1'000'001}, "max_queued is 1000001"}}) {
    const absl::Status status = BlockingPool::Start(options, *toolbox).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.ToString().find("BlockingPoolOptions." + name), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace fraktor
