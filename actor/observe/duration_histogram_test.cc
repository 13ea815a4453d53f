#include "fraktor/actor/observe/duration_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

DurationTotals TotalsOf(const std::vector<int64_t>& values) {
  DurationHistogram histogram;
  for (const int64_t value : values) histogram.Record(value);
  DurationTotals totals;
  histogram.AddTo(totals);
  return totals;
}

TEST(DurationBuckets, AreClosedAboveAndLeaveNothingOut) {
  for (size_t i = 0; i + 1 < DurationBuckets::kCount; ++i) {
    const auto low = static_cast<int64_t>(DurationBuckets::LowNs(i));
    const auto high = static_cast<int64_t>(DurationBuckets::LowNs(i + 1));
    ASSERT_LT(low, high);
    EXPECT_EQ(DurationBuckets::IndexOf(low + 1), i);
    EXPECT_EQ(DurationBuckets::IndexOf(high), i);
    EXPECT_EQ(DurationBuckets::IndexOf(high + 1), i + 1);
  }
  EXPECT_EQ(DurationBuckets::IndexOf(INT64_MAX), DurationBuckets::kCount - 1);
  EXPECT_EQ(DurationBuckets::IndexOf(0), 0u);
  EXPECT_EQ(DurationBuckets::IndexOf(-5), 0u);
}

TEST(DurationBuckets, CountWhatIsUpToAPowerOfTwo) {
  for (int bits = 3; bits < DurationBuckets::kMaxBits; ++bits) {
    EXPECT_EQ(DurationBuckets::LowNs(DurationBuckets::CountUpTo(bits)), uint64_t{1} << bits);
  }
}

// SCH-11
TEST(DurationTotals, HaveQuantilesWithinAnEighthOfTheTrueOnes) {
  // Three shapes: dense and small, spread over eight powers of ten, and values on the bounds of
  // buckets.
  std::vector<std::vector<int64_t>> shapes(3);
  for (int64_t i = 1; i <= 1'000; ++i) shapes[0].push_back(i);
  for (int i = 0; i <= 8'000; ++i) shapes[1].push_back(static_cast<int64_t>(std::pow(10, i / 1000.0)));
  for (int bits = 3; bits < 40; ++bits) {
    shapes[2].push_back(int64_t{1} << bits);
    shapes[2].push_back((int64_t{1} << bits) + 1);
  }
  for (std::vector<int64_t>& values : shapes) {
    const DurationTotals totals = TotalsOf(values);
    std::sort(values.begin(), values.end());
    for (const double quantile : {0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0}) {
      const auto rank = static_cast<size_t>(std::ceil(quantile * static_cast<double>(values.size())));
      const auto wanted = static_cast<double>(values[rank == 0 ? 0 : rank - 1]);
      EXPECT_NEAR(totals.QuantileNs(quantile), wanted, wanted / 8) << "quantile " << quantile;
    }
  }
}

TEST(DurationTotals, CountAndSumExactly) {
  const DurationTotals totals = TotalsOf({0, 1, 1'000, 1'000'000'007, -3});
  EXPECT_EQ(totals.count(), 5u);
  EXPECT_EQ(totals.sum_ns, 1'000'001'008u);
  EXPECT_EQ(TotalsOf({}).count(), 0u);
  EXPECT_EQ(TotalsOf({}).QuantileNs(0.5), 0);
}

TEST(DurationTotals, GiveBackWhatWasTakenOffTooEarly) {
  DurationTotals totals = TotalsOf({});
  totals -= TotalsOf({100, 200});
  totals += TotalsOf({100, 200, 300});
  EXPECT_EQ(totals.count(), 1u);
  EXPECT_EQ(totals.sum_ns, 300u);
  EXPECT_NEAR(totals.QuantileNs(0.5), 300, 300 / 8.0);
}

}  // namespace
}  // namespace fraktor
