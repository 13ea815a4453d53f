// The stores on RocksDB under many seeds, with crashes, faults of the disk and two owners of each
// id.
//
// FRAKTOR_SIM_SEED runs one seed alone; FRAKTOR_SIM_FIRST_SEED and FRAKTOR_SIM_SEEDS choose a
// range. FRAKTOR_SIM_CRASH, with a seed, crashes at that point alone. FRAKTOR_SIM_LINES says how
// many of the last lines a failing seed prints.
#include "fraktor/persistence/testing/simulation/store_simulation.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 5;
constexpr uint64_t kEnumeratedSeeds = 1;
constexpr uint64_t kRepeatedSeeds = 2;
#else
constexpr uint64_t kSeeds = 20;
constexpr uint64_t kEnumeratedSeeds = 1;
constexpr uint64_t kRepeatedSeeds = 3;
#endif

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : fallback;
}

struct Seeds {
  uint64_t first = 0;
  uint64_t count = 0;
};
Seeds SeedsOf(uint64_t fallback) {
  if (const uint64_t seed = FromEnvironment("FRAKTOR_SIM_SEED", 0); seed != 0) return {seed, 1};
  return {FromEnvironment("FRAKTOR_SIM_FIRST_SEED", 1), FromEnvironment("FRAKTOR_SIM_SEEDS", fallback)};
}

std::string RepeatLine(const std::string& variables) {
  const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat("repeat: ", variables,
                      " bazel-bin/persistence/testing/simulation/store_simulation_test --gtest_filter=",
                      info.test_suite_name(), ".", info.name());
}

// A failing seed says what was wrong, what happened around it, and how to repeat it.
void Check(const StoreSimulation& simulation, const std::string& variables) {
  EXPECT_FALSE(simulation.log().has_violations())
      << simulation.log().Report(FromEnvironment("FRAKTOR_SIM_LINES", 60)) << simulation.Summary() << "\n"
      << RepeatLine(variables);
}

TEST(StoreSimulation, KeepsWhatItHasAcknowledged) {
  const Seeds seeds = SeedsOf(kSeeds);
  uint64_t acknowledged = 0;
  uint64_t crashes = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count && !HasFailure(); ++seed) {
    StoreSimulation simulation(StoreSimulationOptions::Draw(seed));
    simulation.Run();
    Check(simulation, absl::StrCat("FRAKTOR_SIM_SEED=", seed));
    acknowledged += simulation.acknowledged();
    crashes += simulation.crashes();
    if (seeds.count == 1) std::cout << simulation.Summary() << "\n";
  }
  std::cout << seeds.count << " seeds: " << acknowledged << " acknowledged, " << crashes << " crashes\n";
  // One seed alone may crash before anything is.
  EXPECT_TRUE(acknowledged > 0 || seeds.count == 1);
}

// Short scenarios, which crash at each point of the disk in turn.
TEST(StoreSimulation, SurvivesACrashAtEachPoint) {
  const Seeds seeds = SeedsOf(kEnumeratedSeeds);
  const uint64_t only = FromEnvironment("FRAKTOR_SIM_CRASH", 0);
  for (uint64_t seed = seeds.first; seed < seeds.first + std::min(seeds.count, kEnumeratedSeeds) && !HasFailure();
       ++seed) {
    StoreSimulationOptions options{.seed = seed, .ids = 3, .rounds = 3, .requests = 12, .has_faults = false};
    StoreSimulation whole(options);
    whole.Run();
    Check(whole, absl::StrCat("FRAKTOR_SIM_SEED=", seed));
    const uint64_t points = whole.points();
    EXPECT_GT(points, 20u);
    for (uint64_t at = only != 0 ? only : 1; at <= (only != 0 ? only : points) && !HasFailure(); ++at) {
      options.crash_at = at;
      StoreSimulation simulation(options);
      simulation.Run();
      Check(simulation, absl::StrCat("FRAKTOR_SIM_SEED=", seed, " FRAKTOR_SIM_CRASH=", at));
      EXPECT_EQ(simulation.crashes(), 1u) << "at point " << at << " of " << points;
    }
  }
}

// A failing seed can be repeated: the same seed does the same.
TEST(StoreSimulation, RepeatsASeed) {
  const Seeds seeds = SeedsOf(kRepeatedSeeds);
  for (uint64_t seed = seeds.first; seed < seeds.first + std::min(seeds.count, kRepeatedSeeds); ++seed) {
    StoreSimulation first(StoreSimulationOptions::Draw(seed));
    StoreSimulation second(StoreSimulationOptions::Draw(seed));
    first.Run();
    second.Run();
    EXPECT_EQ(first.log().digest(), second.log().digest())
        << "seed " << seed << ": " << first.Summary() << "; " << second.Summary() << "\n"
        << first.log().FirstDifference(second.log());
  }
}

}  // namespace
}  // namespace fraktor
