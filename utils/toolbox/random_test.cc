#include "fraktor/utils/toolbox/random.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

TEST(Random, GivesThePublishedNumbers) {
  EXPECT_EQ(MixBits(0x9e3779b97f4a7c15), 0xe220a8397b1dcdafu);  // the first number of splitmix64 with seed 0
  Random zero(0);
  EXPECT_EQ(zero.Next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(zero.Next(), 0xbf6e1f784956452au);
  EXPECT_EQ(zero.Next(), 0x1a5f849d4933e6e0u);
  Random other(42);
  EXPECT_EQ(other.Next(), 0x15780b2e0c2ec716u);
}

TEST(Random, UniformIsEvenAndStaysInRange) {
  Random random(1);
  EXPECT_EQ(random.Uniform(0), 0u);
  EXPECT_EQ(random.Uniform(1), 0u);
  std::vector<int> hits(7);
  for (int i = 0; i < 70'000; ++i) ++hits[random.Uniform(7)];
  for (int n : hits) EXPECT_NEAR(n, 10'000, 500);
}

TEST(Random, UniformHasNoBiasWhereAModuloWouldHaveAThird) {
  // With n = 3 * 2^62, a simple modulo would give 2^64 % n == 2^62 numbers twice as often as the
  // rest.
  constexpr uint64_t kN = uint64_t{3} << 62;
  Random random(2);
  int low_third = 0;
  for (int i = 0; i < 30'000; ++i) {
    const uint64_t drawn = random.Uniform(kN);
    ASSERT_LT(drawn, kN);
    if (drawn < kN / 3) ++low_third;
  }
  EXPECT_NEAR(low_third, 10'000, 500);
}

TEST(Random, UniformInIncludesBothEnds) {
  Random random(3);
  std::vector<int> hits(3);
  for (int i = 0; i < 3000; ++i) ++hits[random.UniformIn(-1, 1) + 1];
  for (int n : hits) EXPECT_NEAR(n, 1000, 200);
  EXPECT_EQ(random.UniformIn(5, 5), 5);
  EXPECT_EQ(random.UniformIn(5, 4), 5);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 64; ++i) {
    const int64_t any = random.UniformIn(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    (any < 0 ? negative : positive) = true;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Random, BernoulliKeepsItsProbability) {
  Random random(4);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += random.Bernoulli(0.2) ? 1 : 0;
  EXPECT_NEAR(hits, 20'000, 600);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(random.Bernoulli(0));
    EXPECT_FALSE(random.Bernoulli(-1));
    EXPECT_FALSE(random.Bernoulli(std::nan("")));
    EXPECT_TRUE(random.Bernoulli(1));
    EXPECT_TRUE(random.Bernoulli(2));
  }
}

TEST(Random, ExponentialHasTheRightMeanAndTail) {
  Random random(5);
  double sum = 0;
  int beyond_mean = 0;
  int beyond_three = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double drawn = random.Exponential(2);
    ASSERT_GE(drawn, 0);
    sum += drawn;
    if (drawn > 2) ++beyond_mean;
    if (drawn > 6) ++beyond_three;
  }
  EXPECT_NEAR(sum / kDraws, 2, 0.03);
  EXPECT_NEAR(beyond_mean / double{kDraws}, std::exp(-1), 0.005);
  EXPECT_NEAR(beyond_three / double{kDraws}, std::exp(-3), 0.003);
}

TEST(Random, UniformDurationStaysInRange) {
  Random random(6);
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration drawn = random.UniformDuration(absl::Milliseconds(5), absl::Milliseconds(6));
    EXPECT_GE(drawn, absl::Milliseconds(5));
    EXPECT_LE(drawn, absl::Milliseconds(6));
  }
}

TEST(Random, ShuffleMakesEveryOrder) {
  Random random(7);
  std::vector<int> hits(6);
  for (int i = 0; i < 6000; ++i) {
    std::vector<int> order = {0, 1, 2};
    random.Shuffle(order.begin(), order.end());
    ASSERT_TRUE(std::is_permutation(order.begin(), order.end(), std::vector<int>{0, 1, 2}.begin()));
    ++hits[order[0] * 2 + (order[1] > order[2] ? 1 : 0)];
  }
  for (int n : hits) EXPECT_NEAR(n, 1000, 200);
}

TEST(Random, AForkDependsOnSeedAndStreamButNotOnWhatWasDrawn) {
  Random random(8);
  Random before = random.Fork(1);
  random.Next();
  Random after = random.Fork(1);
  Random other = random.Fork(2);
  EXPECT_EQ(before.Next(), after.Next());
  EXPECT_NE(before.Next(), other.Next());
  EXPECT_NE(Random(8).Next(), Random(8).Fork(0).Next());
}

}  // namespace
}  // namespace fraktor
