// A storm of all operations of actor systems: storm/storm.h has the operations and the invariants.
//
//   FRAKTOR_STORM_SEED=7 FRAKTOR_STORM_SECONDS=600 bazel run --config=tsan //actor/testkit:storm_test
//
// FRAKTOR_STORM_SEED     the seed; a failure prints the one that it had. The default is fixed.
// FRAKTOR_STORM_SECONDS  how long the storm lasts. The default is a fixed number of operations.
// FRAKTOR_STORM_ROUNDS   the number of rounds, if there is no time.
// FRAKTOR_STORM_SKIP     operations to leave out, with commas between their names: "become,ask
//                        oneself". Fewer operations make the cause of a failure easier to find.
// FRAKTOR_STORM_VERBOSE  1 prints a line for each round.
#include "fraktor/actor/testkit/storm/storm.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  uint64_t value = otherwise;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

TEST(Storm, BreaksNoInvariant) {
  storm::StormOptions options;
  // Sanitizers do not tell the size of the heap, so two rounds of each ending are enough.
  if (kIsSanitized) options.rounds = 2 * storm::kTrendWindow;
  options.seed = FromEnvironment("FRAKTOR_STORM_SEED", options.seed);
  options.rounds = static_cast<int>(FromEnvironment("FRAKTOR_STORM_ROUNDS", static_cast<uint64_t>(options.rounds)));
  options.time = absl::Seconds(static_cast<int64_t>(FromEnvironment("FRAKTOR_STORM_SECONDS", 0)));
  options.is_verbose = FromEnvironment("FRAKTOR_STORM_VERBOSE", 0) != 0;
  if (const char* const skipped = std::getenv("FRAKTOR_STORM_SKIP")) {
    options.skipped.clear();
    for (const absl::string_view name : absl::StrSplit(skipped, ',', absl::SkipEmpty())) {
      options.skipped.insert(std::string(name));
    }
  }
  const storm::StormReport report = storm::RunStorm(options);
  std::cout << report.rounds << " rounds, " << report.operations << " operations, " << report.messages
            << " messages, seed " << options.seed << "\n";
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
  EXPECT_GT(report.messages, 0);
}

}  // namespace
}  // namespace fraktor
