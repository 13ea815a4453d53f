#include "fraktor/actor/dispatch/internal/guest_seat.h"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/each_toolbox.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/worker_executor.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/utils/testing/counted_allocations.h"
#include "fraktor/utils/toolbox/std_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::actor_internal {

using utils_internal::TableSlot;

namespace {

struct Ball {
  int bounces = 0;
};
struct Nudge {};

// A lifecycle for actors that do not end.
class TestLifecycle final : public ActorLifecycle {
 public:
  absl::Status OnStart(ActorSlot&) override { return absl::OkStatus(); }
  void OnSystemMessage(Turn, Envelope&) override { nudges.fetch_add(1); }
  void OnFailure(Turn, const absl::Status& error, FailureCause, Envelope*) override { ADD_FAILURE() << error; }
  bool StopChildrenFirst(ActorSlot&) override { return true; }
  void OnEnding(Turn) override {}
  void OnEnded(Turn) override {}
  void OnDeadLetter(NodeCache&, EnvelopePtr, TableSlot*, DeadLetterReason) override {}

  std::atomic<int> nudges{0};
};

// An actor made of a function.
class Scripted final : public ActorInstance {
 public:
  using Script = std::function<void(ActorContext&, const Ball&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    script_(context, message.As<Ball>());
    return absl::OkStatus();
  }

 private:
  const Script script_;
};

// Returns the number of bytes of the heap that are in use.
size_t HeapBytes() { return mallinfo2().uordblks; }

bool IsGuest() { return ActorWorker::Current() != nullptr && ActorWorker::Current()->index == kForeign; }

class GuestSeatTest : public testing::Test {
 protected:
  // The workers sleep when it returns. The watch does not take a deferred actor or a turn from a
  // guest that waits for a CPU.
  std::unique_ptr<WorkerExecutor> Start(WorkerExecutorOptions options, ObservabilityHub* hub = nullptr) {
    options.watch.publish_after = absl::Seconds(1);
    options.watch.yield_after = absl::InfiniteDuration();
    auto executor = WorkerExecutor::Start(options, {*toolbox_, lifecycle_, mailboxes_, hub}).value();
    EXPECT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
    return executor;
  }

  ActorRef Spawn(const WorkerExecutor& executor, Scripted::Script script, uint16_t type = 0) {
    instances_.push_back(std::make_unique<Scripted>(std::move(script)));
    ActorSlot* const slot =
        mailboxes_.Register({.instance = instances_.back().get(), .dispatcher = executor.number(), .type = type})
            .value();
    const ActorRef ref = slot->ref();
    MailboxRegistry::LetGo(*slot);
    return ref;
  }

  const std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  TestLifecycle lifecycle_;
  std::vector<std::unique_ptr<Scripted>> instances_;
  MailboxRegistry mailboxes_{/*threaded=*/true};
};

TEST_F(GuestSeatTest, LetsAThreadRunWhatItHasMadeReady) {
  auto executor = Start({.workers = 2});
  std::vector<int> seen;  // Only this thread runs the actors.
  const ActorRef other = Spawn(*executor, [&](ActorContext&, const Ball& ball) {
    EXPECT_TRUE(IsGuest());
    seen.push_back(ball.bounces);
  });
  const ActorRef actor = Spawn(*executor, [&](ActorContext& context, const Ball& ball) {
    EXPECT_TRUE(IsGuest());
    EXPECT_TRUE(IsWorkerThread()) << "so that it may not wait for actors";
    seen.push_back(ball.bounces);
    context.Tell(other, Ball{10 + ball.bounces});
  });
  for (int i = 1; i <= 2; ++i) {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    Tell(actor, Ball{i});
    EXPECT_EQ(seen.size(), static_cast<size_t>(2 * (i - 1))) << "not before the end";
  }
  EXPECT_EQ(seen, std::vector<int>({1, 11, 2, 12}));
  EXPECT_EQ(ActorWorker::Current(), nullptr);
  EXPECT_FALSE(IsWorkerThread());
  EXPECT_GE(executor->runs(), 4u);
  executor->Stop();
}

TEST_F(GuestSeatTest, KeepsActorsThatSystemMessagesMakeReady) {
  auto executor = Start({});
  const ActorRef actor = Spawn(*executor, [](ActorContext&, const Ball&) {});
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    TellSystem(actor, MakeEnvelope<Nudge>(ActorRef()));
    EXPECT_EQ(lifecycle_.nudges.load(), 0);
  }
  EXPECT_EQ(lifecycle_.nudges.load(), 1);
  executor->Stop();
}

// The guest leaves although an actor sends itself a message in each run.
TEST_F(GuestSeatTest, HandsAnActorOverThatHasUsedItsBudget) {
  constexpr int kBalls = 1000;
  constexpr int kBudget = 5;
  auto executor = Start({.budget = kBudget});
  int as_guest = 0;
  std::binary_semaphore over{0};
  const ActorRef actor = Spawn(*executor, [&](ActorContext& context, const Ball& ball) {
    if (IsGuest()) ++as_guest;
    if (ball.bounces == kBalls) {
      over.release();
    } else {
      context.Tell(context.self(), Ball{ball.bounces + 1});
    }
  });
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    Tell(actor, Ball{});
  }
  over.acquire();
  executor->Stop();
  EXPECT_EQ(as_guest, kBudget);
}

// The same for two actors that send to each other: each run is short, but there are many.
TEST_F(GuestSeatTest, HandsOverAfterSoManyRuns) {
  constexpr int kBalls = 1000;
  constexpr int kRuns = 7;
  auto executor = Start({.runs_per_step = kRuns});
  std::atomic<int> as_guest{0};
  std::binary_semaphore over{0};
  ActorRef players[2];
  for (int i = 0; i < 2; ++i) {
    players[i] = Spawn(*executor, [&, i](ActorContext& context, const Ball& ball) {
      if (IsGuest()) as_guest.fetch_add(1);
      if (ball.bounces == kBalls) {
        over.release();
      } else {
        context.Tell(players[1 - i], Ball{ball.bounces + 1});
      }
    });
  }
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    Tell(players[0], Ball{});
  }
  over.acquire();
  executor->Stop();
  EXPECT_EQ(as_guest.load(), kRuns);
}

TEST_F(GuestSeatTest, KeepsAFewAndLeavesTheOthersToTheWorkers) {
  constexpr int kActors = static_cast<int>(GuestStay::kMostKept) + 10;
  auto executor = Start({.workers = 2});
  std::atomic<int> as_guest{0};
  std::counting_semaphore<> handled{0};
  std::vector<ActorRef> actors;
  for (int i = 0; i < kActors; ++i) {
    actors.push_back(Spawn(*executor, [&](ActorContext&, const Ball&) {
      if (IsGuest()) as_guest.fetch_add(1);
      handled.release();
    }));
  }
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    for (const ActorRef actor : actors) Tell(actor, Ball{});
    for (int i = 0; i < 10; ++i) handled.acquire();  // By workers.
    EXPECT_EQ(as_guest.load(), 0);
  }
  EXPECT_EQ(as_guest.load(), static_cast<int>(GuestStay::kMostKept));
  executor->Stop();
}

TEST_F(GuestSeatTest, LeavesActorsOfOtherPoolsToThem) {
  auto executor = Start({.name = "one"});
  auto other = Start({.name = "other"});
  std::binary_semaphore over{0};
  const ActorRef there = Spawn(*other, [&](ActorContext&, const Ball&) {
    EXPECT_FALSE(IsGuest());
    over.release();
  });
  const ActorRef here = Spawn(*executor, [&](ActorContext& context, const Ball&) { context.Tell(there, Ball{}); });
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    Tell(there, Ball{});
    over.acquire();
    Tell(here, Ball{});
  }
  over.acquire();
  executor->Stop();
  other->Stop();
}

TEST_F(GuestSeatTest, HasRoomForOne) {
  auto executor = Start({.workers = 2});
  std::binary_semaphore over{0};
  const ActorRef actor = Spawn(*executor, [&](ActorContext&, const Ball&) {
    EXPECT_FALSE(IsGuest());
    over.release();
  });
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    const GuestStay again(executor->guest_seat());
    EXPECT_FALSE(again.is_guest());
    std::thread([&] {
      const GuestStay late(executor->guest_seat());
      EXPECT_FALSE(late.is_guest());
      Tell(actor, Ball{});
      over.acquire();
    }).join();
  }
  ASSERT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration())) << "the message may have woken both workers";
  EXPECT_TRUE(GuestStay(executor->guest_seat()).is_guest());
  executor->Stop();
}

TEST_F(GuestSeatTest, IsForTimesWhenAWorkerWouldHaveToBeWoken) {
  auto executor = Start({.workers = 1});
  std::binary_semaphore begun{0};
  std::binary_semaphore end{0};
  const ActorRef actor = Spawn(*executor, [&](ActorContext&, const Ball&) {
    begun.release();
    end.acquire();
  });
  Tell(actor, Ball{});
  begun.acquire();
  EXPECT_FALSE(GuestStay(executor->guest_seat()).is_guest()) << "its worker is awake";
  end.release();
  ASSERT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
  EXPECT_TRUE(GuestStay(executor->guest_seat()).is_guest());
  executor->Stop();
}

// SCH-9: Stop waits for all runs, also that of the guest.
TEST_F(GuestSeatTest, IsWaitedForByTheEndOfThePool) {
  auto executor = Start({.workers = 2});
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
  std::atomic<bool> has_stopped{false};
  std::atomic<bool> has_handled{false};
  const ActorRef actor = Spawn(*executor, [&](ActorContext&, const Ball&) {
    begun.release();
    go_on.acquire();
    EXPECT_FALSE(has_stopped.load());
    has_handled = true;
  });
  std::thread guest([&] {
    const GuestStay stay(executor->guest_seat());
    EXPECT_TRUE(stay.is_guest());
    Tell(actor, Ball{});
  });
  begun.acquire();
  EXPECT_TRUE(executor->IsRunning(*actor.slot()));
  EXPECT_FALSE(executor->IsQuiet());
  EXPECT_FALSE(executor->AwaitQuiet(absl::ZeroDuration()));
  std::thread stopper([&] {
    executor->Stop();
    has_stopped = true;
    EXPECT_TRUE(has_handled.load());
  });
  // Waits until the executor refuses actors: it has begun to stop.
  for (const uint64_t before = DispatcherTable::LateDeadLetters(); DispatcherTable::LateDeadLetters() == before;) {
    Tell(Spawn(*executor, [](ActorContext&, const Ball&) {}), Ball{});
  }
  EXPECT_FALSE(executor->IsStopped());
  go_on.release();
  guest.join();
  stopper.join();
  EXPECT_TRUE(executor->IsStopped());
}

TEST_F(GuestSeatTest, OutlivesItsPool) {
  auto executor = Start({});
  const std::shared_ptr<GuestSeat> seat = executor->guest_seat();
  executor->Stop();
  EXPECT_FALSE(GuestStay(seat).is_guest());
  executor = nullptr;
  EXPECT_FALSE(GuestStay(seat).is_guest());
  EXPECT_FALSE(GuestStay(nullptr).is_guest());
}

// SCH-11
TEST_F(GuestSeatTest, CountsAsAWorkerDoes) {
  auto hub = ObservabilityHub::Make().value();
  const ObservedId type = hub->TypeId("Player");
  mailboxes_.core().SetMetrics(hub->foreign());
  auto executor = Start({.name = "counted"}, hub.get());
  constexpr int kBalls = 20;
  ActorRef players[2];
  for (int i = 0; i < 2; ++i) {
    players[i] = Spawn(
        *executor,
        [&, i](ActorContext& context, const Ball& ball) {
          if (ball.bounces < kBalls) context.Tell(players[1 - i], Ball{ball.bounces + 1});
        },
        type);
  }
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    Tell(players[0], Ball{1});
  }
  executor->Stop();
  const MetricsSnapshot snapshot = hub->Snapshot(toolbox_->Now());
  mailboxes_.core().SetMetrics(nullptr);
  ASSERT_NE(snapshot.Find(kMailboxEnqueued, {{"type", "Player"}}), nullptr);
  EXPECT_EQ(snapshot.Find(kMailboxEnqueued, {{"type", "Player"}})->value, kBalls);
  ASSERT_NE(snapshot.Find(kMailboxDepth, {{"type", "Player"}}), nullptr);
  EXPECT_EQ(snapshot.Find(kMailboxDepth, {{"type", "Player"}})->value, 0);
  EXPECT_NE(snapshot.Find(kWorkerBusyRatio, {{"worker", "counted-guest"}}), nullptr);
  executor = nullptr;
  EXPECT_EQ(hub->Snapshot(toolbox_->Now()).Find(kWorkerBusyRatio, {{"worker", "counted-guest"}}), nullptr);
}

TEST_F(GuestSeatTest, IsWatchedForHandlersThatTakeLong) {
  std::binary_semaphore stalled{0};
  WorkerIndex worker = 0;
  uint16_t type = 0;
  WorkerExecutorOptions options;
  options.watch.stall_after = absl::Milliseconds(1);
  options.watch.on_stall = [&](const WorkerStall& stall) {
    worker = stall.worker;
    type = stall.actor_type;
    stalled.release();
  };
  auto executor = Start(options);
  const ActorRef actor = Spawn(
      *executor, [&](ActorContext&, const Ball&) { stalled.acquire(); }, 7);
  {
    const GuestStay stay(executor->guest_seat());
    ASSERT_TRUE(stay.is_guest());
    Tell(actor, Ball{});
  }
  EXPECT_EQ(worker, kForeign);
  EXPECT_EQ(type, 7);
  executor->Stop();
}

TEST_F(GuestSeatTest, IsThereIfThePoolTakesGuests) { EXPECT_EQ(Start({.takes_guests = false})->guest_seat(), nullptr); }

class GuestSeatOnToolboxTest : public testing::TestWithParam<ToolboxKind> {};

// A simulation chooses the schedule, so it takes no guests.
TEST_P(GuestSeatOnToolboxTest, IsThereIfThereAreThreads) {
  auto toolbox = MakeToolbox(GetParam());
  TestLifecycle lifecycle;
  MailboxRegistry mailboxes(/*threaded=*/false);
  auto executor = WorkerExecutor::Start({}, {*toolbox, lifecycle, mailboxes}).value();
  EXPECT_EQ(executor->guest_seat() != nullptr, GetParam() == ToolboxKind::kStd);
  executor->Stop();
}

INSTANTIATE_TEST_SUITE_P(All, GuestSeatOnToolboxTest, EachToolbox(), NameOfToolbox);

// Two threads send messages in turn, as the threads of a transport do.
TEST_F(GuestSeatTest, NeedsNoMoreMemoryHoweverOftenGuestsTakeTurns) {
  if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
  constexpr int kTurns = 2000;
  constexpr int kWarmUp = 100;
  auto executor = Start({});
  std::atomic<int> as_guest{0};
  const ActorRef actor = Spawn(*executor, [&](ActorContext&, const Ball&) {
    if (IsGuest()) as_guest.fetch_add(1);
  });
  std::binary_semaphore turn_of[2] = {std::binary_semaphore(1), std::binary_semaphore(0)};
  size_t bytes_before = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTurns; ++i) {
        turn_of[t].acquire();
        if (t == 0 && i == kWarmUp) bytes_before = HeapBytes();
        // A worker that is awake would keep guests away, and each message would wake it again.
        EXPECT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
        {
          const GuestStay stay(executor->guest_seat());
          Tell(actor, Ball{});
        }
        turn_of[1 - t].release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // A worker may wake up spuriously; then the seat takes no guest.
  EXPECT_GT(as_guest.load(), kTurns);
  EXPECT_LT(HeapBytes(), bytes_before + kTurns * sizeof(void*)) << "something is kept for each turn";
  executor->Stop();
}

// Many threads become guests and leave, while actors send to each other. No message is lost or
// handled twice.
TEST_F(GuestSeatTest, MixesWithWorkers) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 500;
  constexpr int kActors = 8;
  constexpr int kBounces = 20;
  auto executor = Start({.workers = 2, .budget = 3, .runs_per_step = 4});
  std::vector<ActorRef> actors(kActors);
  std::vector<int> handled(kActors);  // Each actor writes its own.
  for (int i = 0; i < kActors; ++i) {
    actors[static_cast<size_t>(i)] = Spawn(*executor, [&, i](ActorContext& context, const Ball& ball) {
      ++handled[static_cast<size_t>(i)];
      if (ball.bounces > 0) {
        context.Tell(actors[static_cast<size_t>(i + ball.bounces) % actors.size()], Ball{ball.bounces - 1});
      }
    });
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const GuestStay stay(executor->guest_seat());
        Tell(actors[static_cast<size_t>(t + i) % actors.size()], Ball{kBounces});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(executor->AwaitQuiet(absl::InfiniteDuration()));
  executor->Stop();
  int sum = 0;
  for (const int one : handled) sum += one;
  EXPECT_EQ(sum, kThreads * kRounds * (kBounces + 1));
}

}  // namespace
}  // namespace fraktor::actor_internal
