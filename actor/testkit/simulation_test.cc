#include "fraktor/actor/testkit/simulation.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/termination_hook.h"

extern char** environ;

namespace fraktor {
namespace {

struct Work {
  using Reply = std::string;
  int number;
};
struct Dismiss {};

// Waits, fails from time to time, and asks its neighbour.
class Clerk : public Actor<Clerk, Work, int, std::string> {
 public:
  explicit Clerk(ActorRef out) : out_(out) {}

  Task<std::string> On(Context& context, Work work) {
    auto pause = context.Delay(absl::Milliseconds(work.number % 7));
    co_await pause;
    if (work.number % 5 == 0) co_return absl::UnavailableError("busy");
    co_return absl::StrCat("done ", work.number);
  }
  absl::Status On(Context& context, const int& number) {
    context.Tell(out_, number);
    return number % 4 == 0 ? absl::InternalError("four") : absl::OkStatus();
  }
  void On(Context& context, const std::string& text) { context.Tell(out_, text); }

 private:
  ActorRef out_;
};

// Has clerks, watches them, and gives them work.
class Office : public Actor<Office, Work, Dismiss> {
 public:
  explicit Office(ActorRef out) : out_(out) {}

  static const SupervisorStrategy& Supervision() {
    static const SupervisorStrategy strategy({.backoff = {.min = absl::Milliseconds(3), .max = absl::Seconds(1)}});
    return strategy;
  }

  absl::Status PreStart(Context& context) {
    for (int i = 0; i < 4; ++i) {
      clerks_.push_back(context.Spawn<Clerk>(i % 2 == 0 ? absl::StrCat("clerk-", i) : "", out_));
      if (absl::Status watched = context.Watch(clerks_.back()); !watched.ok()) return watched;
    }
    return absl::OkStatus();
  }
  InterleavingTask<std::string> On(Context& context, Work work) {
    const auto& clerk = clerks_[static_cast<size_t>(work.number) % clerks_.size()];
    context.Tell(clerk, work.number);
    auto asking = context.Ask(clerk, Work{work.number}, absl::Milliseconds(4));
    auto done = co_await asking;
    context.Tell(out_, done.ok() ? *done : std::string(absl::StatusCodeToString(done.status().code())));
    if (!done.ok()) co_return done.status();
    co_return *std::move(done);
  }
  void On(Context& context, const Dismiss&) {
    context.Stop(clerks_.back());
    clerks_.pop_back();
  }
  void On(Context& context, const Terminated&) { context.Tell(out_, std::string("a clerk has gone")); }

 private:
  ActorRef out_;
  std::vector<RefOf<Clerk>> clerks_;
};

struct Watchlist {
  std::vector<ActorRef> actors;
};

// Watches others until it ends.
class Watcher : public Actor<Watcher, Watchlist> {
 public:
  absl::Status On(Context& context, const Watchlist& list) {
    for (const ActorRef actor : list.actors) {
      if (absl::Status watched = context.Watch(actor); !watched.ok()) return watched;
    }
    return absl::OkStatus();
  }
  void On(Context&, const Terminated&) {}
};

// Must be asked before the system ends.
class Hook : public Actor<Hook, TerminationHook> {
 public:
  void PreStart(Context& context) { context.Tell(context.system().system_guardian(), RegisterTerminationHook{}); }
  TerminationHookDone On(Context&, const TerminationHook&) { return {}; }
};

// All features at once: asks, timers, failures, delayed restarts, watchers, names. Returns the
// results in order.
std::string RunOffice(Simulation& sim) {
  sim.TracePayload<int>();
  sim.TracePayload<std::string>();
  sim.TracePayload<Work>([](const Work& work) { return static_cast<uint64_t>(work.number); });
  auto probe = sim.Probe();
  auto office = sim.SpawnNamed<Office>("office", probe.ref());
  // The order of an operation on all members of a set must not depend on addresses.
  auto watcher = sim.Spawn<Watcher>();
  Watchlist list;
  for (int i = 0; i < 8; ++i) {
    list.actors.push_back(sim.Spawn<Clerk>(probe.ref()).untyped());
    EXPECT_TRUE(sim.system().TrySpawnSystemActor(TypedPropsOf<Hook>()).ok());
  }
  watcher.Tell(list);
  Random random = sim.MakeRandom("work");
  for (int i = 0; i < 30; ++i) {
    office.Tell(Work{static_cast<int>(random.UniformIn(1, 20))});
    if (i == 15 || i == 20) office.Tell(Dismiss{});
    if (i == 18) sim.system().Stop(watcher);
    if (sim.Happens("a pause", 0.3)) sim.Advance(absl::Milliseconds(random.UniformIn(0, 9)));
  }
  sim.Advance(absl::Seconds(10));
  EXPECT_EQ(sim.AskAndWait(office, Work{1}).value_or("nothing"), "done 1");
  std::string out;
  for (size_t left = probe.pending(); left > 0; --left) {
    const EnvelopePtr message = probe.Receive();
    absl::StrAppend(&out, message->Is<int>() ? absl::StrCat(message->As<int>()) : message->As<std::string>(), ";");
  }
  return out;
}

TEST(Simulation, GivesTheSameTraceForTheSameSeedAndOthersForOthers) {
  std::set<uint64_t> hashes;
  std::set<std::string> outputs;
  const SimulateReport report = Simulate({.seeds = 30}, [&](Simulation& sim) { outputs.insert(RunOffice(sim)); });
  EXPECT_TRUE(report.ok);
  hashes.insert(report.hashes.begin(), report.hashes.end());
  EXPECT_EQ(hashes.size(), report.hashes.size());
  EXPECT_EQ(outputs.size(), report.hashes.size());
}

TEST(Simulation, RunsTheFirstSeedAndEachSoManythTwice) {
  std::vector<uint64_t> seeds;
  const SimulateReport report = Simulate({.seeds = 40, .first_seed = 3, .twice_every = 20},
                                         [&](Simulation& sim) { seeds.push_back(sim.seed()); });
  EXPECT_TRUE(report.ok);
  std::vector<uint64_t> expected;
  for (uint64_t seed = 3; seed < 3 + report.hashes.size(); ++seed) {
    expected.insert(expected.end(), seed == 3 || seed == 20 || seed == 40 ? 2 : 1, seed);
  }
  EXPECT_EQ(seeds, expected);
}

TEST(Simulation, RefusesToRunNothing) {
  int runs = 0;
  for (const int seeds : {0, -4}) {
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      EXPECT_THROW(Simulate({.seeds = seeds}, [&](Simulation&) { ++runs; }), testing::AssertionException);
    }
    ASSERT_EQ(results.size(), 1);
    EXPECT_NE(std::string(results.GetTestPartResult(0).message())
                  .find(absl::StrCat("SimulateOptions.seeds is ", seeds, "; it must be at least 1")),
              std::string::npos);
  }
  EXPECT_EQ(runs, 0);
}

struct Spin {};
class Spinner : public Actor<Spinner, Spin> {
 public:
  void On(Context& context, const Spin& spin) { context.Tell(context.self(), spin); }
};

TEST(Simulation, SaysWhoNeverComesToRestInWhicheverSystem) {
  for (const auto& [in_other, by_other] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
      SimulationOptions options{.max_steps = 1000};
      options.kit.must_end = false;
      Simulation sim(options);
      TestKitOptions other;
      other.system.config.system_name = "other";
      other.must_end = false;
      TestKit& there = sim.AddSystem(other);
      (in_other ? there : sim).SpawnNamed<Spinner>("spinner").Tell(Spin{});
      EXPECT_THROW((by_other ? there : sim).Settle(), testing::AssertionException);
    }
    ASSERT_GE(results.size(), 1);
    const std::string text = results.GetTestPartResult(0).message();
    EXPECT_NE(text.find("has not come to rest after 1000 steps"), std::string::npos) << text;
    EXPECT_NE(text.find(absl::StrCat("these actors have work:\n    pekko://", in_other ? "other" : "default",
                                     "/user/spinner\n  check whether")),
              std::string::npos)
        << text;
  }
}

TEST(Simulation, TriesDifferentOrdersOfTheSameEvents) {
  // Two actors get messages at the same time: the seed chooses which runs first.
  int first_wins = 0;
  constexpr int kSeeds = 40;
  SimulateOptions options{.seeds = kSeeds, .twice = false};
  const SimulateReport report = Simulate(options, [&](Simulation& sim) {
    auto probe = sim.Probe();
    auto one = sim.Spawn<Clerk>(probe.ref());
    auto two = sim.Spawn<Clerk>(probe.ref());
    one.Tell(1);
    two.Tell(2);
    if (probe.Expect<int>() == 1) ++first_wins;
    probe.Expect<int>();
  });
  EXPECT_GT(first_wins, 0);
  EXPECT_LT(first_wins, static_cast<int>(report.hashes.size()));
}

TEST(Simulation, HasPayloadsInItsTraceIfItIsToldTo) {
  const auto hash = [](int payload, bool traced) {
    Simulation sim({.seed = 3});
    if (traced) sim.TracePayload<int>();
    auto probe = sim.Probe();
    Tell(probe.ref(), payload);
    sim.Settle();
    sim.Finish();
    return sim.trace().hash();
  };
  EXPECT_EQ(hash(1, false), hash(2, false));
  EXPECT_NE(hash(1, true), hash(2, true));
  EXPECT_EQ(hash(1, true), hash(1, true));
}

TEST(Simulation, NamesActorsByTheOrderOfTheirSpawning) {
  Simulation sim({});
  const uint64_t before = sim.actors().spawned();
  auto probe = sim.Probe();
  auto clerk = sim.Spawn<Clerk>(probe.ref());
  EXPECT_EQ(sim.actors().OrdinalOf(probe.ref()), before + 1);
  EXPECT_EQ(sim.actors().OrdinalOf(clerk.untyped()), before + 2);
  EXPECT_EQ(sim.actors().OrdinalOf(ActorRef()), 0u);
  EXPECT_EQ(sim.actors().OrdinalOf(sim.system().root_guardian()), 1u);
}

class Disk final : public SimulationPart {
 public:
  explicit Disk(Simulation& sim) : sim_(sim) {}
  bool Write() { return !sim_.Happens("disk.lost", 0.5); }
  std::string Describe() const override { return "the disk has 7 blocks"; }

 private:
  Simulation& sim_;
};

TEST(Simulation, HasPartsWithFaultsOfTheirOwn) {
  std::set<std::string> patterns;
  Simulate({.seeds = 20}, [&](Simulation& sim) {
    Disk& disk = sim.AddPart<Disk>(sim);
    std::string pattern;
    for (int i = 0; i < 16; ++i) pattern += disk.Write() ? '1' : '0';
    patterns.insert(pattern);
    const std::string text = sim.Surroundings();
    const auto lost = std::count(pattern.begin(), pattern.end(), '0');
    EXPECT_NE(text.find(absl::StrCat("disk.lost happened ", lost, " of 16 times")), std::string::npos) << text;
    EXPECT_NE(text.find("the disk has 7 blocks"), std::string::npos) << text;
    EXPECT_FALSE(sim.Happens("never", 0));
    EXPECT_TRUE(sim.Happens("always", 1));
  });
  EXPECT_GT(patterns.size(), 1u);
}

TEST(Simulation, HasSeveralSystems) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    TestKitOptions options;
    options.system.config.system_name = "other";
    TestKit& other = sim.AddSystem(options);
    auto here = sim.Probe();
    auto there = other.Probe();
    auto clerk = other.Spawn<Clerk>(here.ref());
    here.Send(clerk, 3);
    EXPECT_EQ(here.Expect<int>(), 3);
    there.Send(here.ref(), 4);
    EXPECT_EQ(here.Expect<int>(), 4);
    EXPECT_EQ(here.LastSender(), there.ref());
    EXPECT_EQ(other.system().PathOf(there.ref()), "pekko://other/system/probe-1");
  });
}

TEST(Simulation, AsksAndTimersTakeVirtualTime) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    auto clerk = sim.Spawn<Clerk>(ActorRef());
    for (int number = 1; number <= 13; ++number) {
      const absl::Duration before = sim.Elapsed();
      const absl::StatusOr<std::string> done = sim.AskAndWait(clerk, Work{number});
      EXPECT_EQ(done.ok(), number % 5 != 0);
      EXPECT_EQ(sim.Elapsed() - before, absl::Milliseconds(number % 7));
    }
    auto silent = sim.Probe();
    const absl::Duration before = sim.Elapsed();
    const absl::StatusOr<std::string> late = sim.AskAndWait<std::string>(silent.ref(), Work{1});
    EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(sim.Elapsed() - before, sim.options().patience);
  });
}

// The same program in another process, where everything is at another address.

constexpr char kChildVariable[] = "FRAKTOR_SIMULATION_TEST_CHILD";

std::string TemporaryFile(const char* name) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  return absl::StrCat(folder == nullptr ? "/tmp" : folder, "/", name, ".", getpid());
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Runs one test of this program, with its output in a file. Returns its exit status.
int RunAnotherProcess(const std::string& filter, const std::vector<std::string>& variables, const std::string& output) {
  std::vector<std::string> environment = variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    // Shards and filters are for this process.
    const std::string text = *variable;
    if (text.starts_with("TEST_") || text.starts_with("GTEST_") || text.starts_with("FRAKTOR_SIM")) continue;
    environment.push_back(text);
  }
  std::vector<char*> environment_pointers;
  for (std::string& variable : environment) environment_pointers.push_back(variable.data());
  environment_pointers.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string argument = absl::StrCat("--gtest_filter=", filter);
  char* arguments[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environment_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

SimulateReport SimulateOffice() {
  return Simulate({.seeds = 20, .twice = false}, [](Simulation& sim) { RunOffice(sim); });
}

// Only for the process that the next test starts.
TEST(SimulationChild, WritesItsHashes) {
  const char* const path = std::getenv(kChildVariable);
  if (path == nullptr) return;
  // Other actors come first, so that slots and nodes are reused ones.
  {
    Simulation sim({.seed = 99});
    RunOffice(sim);
  }
  std::ofstream file(path);
  for (const uint64_t hash : SimulateOffice().hashes) file << hash << "\n";
}

TEST(Simulation, GivesTheSameTraceInAnotherProcess) {
  std::string here;
  for (const uint64_t hash : SimulateOffice().hashes) absl::StrAppend(&here, hash, "\n");
  const std::string path = TemporaryFile("hashes");
  const std::string output = TemporaryFile("output");
  ASSERT_EQ(RunAnotherProcess("SimulationChild.WritesItsHashes", {absl::StrCat(kChildVariable, "=", path)}, output), 0)
      << ReadAll(output);
  EXPECT_EQ(ReadAll(path), here);
  EXPECT_GT(here.size(), 20u);
}

// Only for the processes that the next test starts: tests that fail.
TEST(SimulationChild, FailsForSomeSeeds) {
  if (std::getenv(kChildVariable) == nullptr) return;
  Simulate({.seeds = 100}, [](Simulation& sim) {
    auto probe = sim.Probe();
    auto one = sim.Spawn<Clerk>(probe.ref());
    auto two = sim.Spawn<Clerk>(probe.ref());
    one.Tell(1);
    two.Tell(2);
    std::printf("seed %d\n", static_cast<int>(sim.seed()));
    EXPECT_EQ(probe.Expect<int>(), 1);
  });
}
TEST(SimulationChild, DependsOnAnAddress) {
  if (std::getenv(kChildVariable) == nullptr) return;
  int runs = 0;
  Simulate({.seeds = 100}, [&](Simulation& sim) {
    auto probe = sim.Probe();
    // Depends on an address.
    Tell(probe.ref(), 1);
    if (++runs % 2 == 0) Tell(probe.ref(), std::string("x"));
    sim.Settle();
  });
}
TEST(SimulationChild, ThrowsInAScenario) {
  if (std::getenv(kChildVariable) == nullptr) return;
  Simulate({.seeds = 100}, [&](Simulation&) { throw std::runtime_error("lost"); });
}

TEST(Simulation, PrintsTheLineThatReplaysAFailure) {
  const std::string output = TemporaryFile("output");
  const std::string on = absl::StrCat(kChildVariable, "=1");
  EXPECT_EQ(RunAnotherProcess("SimulationChild.FailsForSomeSeeds", {on}, output), 1);
  std::string text = ReadAll(output);
  // The last seed is the one that failed, and the line names it.
  const size_t last = text.rfind("\nseed ");
  ASSERT_NE(last, std::string::npos) << text;
  const std::string seed = text.substr(last + 6, text.find('\n', last + 1) - last - 6);
  const std::string line = absl::StrCat("replay: FRAKTOR_SIM_SEED=", seed,
                                        " /proc/self/exe --gtest_filter=SimulationChild.FailsForSomeSeeds\n");
  EXPECT_NE(text.find(line), std::string::npos) << text;
  EXPECT_EQ(text.find("replay: "), text.rfind("replay: ")) << "once: " << text;
  // The line repeats that seed alone, which fails.
  EXPECT_EQ(
      RunAnotherProcess("SimulationChild.FailsForSomeSeeds", {on, absl::StrCat("FRAKTOR_SIM_SEED=", seed)}, output), 1);
  text = ReadAll(output);
  EXPECT_EQ(text.find("\nseed "), text.rfind("\nseed ")) << text;
  EXPECT_NE(text.find(absl::StrCat("\nseed ", seed, "\n")), std::string::npos) << text;
  // The variable sets another number of seeds than the test.
  EXPECT_EQ(RunAnotherProcess("SimulationChild.FailsForSomeSeeds", {on, "FRAKTOR_SIM_SEEDS=0"}, output), 0);
  EXPECT_EQ(RunAnotherProcess("SimulationChild.FailsForSomeSeeds", {on, "FRAKTOR_SIM_SEEDS=x"}, output), 1);
  EXPECT_NE(ReadAll(output).find("FRAKTOR_SIM_SEEDS is \"x\"; use a number"), std::string::npos);
  EXPECT_EQ(RunAnotherProcess("SimulationChild.DependsOnAnAddress", {on}, output), 1);
  text = ReadAll(output);
  EXPECT_NE(text.find("seed 1 is not repeatable: "), std::string::npos) << text;
  EXPECT_NE(text.find("message.received: int to actor "), std::string::npos) << text;
  EXPECT_NE(text.find("ProbeActor) from no one"), std::string::npos) << text;
  EXPECT_EQ(RunAnotherProcess("SimulationChild.ThrowsInAScenario", {on}, output), 1);
  EXPECT_NE(ReadAll(output).find("the scenario threw: lost"), std::string::npos);
}

}  // namespace
}  // namespace fraktor
