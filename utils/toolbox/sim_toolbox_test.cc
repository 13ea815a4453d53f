#include "fraktor/utils/toolbox/sim_toolbox.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/sim_trace.h"
#include "fraktor/utils/toolbox/toolbox_under_test.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {
namespace {

using Progress = ToolboxWorker::Progress;

// A small program with everything in it: workers that wake each other at random, one-shot and
// periodic timers, some cancelled, and records of its own.
uint64_t RunAWorld(uint64_t seed) {
  auto toolbox = SimToolbox::Make({.seed = seed}).value();
  Random random = toolbox->MakeRandom(TraceKind("world"));
  std::vector<WorkerHandle> workers;
  std::vector<std::unique_ptr<int>> ballast;  // makes addresses differ between runs
  std::vector<int> work(4, 0);
  TimerId last;
  auto give = [&](size_t to) {
    ++work[to];
    workers[to].Wake();
  };
  auto run_some = [&](size_t me) {
    if (work[me] == 0) return Progress::kIdle;
    --work[me];
    toolbox->trace().Record(TraceKind("worked"), me, static_cast<uint64_t>(work[me]));
    ballast.push_back(std::make_unique<int>(0));
    if (random.Bernoulli(0.4)) give(random.Uniform(work.size()));
    if (random.Bernoulli(0.2)) toolbox->CancelTimer(last);
    if (random.Bernoulli(0.3)) {
      const absl::Duration delay = random.UniformDuration(absl::ZeroDuration(), absl::Milliseconds(2));
      last = toolbox->ScheduleAfter(delay, [&give, me] { give(me); }).value();
    }
    return Progress::kBusy;
  };
  for (size_t i = 0; i < work.size(); ++i) {
    workers.push_back(toolbox->StartWorker({}, MakeWorker([&run_some, i] { return run_some(i); })).value());
  }
  toolbox->SchedulePeriodic({.period = absl::Milliseconds(1)}, [&] { give(toolbox->Choose(work.size())); }).value();
  absl::Status ran = toolbox->RunFor(absl::Milliseconds(200));
  EXPECT_TRUE(ran.ok()) << ran;
  EXPECT_GT(toolbox->steps(), 400u);
  return toolbox->trace().hash();
}

TEST(SimToolbox, TheSameSeedGivesTheSameTrace) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const uint64_t hash = RunAWorld(seed);
    EXPECT_EQ(RunAWorld(seed), hash) << "seed " << seed;
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 20u);
}

// The test below starts this one in another process.
TEST(SimToolbox, DISABLED_WritesItsTraceToAFile) {
  const char* path = std::getenv("FRAKTOR_TRACE_FILE");
  ASSERT_NE(path, nullptr);
  std::ofstream out(path);
  for (uint64_t seed = 1; seed <= 5; ++seed) out << RunAWorld(seed) << "\n";
}

TEST(SimToolbox, TheSameSeedGivesTheSameTraceInAnotherProcess) {
  for (int child = 0; child < 2; ++child) {
    const std::string path = testing::TempDir() + "/trace_" + std::to_string(getpid()) + "_" + std::to_string(child);
    const std::string file = "FRAKTOR_TRACE_FILE=" + path;
    // Another environment moves the stack, and address space layout randomization moves the rest.
    const std::string padding = "PADDING=" + std::string(1000 * (child + 1), 'x');
    std::string executable(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", executable.data(), executable.size());
    ASSERT_GT(length, 0);
    executable.resize(static_cast<size_t>(length));
    std::vector<std::string> words = {executable, "--gtest_also_run_disabled_tests",
                                      "--gtest_filter=SimToolbox.DISABLED_WritesItsTraceToAFile"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<std::string> settings = {file, padding};
    std::vector<char*> environment;
    for (std::string& setting : settings) environment.push_back(setting.data());
    environment.push_back(nullptr);
    pid_t pid = 0;
    ASSERT_EQ(posix_spawn(&pid, executable.c_str(), nullptr, nullptr, arguments.data(), environment.data()), 0);
    int ended = 0;
    ASSERT_EQ(waitpid(pid, &ended, 0), pid);
    ASSERT_EQ(ended, 0);
    std::ifstream in(path);
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      uint64_t hash = 0;
      ASSERT_TRUE(in >> hash);
      EXPECT_EQ(hash, RunAWorld(seed)) << "seed " << seed;
    }
    std::remove(path.c_str());
  }
}

TEST(SimToolbox, SeedsTryEveryOrder) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    auto toolbox = SimToolbox::Make({.seed = seed}).value();
    std::string order;
    for (char name : {'a', 'b', 'c'}) {
      toolbox
          ->StartWorker({}, MakeWorker([&order, name] {
                          order.push_back(name);
                          return Progress::kDone;
                        }))
          .value();
    }
    toolbox->ScheduleAfter(absl::ZeroDuration(), [&] { order.push_back('t'); }).value();
    ASSERT_TRUE(toolbox->RunUntilIdle().ok());
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 24u);
}

TEST(SimToolbox, TimersOfOneInstantKeepTheirOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    auto toolbox = SimToolbox::Make({.seed = seed}).value();
    std::string order;
    for (char name : {'a', 'b', 'c', 'd'}) {
      toolbox->ScheduleAfter(absl::Seconds(1), [&order, name] { order.push_back(name); }).value();
    }
    ASSERT_TRUE(toolbox->RunFor(absl::Seconds(1)).ok());
    EXPECT_EQ(order, "abcd");
  }
}

TEST(SimToolbox, TheTraceTellsEventsApart) {
  auto hash = [](uint64_t kind, uint64_t a, uint64_t b, absl::Duration at) {
    auto toolbox = SimToolbox::Make({}).value();
    EXPECT_TRUE(toolbox->RunFor(at).ok());
    toolbox->trace().Record(kind, a, b);
    return toolbox->trace().hash();
  };
  const std::set<uint64_t> hashes = {
      hash(1, 2, 3, absl::ZeroDuration()), hash(1, 3, 2, absl::ZeroDuration()), hash(2, 2, 3, absl::ZeroDuration()),
      hash(1, 2, 3, absl::Nanoseconds(1)), hash(1, 0, 0, absl::ZeroDuration()), hash(0, 0, 0, absl::ZeroDuration()),
  };
  EXPECT_EQ(hashes.size(), 6u);
  EXPECT_EQ(hash(1, 2, 3, absl::Seconds(1)), hash(1, 2, 3, absl::Seconds(1)));
}

TEST(SimToolbox, TheTraceIsTheSameOnEveryMachine) {
  // If this number changes, recorded seeds do not replay their runs any more: update the places
  // that keep them.
  auto toolbox = SimToolbox::Make({.seed = 17}).value();
  toolbox->trace().Record(TraceKind("message"), 1, 2, 3);
  EXPECT_EQ(TraceKind("message"), 0x546401b5d2a8d2a4u);
  EXPECT_EQ(toolbox->Choose(1000), 998u);
  EXPECT_EQ(toolbox->trace().hash(), 1507933535396871515u);
}

TEST(SimToolbox, TheTailNamesTheLastEvents) {
  auto toolbox = SimToolbox::Make({}).value();
  for (uint64_t i = 1; i <= 40; ++i) toolbox->trace().Record(7, i);
  const std::string tail = toolbox->trace().Tail();
  EXPECT_NE(tail.find("#40 at 0ns kind 0000000000000007: 40 0 0\n"), std::string::npos) << tail;
  EXPECT_EQ(tail.find("#8 "), std::string::npos) << tail;
  EXPECT_NE(tail.find("#9 "), std::string::npos) << tail;
  toolbox->trace().DescribeKind(
      "sale", [](uint64_t a, uint64_t b, uint64_t) { return std::to_string(a) + " of " + std::to_string(b); });
  toolbox->trace().Record(TraceKind("sale"), 2, 3);
  EXPECT_TRUE(toolbox->trace().Tail().ends_with("#41 at 0ns sale: 2 of 3\n")) << toolbox->trace().Tail();
}

TEST(SimToolbox, TheTraceFindsTheFirstEventInWhichTwoRunsDiffer) {
  const auto run = [](SimToolbox& toolbox, uint64_t third) {
    toolbox.trace().NameKind("message");
    for (const uint64_t i : {uint64_t{1}, uint64_t{2}, third, uint64_t{4}}) {
      toolbox.trace().Record(TraceKind("message"), i);
    }
  };
  auto first = SimToolbox::Make({}).value();
  first->trace().KeepHistory(100);
  run(*first, 3);
  EXPECT_EQ(first->trace().history().size(), 4u);
  auto same = SimToolbox::Make({}).value();
  same->trace().CompareWith(first->trace().history());
  run(*same, 3);
  EXPECT_EQ(same->trace().difference(), "");
  auto other = SimToolbox::Make({}).value();
  other->trace().CompareWith(first->trace().history());
  run(*other, 7);
  EXPECT_TRUE(other->trace().difference().ends_with("#2 at 0ns message: 2 0 0\n#3 at 0ns message: 7 0 0\n"))
      << other->trace().difference();
}

TEST(SimToolbox, ALivelockIsAnErrorThatNamesTheSeedAndPrintsHowToReplayIt) {
  auto toolbox = SimToolbox::Make({.name = "loop", .seed = 4711, .max_steps = 500}).value();
  toolbox->StartWorker({}, MakeWorker([] { return Progress::kBusy; })).value();
  testing::internal::CaptureStderr();
  absl::Status ran = toolbox->RunFor(absl::Seconds(1));
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(ran.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(ran.message()).find("seed 4711"), std::string::npos) << ran;
  EXPECT_NE(printed.find("FRAKTOR_SIM_SEED=4711 replays \"loop\": 500 steps, 0, "), std::string::npos) << printed;
  EXPECT_EQ(printed, toolbox->ReplayLine() + "\n");
}

TEST(SimToolbox, TakesItsSeedFromTheEnvironment) {
  unsetenv("FRAKTOR_SIM_SEED");
  EXPECT_EQ(SimToolbox::SeedFromEnvironment(5).value(), 5u);
  setenv("FRAKTOR_SIM_SEED", "18446744073709551615", 1);
  EXPECT_EQ(SimToolbox::SeedFromEnvironment(5).value(), ~uint64_t{0});
  setenv("FRAKTOR_SIM_SEED", "many", 1);
  EXPECT_EQ(SimToolbox::SeedFromEnvironment(5).status().message(),
            "environment variable FRAKTOR_SIM_SEED is \"many\"; use a number from 0 to 2^64 - 1");
  unsetenv("FRAKTOR_SIM_SEED");
}

TEST(SimToolbox, ChooseIsFairAndNeedsNoDrawWithoutAChoice) {
  auto toolbox = SimToolbox::Make({}).value();
  const uint64_t before = toolbox->trace().events();
  EXPECT_EQ(toolbox->Choose(0), 0u);
  EXPECT_EQ(toolbox->Choose(1), 0u);
  EXPECT_EQ(toolbox->trace().events(), before);
  std::vector<int> hits(3);
  for (int i = 0; i < 3000; ++i) ++hits[toolbox->Choose(3)];
  for (int n : hits) EXPECT_NEAR(n, 1000, 200);
  EXPECT_EQ(toolbox->trace().events(), before + 3000);
}

TEST(SimToolboxDeathTest, EndsWhenAnotherThreadTakesPart) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto toolbox = SimToolbox::Make({}).value();
        WorkerHandle worker = toolbox->StartWorker({}, MakeWorker([] { return Progress::kIdle; })).value();
        toolbox->RunUntilIdle().IgnoreError();
        std::thread([&] { worker.Wake(); }).join();
      },
      "worker 0 of simulation \"simulation\" is woken by another thread");
}

}  // namespace
}  // namespace fraktor
