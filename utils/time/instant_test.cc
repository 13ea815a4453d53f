#include "fraktor/utils/time/instant.h"

#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Instant, AddsAndSubtractsDurations) {
  Instant t = Instant::FromNanoseconds(100);
  EXPECT_EQ((t + absl::Nanoseconds(5)).nanoseconds(), 105);
  EXPECT_EQ((t + absl::Nanoseconds(-105)).nanoseconds(), -5);
  EXPECT_EQ(t + absl::Seconds(1) - t, absl::Seconds(1));
  EXPECT_LT(t, t + absl::Nanoseconds(1));
}

TEST(Instant, RoundsFractionsOfANanosecondUp) {
  EXPECT_EQ((Instant() + absl::Nanoseconds(1) / 4).nanoseconds(), 1);
  EXPECT_EQ((Instant() + absl::Nanoseconds(5) / 4).nanoseconds(), 2);
  EXPECT_EQ((Instant() - Instant()), absl::ZeroDuration());
  EXPECT_EQ((Instant() + absl::Nanoseconds(-5) / 4).nanoseconds(), -1);
}

TEST(Instant, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(Instant::FromNanoseconds(kMost - 1) + absl::Seconds(1), Instant::InfiniteFuture());
  EXPECT_EQ(Instant::FromNanoseconds(-kMost) + absl::Seconds(-1), Instant::InfinitePast());
  EXPECT_EQ(Instant() + absl::Hours(24 * 365 * 1000), Instant::InfiniteFuture());
}

TEST(Instant, InfinityAbsorbsEveryDuration) {
  EXPECT_EQ(Instant() + absl::InfiniteDuration(), Instant::InfiniteFuture());
  EXPECT_EQ(Instant() + -absl::InfiniteDuration(), Instant::InfinitePast());
  EXPECT_EQ(Instant::InfiniteFuture() + absl::Seconds(-1), Instant::InfiniteFuture());
  EXPECT_EQ(Instant::InfiniteFuture() - Instant(), absl::InfiniteDuration());
  EXPECT_EQ(Instant() - Instant::InfiniteFuture(), -absl::InfiniteDuration());
  EXPECT_EQ(Instant::InfiniteFuture() - Instant::InfiniteFuture(), absl::ZeroDuration());
}

}  // namespace
}  // namespace fraktor
