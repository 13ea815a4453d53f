#include "fraktor/utils/toolbox/std_toolbox.h"

#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_under_test.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {
namespace {

using Progress = ToolboxWorker::Progress;

// Parks at once, reports on which thread it runs, and is done when told.
class Sleeper : public ToolboxWorker {
 public:
  struct Signs {
    std::atomic<bool> stop = false;
    std::atomic<std::thread::id> thread = {};
    Tally parking;
  };
  explicit Sleeper(Signs& signs) : signs_(signs) {}
  Progress RunSome() override {
    signs_.thread = std::this_thread::get_id();
    return signs_.stop ? Progress::kDone : Progress::kIdle;
  }
  Progress BeforePark() override {
    if (signs_.stop) return Progress::kDone;
    signs_.parking.Add();
    return Progress::kIdle;
  }

 private:
  Signs& signs_;
};

// Each test declares the variables that workers use before the toolbox, which ends the workers.

TEST(StdToolbox, TimersAreDrivenByTheParkedWorkerAndNotByAThreadOfTheirOwn) {
  Sleeper::Signs signs;
  auto toolbox = StdToolbox::Make({}).value();
  toolbox->StartWorker({}, std::make_unique<Sleeper>(signs)).value();
  signs.parking.WaitFor(1);
  for (int i = 0; i < 20; ++i) {
    Tally fired;
    std::thread::id thread;
    toolbox
        ->ScheduleAfter(absl::Microseconds(100 * i),
                        [&] {
                          thread = std::this_thread::get_id();
                          fired.Add();
                        })
        .value();
    fired.WaitFor(1);
    EXPECT_EQ(thread, signs.thread.load());
  }
  // The worker was never woken for the timers.
  EXPECT_EQ(signs.parking.count(), 1);
}

TEST(StdToolbox, AnEarlierTimerWakesTheDriverThatWaitsForALaterOne) {
  Sleeper::Signs signs;
  auto toolbox = StdToolbox::Make({}).value();
  toolbox->StartWorker({}, std::make_unique<Sleeper>(signs)).value();
  toolbox->ScheduleAfter(absl::Hours(1), [] { ADD_FAILURE(); }).value();
  for (int i = 0; i < 300; ++i) {
    Tally fired;
    toolbox->ScheduleAfter(absl::Microseconds(i), [&] { fired.Add(); }).value();
    fired.WaitFor(1);
  }
}

TEST(StdToolbox, TimersFireWithoutAnyWorkerAndThoseOfAWorkerThatIsDoneAreTakenOver) {
  Sleeper::Signs first;
  Sleeper::Signs second;
  auto toolbox = StdToolbox::Make({}).value();
  WorkerHandle one = toolbox->StartWorker({}, std::make_unique<Sleeper>(first)).value();
  first.parking.WaitFor(1);
  WorkerHandle two = toolbox->StartWorker({}, std::make_unique<Sleeper>(second)).value();
  second.parking.WaitFor(1);
  Tally fired;
  auto arm = [&](absl::Duration delay) { toolbox->ScheduleAfter(delay, [&] { fired.Add(); }).value(); };
  arm(absl::Milliseconds(20));
  arm(absl::Milliseconds(60));
  first.stop = true;
  one.Wake();
  EXPECT_TRUE(one.Join().ok());
  fired.WaitFor(1);
  second.stop = true;
  two.Wake();
  EXPECT_TRUE(two.Join().ok());
  fired.WaitFor(2);
  arm(absl::Milliseconds(1));
  fired.WaitFor(3);
}

TEST(StdToolbox, AWorkerThatDrivesNoTimersIsNotUsedForThem) {
  Sleeper::Signs signs;
  auto toolbox = StdToolbox::Make({}).value();
  toolbox->StartWorker({.drives_timers = false}, std::make_unique<Sleeper>(signs)).value();
  signs.parking.WaitFor(1);
  Tally fired;
  std::thread::id thread;
  toolbox
      ->ScheduleAfter(absl::Milliseconds(1),
                      [&] {
                        thread = std::this_thread::get_id();
                        fired.Add();
                      })
      .value();
  fired.WaitFor(1);
  EXPECT_NE(thread, signs.thread.load());
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(StdToolbox, ATimerArmedByAWorkerBeforeItParksFires) {
  // The worker arms a timer and parks. It does not nudge the other worker, which drives and sleeps
  // until a later deadline, so it must take over by itself.
  for (int round = 0; round < 10; ++round) {
    Sleeper::Signs signs;
    Tally fired;
    std::atomic<int> ask = 0;
    auto toolbox = StdToolbox::Make({}).value();
    toolbox->StartWorker({}, std::make_unique<Sleeper>(signs)).value();
    signs.parking.WaitFor(1);
    toolbox->ScheduleAfter(absl::ZeroDuration(), [&] { fired.Add(); }).value();
    fired.WaitFor(1);
    // Gives the first worker ample time to fall asleep as the driver. If it does not, the round
    // proves less.
    for (int i = 0; i < 2000; ++i) toolbox->CancelTimer(toolbox->ScheduleAfter(absl::Hours(1), [] {}).value());
    WorkerHandle worker =
        toolbox
            ->StartWorker({}, MakeWorker([&] {
                            if (ask.exchange(0) == 0) return Progress::kIdle;
                            toolbox->ScheduleAfter(absl::Microseconds(500), [&] { fired.Add(); }).value();
                            return Progress::kIdle;
                          }))
            .value();
    for (int i = 1; i <= 10; ++i) {
      ask = 1;
      worker.Wake();
      fired.WaitFor(1 + i);
    }
  }
}

TEST(StdToolbox, MissedPeriodsAreOneFiringThatSaysHowMany) {
  auto toolbox = StdToolbox::Make({.timer_resolution = absl::Nanoseconds(1)}).value();
  StdToolbox* const raw = toolbox.get();
  Tally fired;
  std::binary_semaphore go(0);
  std::vector<std::pair<Instant, uint64_t>> firings;
  toolbox
      ->SchedulePeriodic({.period = absl::Milliseconds(1)},
                         [&](const TimerFiring& firing) {
                           firings.emplace_back(firing.deadline, firing.periods);
                           fired.Add();
                           if (fired.count() == 1) go.acquire();
                           if (fired.count() >= 4) raw->CancelTimer(firing.id);
                         })
      .value();
  fired.WaitFor(1);
  const Instant late = toolbox->Now() + absl::Milliseconds(10);
  while (toolbox->Now() < late) std::this_thread::yield();
  go.release();
  fired.WaitFor(4);
  toolbox.reset();
  EXPECT_GE(firings[1].second, 9u);
  for (size_t i = 1; i < firings.size(); ++i) {
    EXPECT_EQ(firings[i].first - firings[i - 1].first,
              static_cast<int64_t>(firings[i - 1].second) * absl::Milliseconds(1));
  }
}

// A tick of the system is at most 10 ms. But on a virtual machine the CPU that counts the ticks may
// wait for a CPU of the host, while this thread runs on another one.
TEST(StdToolbox, TheRoughDateIsNotAheadAndNotFarBehind) {
  const std::unique_ptr<StdToolbox> toolbox = StdToolbox::Make({}).value();
  const absl::Time before = toolbox->WallNow();
  const absl::Time roughly = toolbox->WallNowRoughly();
  const absl::Time after = toolbox->WallNow();
  EXPECT_LE(roughly, after);
  EXPECT_GE(roughly, before - absl::Seconds(10));
}

// A thread as it sees itself.
struct Traits {
  std::string name;
  std::vector<int> cpus;
  int nice = 0;

  static Traits OfThisThread() {
    Traits traits;
    char text[16] = {};
    pthread_getname_np(pthread_self(), text, sizeof(text));
    traits.name = text;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    EXPECT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &mine)) traits.cpus.push_back(cpu);
    }
    traits.nice = getpriority(PRIO_PROCESS, 0);
    return traits;
  }
};

// The traits of the thread of a worker with these options.
Traits TraitsOf(RuntimeToolbox& toolbox, const WorkerOptions& options) {
  Traits traits;
  const absl::StatusOr<WorkerHandle> worker = toolbox.StartWorker(options, MakeWorker([&] {
                                                                    traits = Traits::OfThisThread();
                                                                    return Progress::kDone;
                                                                  }));
  EXPECT_TRUE(worker.ok()) << worker.status();
  if (worker.ok()) {
    EXPECT_TRUE(worker->Join().ok());
  }
  return traits;
}

TEST(StdToolbox, NamesItsThreadsAndPutsThemOnCpus) {
  auto toolbox = StdToolbox::Make({.name = "shop"}).value();
  const Traits mine = Traits::OfThisThread();
  ASSERT_FALSE(mine.cpus.empty());
  for (const int cpu : mine.cpus) {
    const Traits pinned = TraitsOf(*toolbox, {.name = "a name that is long", .cpus = {cpu}});
    EXPECT_EQ(pinned.name, "a name that is ");
    EXPECT_EQ(pinned.cpus, std::vector<int>({cpu}));
  }
  EXPECT_EQ(TraitsOf(*toolbox, {.cpus = mine.cpus}).cpus, mine.cpus);
  EXPECT_EQ(TraitsOf(*toolbox, {}).cpus, mine.cpus);
}

// The kernel would take such a set without a word, as long as it has a CPU that there is.
TEST(StdToolbox, RefusesEachCpuThatItMayNotUse) {
  auto toolbox = StdToolbox::Make({.name = "shop"}).value();
  const Traits mine = Traits::OfThisThread();
  for (const std::vector<int>& cpus : {std::vector<int>{1023}, {mine.cpus.front(), 1023}}) {
    auto owned = std::make_shared<int>();
    const absl::Status refused = toolbox
                                     ->StartWorker({.name = "far", .cpus = cpus}, MakeWorker([owned] {
                                                     ADD_FAILURE() << "it runs";
                                                     return Progress::kDone;
                                                   }))
                                     .status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    const std::string text = "worker \"far\": cpus has 1023, and this process may use the CPUs ";
    EXPECT_EQ(refused.message().substr(0, text.size()), text);
    EXPECT_GT(refused.message().size(), text.size()) << refused;
    EXPECT_EQ(owned.use_count(), 1) << "the worker is destroyed";
  }
  EXPECT_TRUE(TraitsOf(*toolbox, {}).name == "shop-2") << "the toolbox goes on";
}

TEST(StdToolbox, GivesThreadsANiceValue) {
  auto toolbox = StdToolbox::Make({.name = "shop"}).value();
  const int mine = getpriority(PRIO_PROCESS, 0);
  const int wanted = std::min(mine + 3, 19);
  EXPECT_EQ(TraitsOf(*toolbox, {.nice = wanted}).nice, wanted);
  EXPECT_EQ(TraitsOf(*toolbox, {}).nice, mine);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), mine) << "the thread that starts it keeps its own";
}

// From now on this thread, and the threads that it starts, may lower no nice value, also if root
// runs the test.
void GiveUpThePriority() {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2] = {};
  ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
}

TEST(StdToolbox, RefusesANiceValueThatTheProcessMayNotSet) {
  auto toolbox = StdToolbox::Make({.name = "shop"}).value();
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NICE, &limit), 0);
  const int mine = getpriority(PRIO_PROCESS, 0);
  // The limit of n allows nice values down to 20 - n.
  const int too_low = std::min<int>(mine, 20 - static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 40))) - 1;
  if (too_low < -20) GTEST_SKIP() << "this process may set all nice values";
  absl::Status refused;
  std::thread([&] {
    GiveUpThePriority();
    refused =
        toolbox->StartWorker({.name = "first", .nice = too_low}, MakeWorker([] { return Progress::kDone; })).status();
  }).join();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_EQ(refused.message(), "worker \"first\": nice is " + std::to_string(too_low) +
                                   ", which this process may not set (error " + std::to_string(EACCES) + "): use " +
                                   std::to_string(mine) +
                                   " or more, or give the process CAP_SYS_NICE or a higher RLIMIT_NICE");
}

// Linux gives a new thread the CPUs and the nice value of the thread that starts it.
TEST(StdToolbox, DoesNotHandTheCpusOfAWorkerOnToWorkersThatItStarts) {
  auto toolbox = StdToolbox::Make({.name = "shop"}).value();
  const Traits mine = Traits::OfThisThread();
  Traits inner;
  const WorkerHandle outer =
      toolbox
          ->StartWorker({.cpus = {mine.cpus.front()}, .nice = std::min(mine.nice + 1, 19)}, MakeWorker([&] {
                          EXPECT_EQ(Traits::OfThisThread().cpus.size(), 1u);
                          inner = TraitsOf(*toolbox, {});
                          return Progress::kDone;
                        }))
          .value();
  ASSERT_TRUE(outer.Join().ok());
  EXPECT_EQ(inner.cpus, mine.cpus);
  // Whether the nice value may be lowered again is the machine's.
  EXPECT_TRUE(inner.nice == mine.nice || inner.nice == mine.nice + 1) << inner.nice;
}

// Stays in one step until it is told to return.
class Stuck : public ToolboxWorker {
 public:
  struct Signs {
    Tally in;
    std::binary_semaphore out{0};
    std::atomic<bool> is_worker_thread = false;
  };
  explicit Stuck(Signs& signs) : signs_(signs) {}
  Progress RunSome() override {
    signs_.is_worker_thread = IsWorkerThread();
    signs_.in.Add();
    signs_.out.acquire();
    return Progress::kDone;
  }

 private:
  Signs& signs_;
};

TEST(StdToolbox, AnybodyMayFireTheTimersOfAWorkerThatIsStuck) {
  Stuck::Signs signs;
  auto toolbox = StdToolbox::Make({}).value();
  toolbox->StartWorker({}, std::make_unique<Stuck>(signs)).value();
  signs.in.WaitFor(1);
  std::thread::id thread;
  std::atomic<bool> fired = false;
  toolbox
      ->ScheduleAfter(absl::ZeroDuration(),
                      [&] {
                        thread = std::this_thread::get_id();
                        fired = true;
                      })
      .value();
  while (!fired) toolbox->FireDueTimers();
  EXPECT_EQ(thread, std::this_thread::get_id());
  signs.out.release();
}

// A worker that parks while another thread fires does not take over the timers; the thread that
// fires hands them back.
TEST(StdToolbox, TimersOfAStuckWorkerAreDrivenAgainWhenItParks) {
  // Stuck in its first step, then parks.
  class StuckOnce : public ToolboxWorker {
   public:
    StuckOnce(Tally& in, std::binary_semaphore& out, Tally& parking) : in_(in), out_(out), parking_(parking) {}
    Progress RunSome() override {
      if (!std::exchange(was_stuck_, true)) {
        in_.Add();
        out_.acquire();
      }
      return Progress::kIdle;
    }
    Progress BeforePark() override {
      parking_.Add();
      return Progress::kIdle;
    }

   private:
    Tally& in_;
    std::binary_semaphore& out_;
    Tally& parking_;
    bool was_stuck_ = false;
  };
  for (int round = 0; round < 20; ++round) {
    Tally in;
    std::binary_semaphore out{0};
    Tally parking;
    Tally second;
    auto toolbox = StdToolbox::Make({}).value();
    toolbox->StartWorker({}, std::make_unique<StuckOnce>(in, out, parking)).value();
    in.WaitFor(1);
    std::atomic<bool> fired = false;
    toolbox
        ->ScheduleAfter(absl::ZeroDuration(),
                        [&] {
                          out.release();
                          parking.WaitFor(1);
                          // Each call takes the lock that the worker needs to fall asleep.
                          for (int i = 0; i < 2000; ++i) toolbox->CancelTimer(TimerId());
                          toolbox->ScheduleAfter(absl::Milliseconds(1), [&] { second.Add(); }).value();
                          fired = true;
                        })
        .value();
    while (!fired) toolbox->FireDueTimers();
    second.WaitFor(1);
  }
}

TEST(StdToolbox, KnowsThreadsThatMustNotBlock) {
  Stuck::Signs driving;
  Stuck::Signs blocking;
  auto toolbox = StdToolbox::Make({}).value();
  toolbox->StartWorker({}, std::make_unique<Stuck>(driving)).value();
  toolbox->StartWorker({.drives_timers = false}, std::make_unique<Stuck>(blocking)).value();
  driving.in.WaitFor(1);
  blocking.in.WaitFor(1);
  EXPECT_TRUE(driving.is_worker_thread);
  EXPECT_FALSE(blocking.is_worker_thread);
  EXPECT_FALSE(IsWorkerThread());
  driving.out.release();
  blocking.out.release();
}

// All timers wait for the one that fires, on any thread.
TEST(StdToolbox, AThreadThatFiresTimersMustNotBlockMeanwhile) {
  Stuck::Signs signs;
  auto toolbox = StdToolbox::Make({}).value();
  toolbox->StartWorker({}, std::make_unique<Stuck>(signs)).value();
  signs.in.WaitFor(1);
  std::atomic<bool> fired = false;
  bool is_worker_thread = false;
  toolbox
      ->ScheduleAfter(absl::ZeroDuration(),
                      [&] {
                        is_worker_thread = IsWorkerThread();
                        fired = true;
                      })
      .value();
  while (!fired) toolbox->FireDueTimers();
  EXPECT_TRUE(is_worker_thread);
  EXPECT_FALSE(IsWorkerThread()) << "only while it fires";
  signs.out.release();
}

TEST(StdToolbox, RefusesBadOptions) {
  EXPECT_EQ(StdToolbox::Make({.name = ""}).status().message(), "toolbox: the name has 0 bytes; use 1 to 80");
  EXPECT_EQ(StdToolbox::Make({.max_workers = -3}).status().message(),
            "toolbox \"fraktor\": max_workers is -3; use 1 to 16384");
  EXPECT_EQ(StdToolbox::Make({.timer_resolution = absl::ZeroDuration()}).status().message(),
            "timing wheel: resolution is 0; use 1ns to 1h");
}

TEST(StdToolbox, SeedsDifferUnlessGiven) {
  EXPECT_NE(StdToolbox::Make({}).value()->seed(), StdToolbox::Make({}).value()->seed());
  EXPECT_EQ(StdToolbox::Make({.seed = 9}).value()->seed(), 9u);
}

TEST(StdToolbox, EndsWhileEverythingIsInMotion) {
  for (int round = 0; round < 20; ++round) {
    auto toolbox = StdToolbox::Make({}).value();
    StdToolbox* const raw = toolbox.get();  // `toolbox` is null while the toolbox ends
    std::vector<WorkerHandle> workers;
    std::atomic<int> steps = 0;
    std::atomic<int> fired = 0;
    Tally moving;
    for (int i = 0; i < 4; ++i) {
      workers.push_back(
          toolbox
              ->StartWorker({.idle_rounds = i}, MakeWorker([&, i] {
                              if (++steps == 50) moving.Add();
                              raw->ScheduleAfter(absl::Microseconds(i), [&] { ++fired; }).status().IgnoreError();
                              return i % 2 == 0 ? Progress::kBusy : Progress::kIdle;
                            }))
              .value());
    }
    toolbox->SchedulePeriodic({.period = absl::Microseconds(50)}, [&] { workers[1].Wake(); }).value();
    moving.WaitFor(1);
    toolbox.reset();
    for (WorkerHandle& worker : workers) EXPECT_TRUE(worker.done());
  }
}

// The task may own the last reference to an object whose destructor calls the toolbox.
TEST(StdToolbox, DestroysAPeriodicTaskThatRunsWhenItEnds) {
  struct UsesTheToolbox {
    explicit UsesTheToolbox(StdToolbox& used) : toolbox(used) {}
    ~UsesTheToolbox() { EXPECT_FALSE(toolbox.CancelTimer(TimerId())); }
    StdToolbox& toolbox;
  };
  auto toolbox = StdToolbox::Make({}).value();
  StdToolbox& raw = *toolbox;  // `toolbox` is null while the toolbox ends
  Tally running;
  toolbox
      ->SchedulePeriodic({.period = absl::Milliseconds(1)},
                         [&raw, &running, owned = std::make_shared<UsesTheToolbox>(raw)] {
                           running.Add();
                           // A toolbox that ends refuses timers.
                           for (;;) {
                             const absl::StatusOr<TimerId> timer = raw.ScheduleAfter(absl::Hours(1), [] {});
                             if (!timer.ok()) break;
                             raw.CancelTimer(*timer);
                           }
                         })
      .value();
  running.WaitFor(1);
  toolbox.reset();
}

TEST(StdToolboxDeathTest, CannotBeDestroyedByItsOwnWorker) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto toolbox = StdToolbox::Make({.name = "ouroboros"}).value();
        std::atomic<bool> known = false;
        WorkerHandle worker = toolbox
                                  ->StartWorker({.name = "tail"}, MakeWorker([&] {
                                                  if (!known) return Progress::kBusy;
                                                  toolbox.reset();
                                                  return Progress::kDone;
                                                }))
                                  .value();
        known = true;
        worker.Join().IgnoreError();
      },
      "toolbox \"ouroboros\" is destroyed by its own worker \"tail\"");
}

// --- stress: exact counts, and a hang if a wake-up is lost ---

TEST(StdToolboxStress, NoWakeUpIsLost) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 1500;
  for (int idle_rounds : {0, 5}) {
    auto toolbox = StdToolbox::Make({}).value();
    std::atomic<int> work = 0;
    std::atomic<bool> stop = false;
    int done = 0;
    std::counting_semaphore<> answers(0);
    WorkerHandle worker = toolbox
                              ->StartWorker({.idle_rounds = idle_rounds}, MakeWorker([&] {
                                              const int found = work.exchange(0);
                                              done += found;
                                              if (found > 0) {
                                                answers.release(found);
                                                return Progress::kBusy;
                                              }
                                              return stop ? Progress::kDone : Progress::kIdle;
                                            }))
                              .value();
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kRounds; ++i) {
          work.fetch_add(1);
          worker.Wake();
          answers.acquire();  // so that the worker often runs out of work
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    stop = true;
    worker.Wake();
    EXPECT_TRUE(worker.Join().ok());
    EXPECT_EQ(done, kThreads * kRounds);
  }
}

TEST(StdToolboxStress, EveryTimerFiresOrIsCancelledAndNeverBoth) {
  constexpr int kThreads = 4;
  constexpr int kTimers = 2000;
  Sleeper::Signs signs[2];
  auto toolbox = StdToolbox::Make({.timer_resolution = absl::Microseconds(100), .seed = 1}).value();
  std::vector<WorkerHandle> workers;
  for (Sleeper::Signs& sign : signs)
    workers.push_back(toolbox->StartWorker({}, std::make_unique<Sleeper>(sign)).value());
  std::vector<std::atomic<int>> fired(kThreads * kTimers);
  Tally all_fired;
  std::atomic<int> cancelled = 0;
  std::atomic<int> early = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random = toolbox->MakeRandom(static_cast<uint64_t>(t));
      std::vector<std::pair<TimerId, int>> ids;
      for (int i = 0; i < kTimers; ++i) {
        const int label = t * kTimers + i;
        const Instant deadline = toolbox->Now() + random.UniformDuration(absl::Milliseconds(-1), absl::Milliseconds(3));
        TimerId id = toolbox
                         ->ScheduleAt(deadline,
                                      [&, label, deadline] {
                                        if (toolbox->Now() < deadline) ++early;
                                        ++fired[label];
                                        all_fired.Add();
                                      })
                         .value();
        ids.emplace_back(id, label);
        if (random.Bernoulli(0.5)) {
          const auto& [victim, victim_label] = ids[random.Uniform(ids.size())];
          if (toolbox->CancelTimer(victim)) {
            ++cancelled;
            EXPECT_EQ(fired[victim_label].fetch_add(1000), 0);
          }
        }
        if (i % 16 == 0) workers[random.Uniform(2)].Wake();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  all_fired.WaitFor(kThreads * kTimers - cancelled);
  EXPECT_EQ(all_fired.count(), kThreads * kTimers - cancelled);
  EXPECT_EQ(early, 0);
  EXPECT_GT(cancelled, 0);
  for (std::atomic<int>& n : fired) EXPECT_TRUE(n == 1 || n == 1000) << n;
}

TEST(StdToolbox, KnowsHowManyThreadsTheMachineRuns) {
  EXPECT_EQ(StdToolbox::HardwareThreads(), std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(StdToolboxStress, WorkersComeAndGoWhileTimersFire) {
  constexpr int kRounds = 200;
  auto toolbox = StdToolbox::Make({.timer_resolution = absl::Microseconds(50)}).value();
  Tally fired;
  for (int i = 0; i < kRounds; ++i) {
    Sleeper::Signs signs;
    WorkerHandle worker = toolbox->StartWorker({}, std::make_unique<Sleeper>(signs)).value();
    toolbox->ScheduleAfter(absl::Microseconds(100 * (i % 7)), [&] { fired.Add(); }).value();
    if (i % 3 == 0) signs.parking.WaitFor(1);
    if (i % 5 == 0) fired.WaitFor(i + 1);
    signs.stop = true;
    worker.Wake();
    ASSERT_TRUE(worker.Join().ok());
  }
  fired.WaitFor(kRounds);
}

}  // namespace
}  // namespace fraktor
