// The contract of RuntimeToolbox, tested on all three toolboxes.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_under_test.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {
namespace {

using Progress = ToolboxWorker::Progress;

template <typename Toolbox, typename Options>
struct Kind {
  static absl::StatusOr<std::unique_ptr<RuntimeToolbox>> Make(int max_workers, int64_t max_timers) {
    Options options;
    options.max_workers = max_workers;
    options.max_timers = max_timers;
    options.seed = 42;
    auto made = Toolbox::Make(options);
    if (!made.ok()) return made.status();
    return std::unique_ptr<RuntimeToolbox>(*std::move(made));
  }
};
using Std = Kind<StdToolbox, StdToolboxOptions>;
using Local = Kind<LocalToolbox, LocalToolboxOptions>;
using Sim = Kind<SimToolbox, SimToolboxOptions>;

template <typename Toolbox>
class ToolboxContract : public testing::Test {
 protected:
  RuntimeToolbox& toolbox() { return *toolbox_; }
  void Await(Tally& tally, int n) { fraktor::Await(*toolbox_, tally, n); }

  // Ends the toolbox before the variables that its workers and tasks use. They may call toolbox()
  // meanwhile, so it is not reset.
  void End() {
    delete toolbox_.get();
    toolbox_.release();  // NOLINT(bugprone-unused-return-value): deleted
  }

  std::unique_ptr<RuntimeToolbox> toolbox_ = Toolbox::Make(8, 1000).value();
};

struct KindNames {
  template <typename T>
  static std::string GetName(int) {
    if (std::is_same_v<T, Std>) return "Std";
    return std::is_same_v<T, Local> ? "Local" : "Sim";
  }
};
using Kinds = testing::Types<Std, Local, Sim>;
TYPED_TEST_SUITE(ToolboxContract, Kinds, KindNames);

TYPED_TEST(ToolboxContract, ATimerIsNeverEarly) {
  for (absl::Duration delay : {absl::Nanoseconds(1), absl::Microseconds(1500), absl::Milliseconds(3)}) {
    Tally fired;
    Instant seen;
    const Instant asked = this->toolbox().Now();
    ASSERT_TRUE(this->toolbox()
                    .ScheduleAfter(delay,
                                   [&] {
                                     seen = this->toolbox().Now();
                                     fired.Add();
                                   })
                    .ok());
    this->Await(fired, 1);
    EXPECT_GE(seen - asked, delay);
  }
}

TYPED_TEST(ToolboxContract, ATimerThatHasFiredCannotBeCancelled) {
  Tally fired;
  TimerId told;
  absl::StatusOr<TimerId> id = this->toolbox().ScheduleAfter(absl::Milliseconds(1), [&](const TimerFiring& firing) {
    told = firing.id;
    EXPECT_FALSE(this->toolbox().CancelTimer(firing.id));
    EXPECT_EQ(firing.periods, 1u);
    fired.Add();
  });
  ASSERT_TRUE(id.ok());
  this->Await(fired, 1);
  EXPECT_EQ(told, *id);
  EXPECT_FALSE(this->toolbox().CancelTimer(*id));
}

// Arms and cancels from inside a task: no timer fires meanwhile, however slow this thread is.
TYPED_TEST(ToolboxContract, ACancelledTimerNeverFiresAndItsTaskIsDestroyed) {
  Tally fired;
  auto owned = std::make_shared<int>();
  const auto arm_and_cancel = [&] {
    TimerId id =
        this->toolbox().ScheduleAfter(absl::Milliseconds(1), [owned] { ADD_FAILURE() << "was cancelled"; }).value();
    EXPECT_EQ(owned.use_count(), 2);
    EXPECT_TRUE(this->toolbox().CancelTimer(id));
    EXPECT_EQ(owned.use_count(), 1);
    EXPECT_FALSE(this->toolbox().CancelTimer(id));
    ASSERT_TRUE(this->toolbox().ScheduleAfter(absl::Milliseconds(2), [&] { fired.Add(); }).ok());
  };
  ASSERT_TRUE(this->toolbox().ScheduleAfter(absl::ZeroDuration(), arm_and_cancel).ok());
  this->Await(fired, 1);
}

TYPED_TEST(ToolboxContract, TimersFireByDeadlineAndThenInOrderOfArming) {
  Tally fired;
  std::vector<int> order;
  Instant base;
  auto arm = [&](absl::Duration offset, int label) {
    ASSERT_TRUE(this->toolbox()
                    .ScheduleAt(base + offset,
                                [&order, &fired, label] {
                                  order.push_back(label);  // firings do not overlap
                                  fired.Add();
                                })
                    .ok());
  };
  // Arms from inside a task: no timer fires before all are armed, however slow this thread is.
  ASSERT_TRUE(this->toolbox()
                  .ScheduleAfter(absl::ZeroDuration(),
                                 [&] {
                                   base = this->toolbox().Now() + absl::Milliseconds(5);
                                   arm(absl::Milliseconds(10), 3);
                                   for (int label = 0; label < 3; ++label) arm(absl::ZeroDuration(), label);
                                   arm(absl::Milliseconds(5), 9);
                                 })
                  .ok());
  this->Await(fired, 5);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 9, 3}));
}

TYPED_TEST(ToolboxContract, ADelayThatIsNotPositiveIsDueAtOnceButNotInsideTheCall) {
  Tally fired;
  std::atomic<bool> armed = false;
  Tally first;
  ASSERT_TRUE(this->toolbox()
                  .ScheduleAfter(absl::ZeroDuration(),
                                 [&] {
                                   // Arms from inside a task, while no other task can begin.
                                   ASSERT_TRUE(this->toolbox()
                                                   .ScheduleAfter(absl::Seconds(-5),
                                                                  [&] {
                                                                    EXPECT_TRUE(armed);
                                                                    fired.Add();
                                                                  })
                                                   .ok());
                                   armed = true;
                                   first.Add();
                                 })
                  .ok());
  this->Await(first, 1);
  this->Await(fired, 1);
}

TYPED_TEST(ToolboxContract, AnInfiniteDelayIsPendingAndCanBeCancelled) {
  TimerId id = this->toolbox().ScheduleAfter(absl::InfiniteDuration(), [] { ADD_FAILURE(); }).value();
  EXPECT_TRUE(this->toolbox().CancelTimer(id));
}

TYPED_TEST(ToolboxContract, APeriodicTimerFiresUntilItsOwnTaskCancelsIt) {
  Tally fired;
  Tally after;
  Instant last;
  const absl::Duration period = absl::Milliseconds(2);
  ASSERT_TRUE(this->toolbox()
                  .SchedulePeriodic({.period = period},
                                    [&](const TimerFiring& firing) {
                                      EXPECT_GE(firing.periods, 1u);
                                      EXPECT_LE(firing.deadline, this->toolbox().Now());
                                      if (fired.count() > 0) {
                                        EXPECT_GE(firing.deadline - last, period);
                                      }
                                      last = firing.deadline;
                                      if (fired.count() == 4) {
                                        EXPECT_TRUE(this->toolbox().CancelTimer(firing.id));
                                        EXPECT_FALSE(this->toolbox().CancelTimer(firing.id));
                                      }
                                      fired.Add();
                                    })
                  .ok());
  this->Await(fired, 5);
  ASSERT_TRUE(this->toolbox().ScheduleAfter(10 * period, [&] { after.Add(); }).ok());
  this->Await(after, 1);
  EXPECT_EQ(fired.count(), 5);
}

TYPED_TEST(ToolboxContract, AFixedDelayTimerCountsFromTheEndOfItsTask) {
  Tally fired;
  Instant last;
  const absl::Duration period = absl::Milliseconds(3);
  TimerId id =
      this->toolbox()
          .SchedulePeriodic({.period = period, .initial_delay = absl::ZeroDuration(), .cadence = Cadence::kFixedDelay},
                            [&](const TimerFiring& firing) {
                              EXPECT_EQ(firing.periods, 1u);
                              if (fired.count() > 0) {
                                EXPECT_GE(this->toolbox().Now() - last, period);
                              }
                              last = this->toolbox().Now();
                              fired.Add();
                            })
          .value();
  this->Await(fired, 3);
  EXPECT_TRUE(this->toolbox().CancelTimer(id));
  this->End();
}

TYPED_TEST(ToolboxContract, RefusesAPeriodThatIsNotPositive) {
  absl::Status refused = this->toolbox().SchedulePeriodic({.period = absl::Seconds(-1)}, [] {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(), "timer: period is -1s; it must be positive");
}

TYPED_TEST(ToolboxContract, RefusesOneTimerMoreThanItsLimit) {
  std::vector<TimerId> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(this->toolbox().ScheduleAfter(absl::Hours(1), [] {}).value());
  EXPECT_EQ(this->toolbox().ScheduleAfter(absl::Hours(1), [] {}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(this->toolbox().CancelTimer(ids[500]));
  EXPECT_TRUE(this->toolbox().ScheduleAfter(absl::Hours(1), [] {}).ok());
}

// Counts the calls of the toolbox.
class CountingWorker : public ToolboxWorker {
 public:
  struct Counts {
    std::atomic<int> work = 0;
    std::atomic<bool> stop = false;
    std::atomic<int> destroyed = 0;
    Tally done_work;
    Tally before_park;
    Tally after_park;
  };
  explicit CountingWorker(Counts& counts) : counts_(counts) {}
  ~CountingWorker() override { ++counts_.destroyed; }

  Progress RunSome() override {
    EXPECT_FALSE(parked_);
    return Look();
  }
  Progress BeforePark() override {
    const Progress found = Look();
    if (found == Progress::kIdle) {
      parked_ = true;
      counts_.before_park.Add();
    }
    return found;
  }
  void AfterPark() override {
    EXPECT_TRUE(parked_);
    parked_ = false;
    counts_.after_park.Add();
  }

 private:
  Progress Look() {
    const int found = counts_.work.exchange(0);
    if (found > 0) {
      counts_.done_work.Add(found);
      return Progress::kBusy;
    }
    return counts_.stop ? Progress::kDone : Progress::kIdle;
  }

  Counts& counts_;
  bool parked_ = false;
};

TYPED_TEST(ToolboxContract, AWorkerIsParkedWhenIdleRunsAgainWhenWokenAndEndsWhenDone) {
  CountingWorker::Counts counts;
  WorkerHandle worker = this->toolbox().StartWorker({.name = "till"}, std::make_unique<CountingWorker>(counts)).value();
  EXPECT_EQ(worker.name(), "till");
  for (int round = 1; round <= 100; ++round) {
    this->Await(counts.before_park, round);
    EXPECT_FALSE(worker.done());
    ++counts.work;
    worker.Wake();
    this->Await(counts.done_work, round);
  }
  counts.stop = true;
  worker.Wake();
  EXPECT_TRUE(worker.Join().ok());
  EXPECT_TRUE(worker.done());
  EXPECT_EQ(counts.destroyed, 1);
  EXPECT_GE(counts.after_park.count(), 100);
  worker.Wake();
  EXPECT_TRUE(worker.Join().ok());
}

TYPED_TEST(ToolboxContract, WorkersWakeEachOther) {
  constexpr int kRounds = 500;
  std::atomic<int> ball = 0;
  Tally over;
  std::atomic<int> started = 0;
  std::vector<WorkerHandle> players(2);
  for (int side = 0; side < 2; ++side) {
    players[side] = this->toolbox()
                        .StartWorker({}, MakeWorker([&, side] {
                                       if (started < 2) return Progress::kBusy;
                                       const int at = ball.load();
                                       if (at >= kRounds) return Progress::kDone;
                                       if (at % 2 != side) return Progress::kIdle;
                                       ball.store(at + 1);
                                       players[1 - side].Wake();
                                       if (at + 1 == kRounds) over.Add();
                                       return Progress::kBusy;
                                     }))
                        .value();
    EXPECT_FALSE(players[side].name().empty());
  }
  started = 2;
  this->Await(over, 1);
  for (WorkerHandle& player : players) {
    player.Wake();
    EXPECT_TRUE(player.Join().ok());
  }
  EXPECT_EQ(ball, kRounds);
}

TYPED_TEST(ToolboxContract, AWakeBetweenTheLastLookAndParkingIsNotLost) {
  // The worker itself does what another thread could do just after the worker has checked for work.
  std::atomic<int> work = 0;
  std::atomic<bool> known = false;
  bool interrupted = false;
  Tally found;
  WorkerHandle self;
  self = this->toolbox()
             .StartWorker({}, MakeWorker([&] {
                            if (!known) return Progress::kBusy;
                            if (work.exchange(0) > 0) {
                              found.Add();
                              return Progress::kDone;
                            }
                            if (!std::exchange(interrupted, true)) {
                              work = 1;
                              self.Wake();
                            }
                            return Progress::kIdle;
                          }))
             .value();
  known = true;
  this->Await(found, 1);
  EXPECT_TRUE(self.Join().ok());
}

TYPED_TEST(ToolboxContract, ATimerWakesAWorker) {
  CountingWorker::Counts counts;
  WorkerHandle worker = this->toolbox().StartWorker({}, std::make_unique<CountingWorker>(counts)).value();
  ASSERT_TRUE(this->toolbox()
                  .ScheduleAfter(absl::Milliseconds(5),
                                 [&] {
                                   ++counts.work;
                                   worker.Wake();
                                 })
                  .ok());
  this->Await(counts.done_work, 1);
  this->End();
}

TYPED_TEST(ToolboxContract, TimersFireWhileAWorkerIsAlwaysBusy) {
  std::atomic<bool> stop = false;
  WorkerHandle worker =
      this->toolbox().StartWorker({}, MakeWorker([&] { return stop ? Progress::kDone : Progress::kBusy; })).value();
  Tally fired;
  ASSERT_TRUE(this->toolbox()
                  .ScheduleAfter(absl::ZeroDuration(),
                                 [&] {
                                   stop = true;
                                   fired.Add();
                                 })
                  .ok());
  this->Await(fired, 1);
  EXPECT_TRUE(worker.Join().ok());
}

TYPED_TEST(ToolboxContract, RefusesBadWorkers) {
  auto worker = [] { return MakeWorker([] { return Progress::kDone; }); };
  RuntimeToolbox& toolbox = this->toolbox();
  EXPECT_EQ(toolbox.StartWorker({.name = "w", .idle_rounds = -1}, worker()).status().message(),
            "worker \"w\": idle_rounds is -1; use 0 to 1000000");
  EXPECT_EQ(toolbox.StartWorker({.name = "w", .cpus = {0, -2}}, worker()).status().message(),
            "worker \"w\": cpus has -2; use 0 to 1023");
  EXPECT_EQ(toolbox.StartWorker({.name = "w", .nice = 20}, worker()).status().message(),
            "worker \"w\": nice is 20; use -20 to 19");
  EXPECT_EQ(toolbox.StartWorker({.name = std::string(101, 'x')}, worker()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(toolbox.StartWorker({.name = "w"}, nullptr).status().message(), "worker \"w\" is null");
}

TYPED_TEST(ToolboxContract, RefusesOneWorkerMoreThanItsLimitAndHasRoomWhenOneIsDone) {
  std::atomic<bool> stop = false;
  std::vector<WorkerHandle> workers;
  auto start = [&] {
    return this->toolbox().StartWorker({}, MakeWorker([&] { return stop ? Progress::kDone : Progress::kIdle; }));
  };
  for (int i = 0; i < 8; ++i) workers.push_back(start().value());
  EXPECT_EQ(start().status().code(), absl::StatusCode::kResourceExhausted);
  stop = true;
  workers[3].Wake();
  EXPECT_TRUE(workers[3].Join().ok());
  EXPECT_TRUE(start().ok());
  this->End();
}

TYPED_TEST(ToolboxContract, EndsWithWorkersInEveryStateAndDropsWhatIsPending) {
  auto owned = std::make_shared<int>();
  CountingWorker::Counts counts;
  WorkerHandle parked = this->toolbox().StartWorker({}, std::make_unique<CountingWorker>(counts)).value();
  this->Await(counts.before_park, 1);
  WorkerHandle busy = this->toolbox().StartWorker({}, MakeWorker([owned] { return Progress::kBusy; })).value();
  ASSERT_TRUE(this->toolbox().ScheduleAfter(absl::Hours(1), [owned] { ADD_FAILURE(); }).ok());
  ASSERT_TRUE(this->toolbox().SchedulePeriodic({.period = absl::Hours(1)}, [owned] { ADD_FAILURE(); }).ok());
  EXPECT_EQ(owned.use_count(), 4);
  this->toolbox_.reset();
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(counts.destroyed, 1);
  EXPECT_TRUE(parked.done());
  EXPECT_TRUE(busy.done());
  busy.Wake();
  parked.Wake();
  EXPECT_TRUE(parked.Join().ok());
}

// A task whose destructor calls the toolbox.
class LastWish {
 public:
  LastWish(RuntimeToolbox& toolbox, TimerId other, bool& refused)
      : toolbox_(&toolbox), other_(other), refused_(&refused) {}
  LastWish(LastWish&& dead) noexcept
      : toolbox_(std::exchange(dead.toolbox_, nullptr)), other_(dead.other_), refused_(dead.refused_) {}
  ~LastWish() {
    if (toolbox_ == nullptr) return;
    *refused_ = !toolbox_->CancelTimer(other_) && !toolbox_->ScheduleAfter(absl::Seconds(1), [] {}).ok();
  }
  void operator()() const {}

 private:
  RuntimeToolbox* toolbox_;
  TimerId other_;
  bool* refused_;
};

TYPED_TEST(ToolboxContract, RefusesEverythingWhileItEnds) {
  bool refused = false;
  TimerId other = this->toolbox().ScheduleAfter(absl::Hours(2), [] {}).value();
  ASSERT_TRUE(this->toolbox().ScheduleAfter(absl::Hours(1), LastWish(this->toolbox(), other, refused)).ok());
  this->toolbox_.reset();
  EXPECT_TRUE(refused);
}

TYPED_TEST(ToolboxContract, ACancelledTaskMayUseTheToolboxWhenItIsDestroyed) {
  bool refused = true;
  TimerId other = this->toolbox().ScheduleAfter(absl::Hours(2), [] {}).value();
  TimerId id = this->toolbox().ScheduleAfter(absl::Hours(1), LastWish(this->toolbox(), other, refused)).value();
  EXPECT_TRUE(this->toolbox().CancelTimer(id));
  EXPECT_FALSE(refused);
  EXPECT_FALSE(this->toolbox().CancelTimer(other));
}

TYPED_TEST(ToolboxContract, AWorkerCannotWaitForItself) {
  Tally asked;
  WorkerHandle self;
  absl::Status answer;
  std::atomic<bool> known = false;
  self = this->toolbox()
             .StartWorker({.name = "narcissus"}, MakeWorker([&] {
                            if (!known) return Progress::kBusy;
                            answer = self.Join();
                            asked.Add();
                            return Progress::kDone;
                          }))
             .value();
  known = true;
  this->Await(asked, 1);
  EXPECT_EQ(answer.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(self.Join().ok());
}

TYPED_TEST(ToolboxContract, TheSameSeedAndStreamGiveTheSameNumbers) {
  auto twin = TypeParam::Make(1, 1).value();
  EXPECT_EQ(twin->seed(), 42u);
  Random a = this->toolbox().MakeRandom(7);
  Random b = twin->MakeRandom(7);
  Random c = twin->MakeRandom(8);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
}

TYPED_TEST(ToolboxContract, RefusesBadLimits) {
  for (int workers : {-1, 0, 1 << 20})
    EXPECT_EQ(TypeParam::Make(workers, 1).status().code(), absl::StatusCode::kInvalidArgument);
  for (int64_t timers : {int64_t{-1}, int64_t{0}, int64_t{1} << 40}) {
    EXPECT_EQ(TypeParam::Make(1, timers).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_NE(TypeParam::Make(-1, 1).status().message().find("max_workers is -1; use 1 to 16384"), std::string::npos);
}

}  // namespace
}  // namespace fraktor
