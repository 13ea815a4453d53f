#include "fraktor/examples/bank/latencies.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace bank {
namespace {

TEST(Latencies, FindsPercentilesWithinATwentieth) {
  Latencies latencies;
  for (int i = 1; i <= 1000; ++i) latencies.Add(absl::Milliseconds(i));
  EXPECT_GE(latencies.Percentile(0.5), absl::Milliseconds(500));
  EXPECT_LE(latencies.Percentile(0.5), absl::Milliseconds(526));
  EXPECT_GE(latencies.Percentile(0.99), absl::Milliseconds(990));
  EXPECT_LE(latencies.Percentile(0.99), absl::Milliseconds(1040));
}

TEST(Latencies, TakesWhatever) {
  Latencies latencies;
  EXPECT_EQ(latencies.Percentile(0.99), absl::ZeroDuration());
  latencies.Add(absl::ZeroDuration());
  latencies.Add(absl::Hours(1000));
  Latencies others;
  others.Add(absl::Milliseconds(1));
  latencies.Merge(others);
  EXPECT_EQ(latencies.count(), 3u);
  EXPECT_LT(latencies.Percentile(0.3), absl::Milliseconds(1));
  EXPECT_GT(latencies.Percentile(1), absl::Hours(1));
}

}  // namespace
}  // namespace bank
