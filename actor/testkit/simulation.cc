#include "fraktor/actor/testkit/simulation.h"

#include <errno.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::WorkerExecutorOptions;

namespace {

constexpr char kSeedVariable[] = "FRAKTOR_SIM_SEED";
constexpr char kSeedsVariable[] = "FRAKTOR_SIM_SEEDS";

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
#else
constexpr bool kIsSanitized = false;
#endif

// The line that repeats this test with one seed.
std::string ReplayLine(uint64_t seed) {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = test == nullptr ? std::string() : absl::StrCat(test->test_suite_name(), ".", test->name());
  if (const char* const target = std::getenv("TEST_TARGET")) {
    return absl::StrCat("bazel test --test_env=", kSeedVariable, "=", seed,
                        filter.empty() ? "" : absl::StrCat(" --test_filter=", filter), " ", target);
  }
  return absl::StrCat(kSeedVariable, "=", seed, " ", program_invocation_name,
                      filter.empty() ? "" : absl::StrCat(" --gtest_filter=", filter));
}

// The number of failed expectations of the running test.
int FailedExpectations() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return 0;
  int failed = 0;
  for (int i = 0; i < test->result()->total_part_count(); ++i) {
    if (test->result()->GetTestPartResult(i).failed()) ++failed;
  }
  return failed;
}

struct Seeds {
  uint64_t first;
  uint64_t count;
};

Seeds SeedsOf(const SimulateOptions& options, TestLocation at) {
  if (options.seeds < 1) {
    EndTest(at, absl::StrCat("SimulateOptions.seeds is ", options.seeds, "; it must be at least 1"));
  }
  const auto number = [at](const char* variable, uint64_t& value) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return false;
    if (!absl::SimpleAtoi(text, &value)) {
      EndTest(at, absl::StrCat("environment variable ", variable, " is \"", text, "\"; use a number"));
    }
    return true;
  };
  uint64_t value = 0;
  if (number(kSeedVariable, value)) return {value, 1};
  if (number(kSeedsVariable, value)) return {options.first_seed, value};
  const int seeds = kIsSanitized ? std::max(1, options.seeds / 10) : options.seeds;
  return {options.first_seed, static_cast<uint64_t>(seeds)};
}

// One run of one seed.
struct Run {
  bool failed = false;
  uint64_t hash = 0;
  uint64_t events = 0;
  std::vector<uint64_t> history;
  std::string difference;
};

Run RunOnce(const SimulationOptions& options, absl::FunctionRef<void(Simulation&)> scenario,
            const std::vector<uint64_t>* other, TestLocation at) {
  const int failed_before = FailedExpectations();
  Simulation sim(options);
  if (other != nullptr) {
    sim.trace().CompareWith(*other);
  } else {
    sim.trace().KeepHistory(options.history);
  }
  Run run;
  try {
    scenario(sim);
  } catch (const testing::AssertionException&) {
    run.failed = true;  // The failure was reported already.
  } catch (const std::exception& e) {
    run.failed = true;
    ReportFailure(at, absl::StrCat("the scenario threw: ", e.what(), sim.Surroundings()));
  }
  sim.Finish();
  run.failed = run.failed || FailedExpectations() > failed_before;
  run.hash = sim.trace().hash();
  run.events = sim.trace().events();
  run.history = sim.trace().history();
  run.difference = sim.trace().difference();
  return run;
}

}  // namespace

void Simulation::Trace(TestKitOptions& kit, const std::shared_ptr<ActorTrace>& actors) {
  DispatchersOptions& dispatchers = kit.system.scheduler.dispatchers;
  for (WorkerExecutorOptions* const pool : {&dispatchers.default_pool, &dispatchers.system_pool, &dispatchers.pinned}) {
    pool->middleware.insert(pool->middleware.begin(), actors);
    // Timers and other workers may run after each run.
    pool->runs_per_step = 1;
  }
  kit.system.tree_observer = actors.get();
}

Simulation::Beginning Simulation::Begin(const SimulationOptions& options) {
  Beginning beginning{.own = SimToolbox::Make({.seed = options.seed, .max_steps = options.max_steps}).value(),
                      .toolbox = nullptr,
                      .actors = nullptr,
                      .kit = options.kit};
  beginning.toolbox = beginning.own.get();
  beginning.actors = std::make_shared<ActorTrace>(beginning.toolbox->trace());
  Random random = beginning.toolbox->MakeRandom(TraceKind("simulation.shape"));
  constexpr int kBudgets[] = {1, 2, 5, 64};
  const int workers = static_cast<int>(random.UniformIn(1, 4));
  const int budget = kBudgets[random.Uniform(std::size(kBudgets))];
  beginning.kit.threads = 0;
  beginning.kit.system.workers = options.workers > 0 ? options.workers : workers;
  beginning.kit.system.scheduler.dispatchers.default_pool.budget = options.budget > 0 ? options.budget : budget;
  Trace(beginning.kit, beginning.actors);
  return beginning;
}

Simulation::Simulation(const SimulationOptions& options) : Simulation(Begin(options), nullptr) {}

Simulation::Simulation(Beginning beginning, std::nullptr_t)
    : TestKit(beginning.kit, std::move(beginning.own), beginning.toolbox),
      sim_toolbox_(beginning.toolbox),
      actors_(std::move(beginning.actors)) {}

Simulation::~Simulation() { Finish(); }

void Simulation::Finish() {
  for (auto other = others_.rbegin(); other != others_.rend(); ++other) other->reset();
  others_.clear();
  EndSystem();
}

TestKit& Simulation::AddSystem(TestKitOptions options) {
  // The constructor is protected, so that only this function makes a kit on a foreign toolbox.
  struct OtherKit final : TestKit {
    OtherKit(const TestKitOptions& its_options, const Simulation& its_simulation)
        : TestKit(its_options, nullptr, &its_simulation.toolbox()), simulation(its_simulation) {}
    std::vector<std::string> BusyActors() const override { return simulation.BusyActors(); }
    const Simulation& simulation;
  };
  options.threads = 0;
  if (options.system.workers == 0) options.system.workers = this->options().system.workers;
  Trace(options, actors_);
  others_.push_back(std::make_unique<OtherKit>(options, *this));
  return *others_.back();
}

bool Simulation::Happens(std::string_view fault, double probability) {
  auto found = faults_.find(fault);
  if (found == faults_.end()) {
    trace().NameKind(fault);
    found = faults_.emplace(std::string(fault), Fault(MakeRandom(fault))).first;
  }
  Fault& its = found->second;
  ++its.asked;
  if (!its.random.Bernoulli(probability)) return false;
  trace().Record(TraceKind(fault), its.asked, ++its.happened);
  return true;
}

std::string Simulation::Surroundings() const {
  std::string text = TestKit::Surroundings();
  for (const auto& [name, fault] : faults_) {
    absl::StrAppend(&text, "\n  ", name, " happened ", fault.happened, " of ", fault.asked, " times");
  }
  for (const std::unique_ptr<SimulationPart>& part : parts_) {
    if (const std::string described = part->Describe(); !described.empty()) absl::StrAppend(&text, "\n  ", described);
  }
  return text;
}

std::vector<std::string> Simulation::BusyActors() const {
  std::vector<std::string> busy = TestKit::BusyActors();
  for (const std::unique_ptr<TestKit>& other : others_) {
    const std::vector<std::string> its = other->TestKit::BusyActors();
    busy.insert(busy.end(), its.begin(), its.end());
  }
  return busy;
}

SimulateReport Simulate(const SimulateOptions& options, absl::FunctionRef<void(Simulation&)> scenario,
                        TestLocation at) {
  SimulateReport report;
  const Seeds seeds = SeedsOf(options, at);
  for (uint64_t i = 0; i < seeds.count; ++i) {
    SimulationOptions each = options.each;
    each.seed = seeds.first + i;
    const Run first = RunOnce(each, scenario, nullptr, at);
    report.ok = !first.failed;
    if (report.ok && options.twice && (i == 0 || each.seed % std::max<uint64_t>(1, options.twice_every) == 0)) {
      const Run second = RunOnce(each, scenario, &first.history, at);
      report.ok = !second.failed;
      if (first.hash != second.hash) {
        report.ok = false;
        ReportFailure(
            at, absl::StrFormat("seed %u is not repeatable: the trace 0x%016x of %u events in the first run, "
                                "0x%016x of %u in the second. The first that differs is the last of\n%s",
                                each.seed, first.hash, first.events, second.hash, second.events,
                                second.difference.empty() ? "(not among those that were kept)" : second.difference));
      }
    }
    if (!report.ok) {
      // Once, for any number of failures.
      ReportFailure(at, absl::StrCat("replay: ", ReplayLine(each.seed)));
      return report;
    }
    report.hashes.push_back(first.hash);
  }
  return report;
}

}  // namespace fraktor::inline v0
