#include "fraktor/actor/dispatch/internal/worker_watch.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
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
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/dispatch/internal/scripted_actor.h"
#include "fraktor/actor/dispatch/internal/worker_executor.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/send/internal/deferred_target.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::actor_internal {
namespace {

// Actors on threads, whose handlers block until another one runs.
class BlockingHandlersTest : public testing::Test {
 protected:
  ExecutorServices Services() { return {*toolbox_, lifecycle_, mailboxes_}; }

  ActorRef Spawn(const WorkerExecutor& executor, Scripted::Script script, uint16_t type = 0) {
    instances_.push_back(std::make_unique<Scripted>(std::move(script)));
    ActorSlot* const slot =
        mailboxes_.Register({.instance = instances_.back().get(), .dispatcher = executor.number(), .type = type})
            .value();
    const ActorRef ref = slot->ref();
    MailboxRegistry::LetGo(*slot);
    return ref;
  }

  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  NoLifecycle lifecycle_;
  MailboxRegistry mailboxes_{/*threaded=*/true};
  std::vector<std::unique_ptr<ActorInstance>> instances_;
};

// The peer is scheduled at the end of the handler, and the handler waits for the peer. Without the
// watch this never ends.
TEST_F(BlockingHandlersTest, GoOnWhenTheyWaitForAPeerOnTheSameExecutor) {
  auto executor = WorkerExecutor::Start({.workers = 2}, Services()).value();
  std::binary_semaphore handled{0};
  std::binary_semaphore over{0};
  const ActorRef peer = Spawn(*executor, [&](ActorContext&) { handled.release(); });
  const ActorRef blocking = Spawn(*executor, [&](ActorContext& context) {
    context.Tell(peer, Go{});
    handled.acquire();
    over.release();
  });
  for (int i = 0; i < 20; ++i) {
    Tell(blocking, Go{});
    over.acquire();
    // Both while the other worker is awake and while it sleeps.
    if (i % 2 == 0) {
      EXPECT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
    }
  }
  EXPECT_GE(executor->watch()->published(), 1u);
  executor->Stop();
}

// As for a pinned actor: its only worker is stuck, and no other worker could schedule the peer.
TEST_F(BlockingHandlersTest, GoOnWhenTheyWaitForAPeerOnAnotherExecutor) {
  auto pinned = WorkerExecutor::Start({.name = "pinned"}, Services()).value();
  auto shared = WorkerExecutor::Start({.name = "shared"}, Services()).value();
  std::binary_semaphore handled{0};
  std::binary_semaphore over{0};
  const ActorRef peer = Spawn(*shared, [&](ActorContext&) { handled.release(); });
  const ActorRef blocking = Spawn(*pinned, [&](ActorContext& context) {
    context.Tell(peer, Go{});
    handled.acquire();
    over.release();
  });
  for (int i = 0; i < 10; ++i) {
    Tell(blocking, Go{});
    over.acquire();
  }
  // At least once: later the peer may not be idle.
  EXPECT_GE(pinned->watch()->published(), 1u);
  EXPECT_EQ(shared->watch()->published(), 0u);
  pinned->Stop();
  shared->Stop();
}

// Handlers hold all workers until the stall of each has been reported.
TEST_F(BlockingHandlersTest, AreReportedOnceEachEvenIfNoWorkerIsLeft) {
  constexpr int kWorkers = 2;
  std::counting_semaphore<> reported{0};
  std::counting_semaphore<> go_on{0};
  std::vector<WorkerStall> stalls;  // Written by the patrol, read after Stop.
  auto executor = WorkerExecutor::Start({.workers = kWorkers,
                                         .watch = {.stall_after = absl::Milliseconds(1),
                                                   .on_stall =
                                                       [&](const WorkerStall& stall) {
                                                         stalls.push_back(stall);
                                                         reported.release();
                                                       }}},
                                        Services())
                      .value();
  std::counting_semaphore<> over{0};
  for (uint16_t type = 7; type < 7 + kWorkers; ++type) {
    Tell(Spawn(
             *executor,
             [&](ActorContext&) {
               go_on.acquire();
               over.release();
             },
             type),
         Go{});
  }
  for (int i = 0; i < kWorkers; ++i) reported.acquire();
  // The workers are still held, and the watch looks, but reports none again.
  const uint64_t looks = executor->watch()->looks();
  while (executor->watch()->looks() < looks + 5) std::this_thread::yield();
  go_on.release(kWorkers);
  for (int i = 0; i < kWorkers; ++i) over.acquire();
  executor->Stop();
  ASSERT_EQ(stalls.size(), static_cast<size_t>(kWorkers));
  EXPECT_EQ(executor->watch()->stalls(), static_cast<uint64_t>(kWorkers));
  EXPECT_NE(stalls[0].worker, stalls[1].worker);
  EXPECT_EQ(stalls[0].actor_type + stalls[1].actor_type, 7 + 8);
  for (const WorkerStall& stall : stalls) EXPECT_GE(stall.held, absl::Milliseconds(1));
}

TEST_F(BlockingHandlersTest, MayBeStoppedByWhoIsToldOfTheStall) {
  std::binary_semaphore go_on{0};
  std::atomic<WorkerExecutor*> stopped{nullptr};
  auto executor = WorkerExecutor::Start({.watch = {.stall_after = absl::Milliseconds(1),
                                                   .on_stall =
                                                       [&](const WorkerStall&) {
                                                         stopped.load()->StopSoon();
                                                         go_on.release();
                                                       }}},
                                        Services())
                      .value();
  stopped = executor.get();
  Tell(Spawn(*executor, [&](ActorContext&) { go_on.acquire(); }), Go{});
  while (!executor->IsStopped()) std::this_thread::yield();
  executor->Stop();
  EXPECT_EQ(executor->watch()->stalls(), 1u);
}

// One worker: with two, each message wakes the other worker as well, in vain, and AwaitQuiet does
// not wait until it sleeps again.
TEST_F(BlockingHandlersTest, AreNotWatchedWhileAllWorkersSleep) {
  auto executor = WorkerExecutor::Start({.workers = 1}, Services()).value();
  std::binary_semaphore handled{0};
  const ActorRef actor = Spawn(*executor, [&](ActorContext&) { handled.release(); });
  for (int round = 0; round < 3; ++round) {
    Tell(actor, Go{});
    handled.acquire();
    EXPECT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
    while (executor->watch()->armed()) std::this_thread::yield();
    const uint64_t looks = executor->watch()->looks();
    EXPECT_GE(looks, static_cast<uint64_t>(WorkerWatch::kQuietLooks));
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_EQ(executor->watch()->looks(), looks);
  }
  executor->Stop();
}

// Threads, and a clock that the test moves.
class MovedClock final : public RuntimeToolbox {
 public:
  explicit MovedClock(RuntimeToolbox& threads) : RuntimeToolbox(/*seed=*/1), threads_(threads) {}

  // Any thread.
  void Advance(absl::Duration duration) {
    now_ns_.fetch_add(absl::ToInt64Nanoseconds(duration), std::memory_order_relaxed);
  }

  Instant Now() const override { return Instant::FromNanoseconds(now_ns_.load(std::memory_order_relaxed)); }
  absl::Time WallNow() const override { return threads_.WallNow(); }
  bool CancelTimer(TimerId id) override { return threads_.CancelTimer(id); }
  bool has_threads() const override { return true; }
  absl::StatusOr<WorkerHandle> StartWorker(const WorkerOptions& options,
                                           std::unique_ptr<ToolboxWorker> worker) override {
    return threads_.StartWorker(options, std::move(worker));
  }

 protected:
  absl::StatusOr<TimerId> Arm(Instant, TimerTask) override { return absl::UnimplementedError("no timers"); }
  absl::StatusOr<TimerId> ArmPeriodic(Instant, absl::Duration, Cadence, TimerTask) override {
    return absl::UnimplementedError("no timers");
  }

 private:
  RuntimeToolbox& threads_;
  std::atomic<int64_t> now_ns_{1'000'000'000};  // Relaxed: it orders nothing.
};

// A consumer beside two producers whose messages take 600 us each, all on one worker. Returns the
// largest number of producers' messages between two of the consumer's.
class SlowProducersTest : public BlockingHandlersTest {
 protected:
  static constexpr int kMessages = 16;  // To each producer: less than the budget.

  int MostBetweenTwoTurnsOfTheConsumer(absl::Duration yield_after) {
    MovedClock clock(*toolbox_);
    auto executor =
        WorkerExecutor::Start({.workers = 1, .watch = {.yield_after = yield_after}}, {clock, lifecycle_, mailboxes_})
            .value();
    int produced = 0;
    int since_consumer = 0;
    int most = 0;
    std::binary_semaphore over{0};
    const auto produce = [&](ActorContext&) {
      ++produced;
      ++since_consumer;
      clock.Advance(absl::Microseconds(600));
      // When the second look has begun, the first one has seen the new time.
      const uint64_t looks = executor->watch()->looks();
      while (executor->watch()->looks() < looks + 2) std::this_thread::yield();
    };
    const ActorRef producers[] = {Spawn(*executor, produce), Spawn(*executor, produce)};
    const ActorRef consumer = Spawn(*executor, [&](ActorContext& context) {
      most = std::max(most, std::exchange(since_consumer, 0));
      if (produced == 2 * kMessages) {
        over.release();
      } else {
        context.Tell(context.self(), Go{});
      }
    });
    // On the worker, so that all messages wait when the first actor runs.
    Tell(Spawn(*executor,
               [&](ActorContext& context) {
                 for (int i = 0; i < kMessages; ++i) {
                   for (const ActorRef producer : producers) context.Tell(producer, Go{});
                 }
                 context.Tell(consumer, Go{});
               }),
         Go{});
    over.acquire();
    executor->Stop();
    return most;
  }
};

// SCH-14
// A turn of a producer ends after its third message: then at least 1.2 ms have passed since the
// first look of the turn.
TEST_F(SlowProducersTest, HoldTheWorkerForATimeSliceEach) {
  EXPECT_LE(MostBetweenTwoTurnsOfTheConsumer(absl::Milliseconds(1)), 2 * 3);
  EXPECT_GE(MostBetweenTwoTurnsOfTheConsumer(absl::InfiniteDuration()), kMessages);
}

class NoWaker : public WorkerWaker {
 public:
  void WakeWorker(WorkerIndex) override {}
};

// The test makes the worker and calls Look.
class WorkerWatchTest : public testing::Test {
 protected:
  static constexpr absl::Duration kPublishAfter = absl::Microseconds(100);
  static constexpr absl::Duration kStallAfter = absl::Milliseconds(500);
  static constexpr absl::Duration kTick = absl::Nanoseconds(1);

  WorkerWatchTest()
      : number_(DispatcherTable::Open(coordinator_).value()),
        worker_({.coordinator = coordinator_,
                 .lifecycle = lifecycle_,
                 .index = 3,
                 .dispatcher = number_,
                 .toolbox = toolbox_.get(),
                 .slots = &mailboxes_.slots(),
                 .promises = &mailboxes_.promises()}),
        watch_(std::make_shared<WorkerWatch>(WorkerWatchOptions{.publish_after = kPublishAfter,
                                                                .stall_after = kStallAfter,
                                                                .on_stall =
                                                                    [this](const WorkerStall& stall) {
                                                                      stalls_.push_back(stall);
                                                                      if (listener_throws_)
                                                                        throw std::runtime_error("no listener");
                                                                    }},
                                             *toolbox_, std::vector<ActorWorker*>{&worker_})) {
    worker_.AdoptThread();
  }
  ~WorkerWatchTest() override {
    watch_->Stop();
    worker_.turn_state.slot = nullptr;
    DispatcherTable::Close(number_);
    Release(running_);
    ReadyNode* node = nullptr;
    while (coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)) == 1) Release(static_cast<ActorSlot&>(*node));
  }

  // Makes an idle actor whose mailbox the worker holds, as after a send.
  ActorSlot& HeldSlot() { return *mailboxes_.Register({.dispatcher = number_}).value(); }
  void Release(ActorSlot& slot) {
    EXPECT_TRUE(slot.mailbox.inbox.TryGoIdle());
    MailboxRegistry::Unregister(slot);
    mailboxes_.Release(slot);
  }

  // Begins and ends a run, as the invoker does.
  void BeginRun(uint16_t type = 0) {
    running_.type.store(type, std::memory_order_relaxed);
    worker_.turn_state.slot = &running_;
    worker_.CountRun(0, 0);
  }
  void EndRun() {
    worker_.turn_state.slot = nullptr;
    worker_.CountRun(0, 0);
  }
  DeferredTarget& deferred() { return worker_.outbox.deferred(); }

  NoWaker waker_;
  MutexCoordinator coordinator_{1, waker_};
  NoLifecycle lifecycle_;
  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  MailboxRegistry mailboxes_{/*threaded=*/false};
  uint16_t number_;
  ActorWorker worker_;
  ActorSlot& running_ = HeldSlot();
  std::vector<WorkerStall> stalls_;
  bool listener_throws_ = false;
  std::shared_ptr<WorkerWatch> watch_;
  Instant now_ = Instant::FromNanoseconds(1'000'000'000);
};

TEST_F(WorkerWatchTest, PublishesWhatWasPutOffForLongEnough) {
  ActorSlot& slot = HeldSlot();
  BeginRun();
  deferred().Put(&slot);
  watch_->Look(now_);
  watch_->Look(now_ + (kPublishAfter - kTick));
  EXPECT_EQ(coordinator_.ReadyCountHint(), 0u);
  watch_->Look(now_ + kPublishAfter);
  EXPECT_EQ(coordinator_.ReadyCountHint(), 1u);
  EXPECT_EQ(watch_->published(), 1u);
  watch_->Look(now_ + 2 * kPublishAfter);
  watch_->Look(now_ + 3 * kPublishAfter);
  EXPECT_EQ(watch_->published(), 1u);
  EXPECT_EQ(deferred().Take(), nullptr);
  EndRun();
}

// The patrol, on which all timers may depend, survives.
TEST_F(WorkerWatchTest, SurvivesAListenerThatThrows) {
  listener_throws_ = true;
  BeginRun();
  watch_->Look(now_);
  EXPECT_NO_THROW(watch_->Look(now_ + kStallAfter));
  EXPECT_EQ(stalls_.size(), 1u);
  EndRun();
}

TEST_F(WorkerWatchTest, CountsFromWhenTheActorWasPutOff) {
  ActorSlot& slot = HeldSlot();
  BeginRun();
  watch_->Look(now_);
  watch_->Look(now_ + kPublishAfter);
  deferred().Put(&slot);
  watch_->Look(now_ + 2 * kPublishAfter);  // Seen for the first time.
  watch_->Look(now_ + (3 * kPublishAfter - kTick));
  EXPECT_EQ(watch_->published(), 0u);
  watch_->Look(now_ + 3 * kPublishAfter);
  EXPECT_EQ(watch_->published(), 1u);
  EXPECT_EQ(deferred().Take(), nullptr);
}

TEST_F(WorkerWatchTest, BeginsAgainWhenAnotherActorIsPutOff) {
  ActorSlot& first = HeldSlot();
  ActorSlot& second = HeldSlot();
  BeginRun();
  deferred().Put(&first);
  watch_->Look(now_);
  EXPECT_EQ(deferred().Take(), &first);
  deferred().Put(&second);
  watch_->Look(now_ + kPublishAfter);
  EXPECT_EQ(watch_->published(), 0u);
  watch_->Look(now_ + 2 * kPublishAfter);
  EXPECT_EQ(watch_->published(), 1u);
  EXPECT_TRUE(second.IsRegistered());
  EXPECT_FALSE(first.IsRegistered());
  EXPECT_EQ(deferred().Take(), nullptr);
  Release(first);
}

TEST_F(WorkerWatchTest, BeginsAgainWithEachRun) {
  ActorSlot& slot = HeldSlot();
  BeginRun();
  deferred().Put(&slot);
  watch_->Look(now_);
  EndRun();
  BeginRun();
  watch_->Look(now_ + kPublishAfter);
  EXPECT_EQ(watch_->published(), 0u);
  watch_->Look(now_ + 2 * kPublishAfter);
  EXPECT_EQ(watch_->published(), 1u);
  EXPECT_EQ(deferred().Take(), nullptr);
}

TEST_F(WorkerWatchTest, LeavesAWorkerBetweenTwoRunsAlone) {
  ActorSlot& slot = HeldSlot();
  deferred().Put(&slot);
  for (int i = 0; i < 10; ++i) watch_->Look(now_ + i * kStallAfter);
  EXPECT_EQ(watch_->published(), 0u);
  EXPECT_EQ(watch_->ended_slices(), 0u);
  EXPECT_EQ(watch_->stalls(), 0u);
  EXPECT_EQ(deferred().Take(), &slot);
  Release(slot);
}

// SCH-14: each message of a mailbox takes 300 us.
TEST_F(WorkerWatchTest, EndsATurnThatTakesLong) {
  MessageInvoker invoker(lifecycle_);
  int handled = 0;
  Scripted instance([&](ActorContext&) {
    ++handled;
    now_ += absl::Microseconds(300);
    watch_->Look(now_);
  });
  ActorSlot& slot = *mailboxes_.Register({.instance = &instance, .dispatcher = number_}).value();
  MailboxRegistry::LetGo(slot);
  for (int i = 0; i < 10; ++i) Tell(slot.ref(), Go{});
  const WorkerScope scope(worker_);
  for (const int expected : {5, 10}) {
    ReadyNode* node = nullptr;
    ASSERT_EQ(coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)), 1u);
    worker_.slice.Begin(64, 0);
    const InvokeResult kind = invoker.Run(worker_, slot);
    EXPECT_EQ(handled, expected);
    if (kind == InvokeResult::kYielded) worker_.Register(slot, ReadyQueueCoordinator::Placement::kYield);
  }
  EXPECT_EQ(watch_->ended_slices(), 2u);
  EXPECT_EQ(coordinator_.ReadyCountHint(), 0u);
  MailboxRegistry::Unregister(slot);
  mailboxes_.Release(slot);
}

TEST_F(WorkerWatchTest, ReportsALongRunOnce) {
  BeginRun(/*type=*/42);
  watch_->Look(now_);
  watch_->Look(now_ + (kStallAfter - kTick));
  EXPECT_TRUE(stalls_.empty());
  for (int i = 0; i < 3; ++i) watch_->Look(now_ + kStallAfter + i * kStallAfter);
  ASSERT_EQ(stalls_.size(), 1u);
  EXPECT_EQ(stalls_[0].worker, 3u);
  EXPECT_EQ(stalls_[0].actor_type, 42u);
  EXPECT_EQ(stalls_[0].held, kStallAfter);
  EndRun();
  now_ = now_ + 4 * kStallAfter;
  watch_->Look(now_);
  // The next slice is another one.
  BeginRun(/*type=*/43);
  watch_->Look(now_ + kTick);
  watch_->Look(now_ + kTick + kStallAfter);
  ASSERT_EQ(stalls_.size(), 2u);
  EXPECT_EQ(stalls_[1].actor_type, 43u);
  EXPECT_EQ(watch_->stalls(), 2u);
}

TEST_F(WorkerWatchTest, DoesNotTakeManyShortRunsForALongOne) {
  for (int i = 0; i < 10; ++i) {
    BeginRun();
    watch_->Look(now_ + i * kStallAfter / 2);
    EndRun();
  }
  EXPECT_TRUE(stalls_.empty());
}

TEST_F(WorkerWatchTest, LooksNoMoreAfterItWasStopped) {
  BeginRun();
  watch_->Look(now_);
  watch_->Stop();
  watch_->Look(now_ + kStallAfter);
  EXPECT_TRUE(stalls_.empty());
  EXPECT_EQ(watch_->looks(), 1u);
}

TEST(WorkerWatchOptions, RefuseAbsurdValuesByName) {
  EXPECT_TRUE(WorkerWatchOptions().Validate().ok());
  EXPECT_TRUE(WorkerWatchOptions{.stall_after = absl::InfiniteDuration()}.Validate().ok());
  for (const auto& [options, name] : std::vector<std::pair<WorkerWatchOptions, std::string>>{
           {{.publish_after = absl::ZeroDuration()}, "WorkerWatchOptions.publish_after is 0"},
           {{.publish_after = absl::Seconds(2)}, "WorkerWatchOptions.publish_after is 2s"},
           {{.publish_after = absl::InfiniteDuration()}, "WorkerWatchOptions.publish_after is inf"},
           {{.stall_after = absl::Microseconds(999)}, "WorkerWatchOptions.stall_after is 999us"},
           {{.stall_after = absl::Hours(2)}, "WorkerWatchOptions.stall_after is 2h"}}) {
    const absl::Status status = options.Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.ToString().find(name), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace fraktor::actor_internal
