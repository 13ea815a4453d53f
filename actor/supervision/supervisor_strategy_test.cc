#include "fraktor/actor/supervision/supervisor_strategy.h"

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

// Returns how many restarts are allowed for failures at those seconds, up to the first refusal.
int Allowed(const SupervisorStrategyOptions& options, std::initializer_list<int64_t> seconds) {
  const SupervisorStrategy strategy(options);
  RestartStats stats;
  int allowed = 0;
  for (const int64_t at : seconds) {
    if (!strategy.AllowsRestart(stats, Instant() + absl::Seconds(at))) break;
    ++allowed;
  }
  return allowed;
}

// A26, A27, A28
TEST(SupervisorStrategy, CountsRestarts) {
  EXPECT_EQ(Allowed({.max_restarts = 0}, {0, 1}), 0);
  EXPECT_EQ(Allowed({.max_restarts = 2}, {0, 1'000'000'000, 2'000'000'000}), 2);
  EXPECT_EQ(Allowed({}, {0, 0, 0, 0, 0, 0}), 6);
}

// A27, A30
TEST(SupervisorStrategy, CountsRestartsInWindows) {
  // A window begins with a failure and includes its end.
  EXPECT_EQ(Allowed({.max_restarts = 2, .window = absl::Seconds(10)}, {0, 5, 10}), 2);
  EXPECT_EQ(Allowed({.max_restarts = 2, .window = absl::Seconds(10)}, {0, 5, 11, 12, 13}), 4);
  EXPECT_EQ(Allowed({.max_restarts = 0, .window = absl::Seconds(10)}, {0}), 0);
  EXPECT_EQ(Allowed({.window = absl::Seconds(10)}, {0, 5}), 1);
  EXPECT_EQ(Allowed({.window = absl::Seconds(10)}, {0, 11, 22}), 3);
  const int64_t day = 24 * 3600;
  EXPECT_EQ(Allowed({.max_restarts = 1, .window = absl::Hours(24 * 60)}, {0, 59 * day}), 1);
  EXPECT_EQ(Allowed({.max_restarts = 1, .window = absl::Hours(24 * 60)}, {0, 61 * day}), 2);
}

// A24
TEST(SupervisorStrategy, DecidesByTheCauseAndNotByTheKindOfTheError) {
  const auto decide = [](FailureCause cause, ActorErrorKind kind) {
    const absl::Status error = MakeError(absl::StatusCode::kInternal, kind, "it");
    return SupervisorStrategy::Default().Decide(Failure{.child = {}, .error = error, .cause = cause});
  };
  const auto last = static_cast<uint8_t>(ErrorKindTraits<ActorErrorKind>::kLast);
  for (uint8_t number = 0; number <= last; ++number) {
    const auto kind = static_cast<ActorErrorKind>(number);
    EXPECT_EQ(decide(FailureCause::kInitialization, kind), SupervisionDirective::kStop);
    EXPECT_EQ(decide(FailureCause::kKilled, kind), SupervisionDirective::kStop);
    EXPECT_EQ(decide(FailureCause::kDeathPact, kind), SupervisionDirective::kStop);
    EXPECT_EQ(decide(FailureCause::kThrown, kind), SupervisionDirective::kRestart);
    EXPECT_EQ(decide(FailureCause::kThrownUnknown, kind), SupervisionDirective::kEscalate);
    EXPECT_EQ(decide(FailureCause::kReturned, kind), SupervisionDirective::kRestart);
  }
}

TEST(SupervisorStrategy, WaitsLongerEachTimeUpToALimit) {
  const RestartBackoff backoff{.min = absl::Milliseconds(100), .max = absl::Seconds(1), .factor = 3};
  EXPECT_EQ(backoff.After(1), absl::Milliseconds(100));
  EXPECT_EQ(backoff.After(2), absl::Milliseconds(300));
  EXPECT_EQ(backoff.After(3), absl::Milliseconds(900));
  EXPECT_EQ(backoff.After(4), absl::Seconds(1));
  EXPECT_EQ(backoff.After(INT64_MAX), absl::Seconds(1));
  EXPECT_EQ(RestartBackoff().After(5), absl::ZeroDuration());
}

TEST(SupervisorStrategy, RefusesOptionsThatMakeNoSense) {
  const auto text = [](const SupervisorStrategyOptions& options) { return options.Validate().ToString(); };
  EXPECT_NE(text({.max_restarts = -2}).find("max_restarts is -2"), std::string::npos);
  EXPECT_NE(text({.window = absl::ZeroDuration()}).find("window is 0"), std::string::npos);
  EXPECT_NE(text({.backoff = {.min = absl::Seconds(2), .max = absl::Seconds(1)}}).find("from 2s to 1s"),
            std::string::npos);
  EXPECT_NE(text({.backoff = {.factor = 0.5}}).find("factor is 0.5"), std::string::npos);
  EXPECT_TRUE(SupervisorStrategyOptions().Validate().ok());
}

TEST(Failure, IsTransientWhereTryingAgainMayHelp) {
  const auto transient = [](const absl::Status& error) { return Failure{.child = {}, .error = error}.IsTransient(); };
  EXPECT_TRUE(transient(absl::UnavailableError("")));
  EXPECT_TRUE(transient(absl::DeadlineExceededError("")));
  EXPECT_FALSE(transient(absl::InternalError("")));
  EXPECT_FALSE(transient(absl::InvalidArgumentError("")));
}

}  // namespace
}  // namespace fraktor
