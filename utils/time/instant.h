// Instant: a point on a monotonic clock, in nanoseconds.
//
//   Instant deadline = toolbox.Now() + absl::Seconds(5);
//   if (toolbox.Now() >= deadline) return absl::DeadlineExceededError("no reply within 5s");
//
// The clock that gives an instant determines its origin: instants of two clocks cannot be compared.
// Use absl::Time for a date. An Instant has eight bytes and is trivially copyable. Arithmetic
// saturates at InfinitePast and InfiniteFuture, so adding InfiniteDuration means "never".
#ifndef FRAKTOR_UTILS_TIME_INSTANT_H_
#define FRAKTOR_UTILS_TIME_INSTANT_H_

#include <compare>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace fraktor::inline v0 {

class Instant {
 public:
  // The origin of the clock.
  constexpr Instant() = default;

  static constexpr Instant FromNanoseconds(int64_t nanoseconds) { return Instant(nanoseconds); }
  static constexpr Instant InfiniteFuture() { return Instant(std::numeric_limits<int64_t>::max()); }
  static constexpr Instant InfinitePast() { return Instant(std::numeric_limits<int64_t>::min()); }

  constexpr int64_t nanoseconds() const { return nanoseconds_; }

  // Fractions of a nanosecond round up, so that a deadline made by addition is never early. Adding
  // to InfinitePast or InfiniteFuture changes nothing.
  friend Instant operator+(Instant instant, absl::Duration duration) {
    if (instant == InfiniteFuture() || instant == InfinitePast()) return instant;
    if (duration == absl::InfiniteDuration()) return InfiniteFuture();
    if (duration == -absl::InfiniteDuration()) return InfinitePast();
    int64_t nanoseconds = absl::ToInt64Nanoseconds(duration);
    if (absl::Nanoseconds(nanoseconds) < duration && nanoseconds < std::numeric_limits<int64_t>::max()) ++nanoseconds;
    int64_t sum;
    if (__builtin_add_overflow(instant.nanoseconds_, nanoseconds, &sum)) {
      return nanoseconds > 0 ? InfiniteFuture() : InfinitePast();
    }
    return Instant(sum);
  }
  Instant& operator+=(absl::Duration duration) { return *this = *this + duration; }

  // Infinite if exactly one of the two is infinite. The distance of two equal infinities is zero.
  friend absl::Duration operator-(Instant a, Instant b) {
    if (a == b) return absl::ZeroDuration();
    if (a == InfiniteFuture() || b == InfinitePast()) return absl::InfiniteDuration();
    if (a == InfinitePast() || b == InfiniteFuture()) return -absl::InfiniteDuration();
    return absl::Nanoseconds(a.nanoseconds_) - absl::Nanoseconds(b.nanoseconds_);
  }

  friend constexpr auto operator<=>(Instant, Instant) = default;

 private:
  explicit constexpr Instant(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}

  int64_t nanoseconds_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TIME_INSTANT_H_
