#include "fraktor/remote/watch/failure_detector.h"

#include <cmath>

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/remote/watch/deadline_detector.h"
#include "fraktor/remote/watch/phi_accrual_detector.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

Instant At(int64_t ms) { return Instant() + absl::Milliseconds(ms); }

// R25: what the watcher asks.
TEST(PhiAccrual, HasTheValuesOfTheReference) {
  EXPECT_NEAR(PhiOf(500, 1000, 100), 0.0, 0.01);
  EXPECT_NEAR(PhiOf(1000, 1000, 100), 0.30, 0.01);
  EXPECT_NEAR(PhiOf(1100, 1000, 100), 0.80, 0.01);
  EXPECT_NEAR(PhiOf(1200, 1000, 100), 1.64, 0.01);
  EXPECT_NEAR(PhiOf(1400, 1000, 100), 4.74, 0.01);
  EXPECT_NEAR(PhiOf(1600, 1000, 100), 10.78, 0.01);
  EXPECT_NEAR(PhiOf(1700, 1000, 100), 15.37, 0.01);
  EXPECT_NEAR(PhiOf(10, 0, 1), 38, 1);
  EXPECT_NEAR(PhiOf(-25, 0, 1), 0, 1e-9);
  EXPECT_NEAR(CumulativeOf(6, 0, 10), 0.7257, 0.001);
}

TEST(PhiAccrual, KeepsMeanAndDeviationOfTheLastIntervals) {
  HeartbeatHistory history(20);
  for (const double interval : {100, 200, 125, 340, 130}) history.Add(interval);
  EXPECT_NEAR(history.mean(), 179, 1e-6);
  EXPECT_NEAR(history.variance(), 7584, 1e-6);
  HeartbeatHistory three(3);
  for (const double interval : {100, 110, 90}) three.Add(interval);
  EXPECT_NEAR(three.mean(), 100, 1e-6);
  EXPECT_NEAR(three.variance(), 66.67, 0.01);
  three.Add(140);
  EXPECT_NEAR(three.variance(), 422.22, 0.01);
  three.Add(80);
  EXPECT_NEAR(three.variance(), 688.89, 0.01);
  EXPECT_EQ(three.size(), 3u);
}

TEST(PhiAccrual, IsAvailableUntilTheSilenceIsTooLong) {
  PhiAccrualDetector detector({.threshold = 10, .acceptable_pause = absl::Seconds(3)});
  EXPECT_TRUE(detector.IsAvailable(At(1'000'000)));  // Nobody has listened yet.
  EXPECT_FALSE(detector.IsMonitoring());
  for (int i = 0; i < 10; ++i) detector.Heartbeat(At(i * 1000));
  EXPECT_TRUE(detector.IsMonitoring());
  EXPECT_TRUE(detector.IsAvailable(At(9'000 + 4'000)));
  EXPECT_FALSE(detector.IsAvailable(At(9'000 + 6'000)));
  detector.Heartbeat(At(30'000));
  EXPECT_TRUE(detector.IsAvailable(At(30'500)));
  // The long silence has not made it more patient.
  EXPECT_FALSE(detector.IsAvailable(At(30'000 + 6'000)));
}

TEST(PhiAccrual, BeginsWithWhatIsExpected) {
  PhiAccrualDetector detector({.first_interval = absl::Seconds(1)});
  detector.Heartbeat(At(0));
  EXPECT_NEAR(detector.history().mean(), 1000, 1e-6);
  EXPECT_NEAR(detector.history().deviation(), 250, 1e-6);
}

TEST(PhiAccrual, RefusesOptionsThatMakeNoSense) {
  EXPECT_TRUE(PhiAccrualOptions().Validate().ok());
  EXPECT_FALSE(PhiAccrualOptions{.threshold = 0}.Validate().ok());
  EXPECT_FALSE(PhiAccrualOptions{.max_samples = 0}.Validate().ok());
  EXPECT_FALSE(PhiAccrualOptions{.min_deviation = absl::ZeroDuration()}.Validate().ok());
  EXPECT_FALSE(PhiAccrualOptions{.acceptable_pause = absl::Seconds(-1)}.Validate().ok());
  EXPECT_FALSE(PhiAccrualOptions{.first_interval = absl::ZeroDuration()}.Validate().ok());
}

// R32
TEST(DeadlineDetector, IsAvailableForAPauseAndAnInterval) {
  DeadlineDetector detector({.acceptable_pause = absl::Seconds(3), .heartbeat_interval = absl::Seconds(1)});
  EXPECT_TRUE(detector.IsAvailable(At(100'000)));
  detector.Heartbeat(At(1000));
  EXPECT_TRUE(detector.IsAvailable(At(4'999)));
  EXPECT_FALSE(detector.IsAvailable(At(5'000)));
  detector.Heartbeat(At(6000));
  EXPECT_TRUE(detector.IsAvailable(At(6'001)));
}

}  // namespace
}  // namespace fraktor
