#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/dispatch/internal/worker_watch.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/tree/internal/tree_fixture.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor::actor_internal {
namespace {

using Lines = std::vector<std::string>;

class Quiet final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

TEST(ReadyQueueSchedulerOptions, AreRefusedByName) {
  const auto toolbox = LocalToolbox::Make({}).value();
  ReadyQueueSchedulerOptions options;
  options.dispatchers.max_pinned = -1;
  const absl::Status dispatchers = ReadyQueueScheduler::Make(options, *toolbox).status();
  EXPECT_EQ(dispatchers.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(dispatchers.ToString().find("max_pinned"), std::string::npos) << dispatchers;
  options = {};
  options.observability.max_types = 0;
  const absl::Status observability = ReadyQueueScheduler::Make(options, *toolbox).status();
  EXPECT_EQ(observability.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(observability.ToString().find("max_types"), std::string::npos) << observability;
}

TEST(SchedulerState, HasNames) {
  EXPECT_EQ(ToString(SchedulerState::kNew), "new");
  EXPECT_EQ(ToString(SchedulerState::kRunning), "running");
  EXPECT_EQ(ToString(SchedulerState::kStopping), "stopping");
  EXPECT_EQ(ToString(SchedulerState::kDraining), "draining");
  EXPECT_EQ(ToString(SchedulerState::kStopped), "stopped");
}

// SCH-9
// SCH-1: one scheduler owns mailboxes, dispatchers and metrics.
TEST(ReadyQueueScheduler, IsStartedOnce) {
  const auto toolbox = LocalToolbox::Make({}).value();
  const auto scheduler = ReadyQueueScheduler::Make({}, *toolbox).value();
  ActorTree tree({.mailboxes = scheduler->mailboxes(), .dispatchers = scheduler->dispatchers()});
  EXPECT_EQ(scheduler->state(), SchedulerState::kNew);
  EXPECT_EQ(tree.SpawnRoot(PropsOf<Quiet>()).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(scheduler->Start(tree).ok());
  EXPECT_EQ(scheduler->state(), SchedulerState::kRunning);
  const absl::Status again = scheduler->Start(tree);
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(again.ToString().find("running"), std::string::npos) << again;
  scheduler->ForceStop();
  EXPECT_EQ(scheduler->state(), SchedulerState::kStopped);
  EXPECT_EQ(scheduler->Start(tree).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(tree.SpawnRoot(PropsOf<Quiet>()).status().code(), absl::StatusCode::kFailedPrecondition);
  // A second call changes nothing.
  scheduler->ForceStop();
  EXPECT_TRUE(scheduler->Shutdown(absl::Seconds(1)).ok());
  EXPECT_EQ(scheduler->state(), SchedulerState::kStopped);
}

TEST(ReadyQueueScheduler, ThatNeverRanIsShutDownAtOnce) {
  const auto toolbox = LocalToolbox::Make({}).value();
  const auto scheduler = ReadyQueueScheduler::Make({}, *toolbox).value();
  EXPECT_TRUE(scheduler->Shutdown(absl::InfiniteDuration()).ok());
  EXPECT_EQ(scheduler->state(), SchedulerState::kStopped);
}

// A handler that blocks until the test releases it. It must outlive the system, unless the test
// waits for the end of the handler.
class Held {
 public:
  Do AsMessage() {
    return Do{[this](ActorContext& context) {
      entered.release();
      go_on.acquire();
      return then == nullptr ? absl::OkStatus() : then(context);
    }};
  }

  std::binary_semaphore entered{0};
  std::binary_semaphore go_on{0};
  std::function<absl::Status(ActorContext&)> then = nullptr;
};

void AwaitState(const ReadyQueueScheduler& scheduler, SchedulerState state) {
  while (scheduler.state() != state) std::this_thread::yield();
}

// SCH-9
TEST(ReadyQueueScheduler, DrainsWhatIsThereAndRefusesWhatComesFromOutside) {
  TestLog log;
  TestSystem system(Threads(), {});
  const ActorRef busy = system.Spawn(*ProbeProps(log, "busy"));
  const ActorRef other = system.Spawn(*ProbeProps(log, "other"));
  Held held;
  held.then = [&](ActorContext& context) {
    TellText(other, "from inside");
    EXPECT_TRUE(context.TryTell(other, std::string("also from inside")).ok());
    return absl::OkStatus();
  };
  Tell(busy, held.AsMessage());
  held.entered.acquire();
  absl::Status stopped = absl::UnknownError("not yet");
  std::thread stopper([&] { stopped = system.scheduler().Shutdown(absl::InfiniteDuration()); });
  AwaitState(system.scheduler(), SchedulerState::kDraining);

  const absl::Status refused = TryTell(other, std::string("from outside"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  TellText(other, "from outside");
  EXPECT_EQ(system.scheduler().mailboxes().core().foreign_dead_letters(DeadLetterReason::kShutdown), 2u);
  EXPECT_EQ(system.scheduler().state(), SchedulerState::kDraining);

  log.Take();
  held.go_on.release();
  stopper.join();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_EQ(system.scheduler().state(), SchedulerState::kStopped);
  // The actor may have started before, on the other worker, or starts now.
  Lines lines = log.Take();
  std::erase(lines, "other starts");
  EXPECT_EQ(lines, (Lines{"other: from inside", "other: also from inside"}));
  EXPECT_EQ(TryTell(other, std::string("too late")).code(), absl::StatusCode::kUnavailable);
}

// SCH-9
TEST(ReadyQueueScheduler, SaysThatWorkWasLeftAtTheDeadline) {
  TestLog log;
  TestSystem system(Threads(), {});
  // An actor that always has something to do.
  const ActorRef restless = system.Spawn(*ProbeProps(log, "restless"));
  std::function<absl::Status(ActorContext&)> again = [&again](ActorContext& context) {
    context.Tell(context.self(), Do{again});
    return absl::OkStatus();
  };
  Tell(restless, Do{again});
  const absl::Status stopped = system.scheduler().Shutdown(absl::Milliseconds(5));
  EXPECT_EQ(stopped.code(), absl::StatusCode::kDeadlineExceeded) << stopped;
  EXPECT_NE(stopped.ToString().find("5ms"), std::string::npos) << stopped;
  EXPECT_EQ(system.scheduler().state(), SchedulerState::kStopped);
}

TEST(ReadyQueueScheduler, DoesNotWaitOnAToolboxWithoutThreads) {
  TestLog log;
  {
    TestSystem system;
    EXPECT_TRUE(system.scheduler().Shutdown(absl::InfiniteDuration()).ok());
  }
  TestSystem system;
  system.Spawn(*ProbeProps(log, "actor"));
  EXPECT_EQ(system.scheduler().Shutdown(absl::InfiniteDuration()).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(log.Take(), Lines());
}

// SCH-9
TEST(ReadyQueueScheduler, IsStoppedByForceInTheMiddleOfThings) {
  TestLog log;
  TestSystem system(Threads(), {});
  Held held;
  const ActorRef busy = system.Spawn(*ProbeProps(log, "busy"));
  Tell(busy, held.AsMessage());
  for (int i = 0; i < 1000; ++i) TellText(busy, "never");
  held.entered.acquire();
  std::thread stopper([&] { system.scheduler().ForceStop(); });
  // The worker ends its run, which is no longer than its budget.
  held.go_on.release();
  stopper.join();
  EXPECT_EQ(system.scheduler().state(), SchedulerState::kStopped);
  const size_t handled = log.Take().size();
  EXPECT_EQ(TryTell(busy, std::string("too late")).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(log.Take().size(), 0u) << "after " << handled;
}

TEST(ReadyQueueScheduler, ShutsDownWithPinnedActorsThatEndMeanwhile) {
  TestLog log;
  TestSystem system(Threads(), {});
  Held held;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const PropsPtr pinned = ProbeProps(log, "pinned", {}, {.dispatcher = DispatcherChoice::kPinned});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(SpawnUnder(system, root, *pinned).ok());
  held.then = [](ActorContext& context) {
    context.Stop();
    return absl::OkStatus();
  };
  Tell(root, held.AsMessage());
  held.entered.acquire();
  absl::Status stopped = absl::UnknownError("not yet");
  std::thread stopper([&] { stopped = system.scheduler().Shutdown(absl::InfiniteDuration()); });
  AwaitState(system.scheduler(), SchedulerState::kDraining);
  held.go_on.release();
  stopper.join();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_FALSE(system.IsAlive(root));
  EXPECT_EQ(log.Take().back(), "root stops");
}

TEST(ReadyQueueScheduler, NamesTheTypeOfAnActorThatHoldsAWorker) {
  for (const bool with_hub : {true, false}) {
    Mutex mutex;
    std::vector<uint16_t> types;
    std::counting_semaphore<> stalled{0};
    TestSystemOptions options;
    options.with_hub = with_hub;
    options.scheduler.dispatchers.default_pool.watch = {.stall_after = absl::Milliseconds(1),
                                                        .on_stall = [&](const WorkerStall& stall) {
                                                          const MutexLock lock(mutex);
                                                          types.push_back(stall.actor_type);
                                                          stalled.release();
                                                        }};
    Held held;
    TestLog log;
    TestSystem system(Threads(), options);
    system.Spawn(PropsOf<Quiet>());
    Tell(system.Spawn(*ProbeProps(log, "slow")), held.AsMessage());
    held.entered.acquire();
    // Other actors may be slow too, on a busy machine.
    std::string name;
    for (size_t i = 0; i == 0 || name.find("Probe") == std::string::npos; ++i) {
      stalled.acquire();
      const MutexLock lock(mutex);
      name = system.tree().types().NameOf(types[i]);
      EXPECT_TRUE(name.find("Probe") != std::string::npos || name.find("Quiet") != std::string::npos ||
                  name.find("TestGuardian") != std::string::npos)
          << name;
    }
    held.go_on.release();
  }
}

// Without an on_stall the system logs the stall. A pinned actor holds only its own thread, so it is
// not reported.
TEST(ReadyQueueScheduler, LogsTheTypeOfAnActorThatHoldsAWorker) {
  class Sink final : public LogSink {
   public:
    // Only the patrol calls it. Other actors than the probe may be slow too.
    void Write(const LogRecord& record) override {
      if (record.type.find("Probe") == std::string_view::npos || !text.empty()) return;
      text = std::string(record.text);
      written.release();
    }
    std::string text;
    std::binary_semaphore written{0};
  };
  Sink sink;
  Logger logger(&sink);
  TestSystemOptions options;
  options.log = &logger;
  options.scheduler.dispatchers.default_pool.watch.stall_after = absl::Milliseconds(1);
  options.scheduler.dispatchers.pinned.watch.stall_after = absl::Milliseconds(1);
  Held pinned;
  Held held;
  TestLog log;
  TestSystem system(Threads(), options);
  Tell(system.Spawn(*ProbeProps(log, "pinned", {}, {.dispatcher = DispatcherChoice::kPinned})), pinned.AsMessage());
  pinned.entered.acquire();
  Tell(system.Spawn(*ProbeProps(log, "slow")), held.AsMessage());
  held.entered.acquire();
  sink.written.acquire();
  EXPECT_EQ(sink.text.find("has held worker default-"), 0u) << sink.text;
  held.go_on.release();
  pinned.go_on.release();
}

}  // namespace
}  // namespace fraktor::actor_internal
