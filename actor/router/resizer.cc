#include "fraktor/actor/router/resizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/router/routing_plan.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

absl::Status CheckBounds(std::string_view options, int lower, int upper, uint32_t messages_per_resize) {
  if (lower < 1 || upper < lower || static_cast<size_t>(upper) > kMaxRoutees) {
    return absl::InvalidArgumentError(absl::StrCat(ToAbsl(options), ": lower_bound is ", lower, " and upper_bound ",
                                                   upper,
                                                   "; it must be 1 <= lower_bound <= upper_bound <= ", kMaxRoutees));
  }
  if (messages_per_resize == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToAbsl(options), ".messages_per_resize is 0; it is 1 or more, or leave the resizer out"));
  }
  return absl::OkStatus();
}

// A NaN is out of range.
absl::Status CheckRange(std::string_view options, std::string_view name, double value, double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(options), ".", ToAbsl(name), " is ", value, "; it must be from ", low, " to ", high));
}

}  // namespace

absl::Status PressureResizerOptions::Validate() const {
  constexpr std::string_view kName = "PressureResizerOptions";
  FRAKTOR_RETURN_IF_ERROR(CheckBounds(kName, lower_bound, upper_bound, messages_per_resize));
  if (pressure_threshold < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("PressureResizerOptions.pressure_threshold is ", pressure_threshold, "; it must not be negative"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckRange(kName, "rampup_rate", rampup_rate, 0, 100));
  FRAKTOR_RETURN_IF_ERROR(CheckRange(kName, "backoff_threshold", backoff_threshold, 0, 1));
  return CheckRange(kName, "backoff_rate", backoff_rate, 0, 1);
}

int64_t ChangeByPressure(const PressureResizerOptions& options, const PoolPressure& pool) {
  const int64_t known = pool.size - pool.unknown;
  const auto whole = static_cast<double>(pool.size);
  int64_t change = 0;
  if (known > 0 && pool.pressed >= known) {
    change = static_cast<int64_t>(std::ceil(options.rampup_rate * whole));
  } else if (known > 0 && options.backoff_threshold > 0 &&
             static_cast<double>(pool.pressed) / static_cast<double>(known) < options.backoff_threshold) {
    change = static_cast<int64_t>(std::floor(-options.backoff_rate * whole));
  }
  return std::clamp<int64_t>(pool.size + change, options.lower_bound, options.upper_bound) - pool.size;
}

absl::Status ExploringResizerOptions::Validate() const {
  constexpr std::string_view kName = "ExploringResizerOptions";
  FRAKTOR_RETURN_IF_ERROR(CheckBounds(kName, lower_bound, upper_bound, messages_per_resize));
  if (action_interval <= absl::ZeroDuration() || downsize_after_underutilized_for <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("ExploringResizerOptions: action_interval is ", absl::FormatDuration(action_interval),
                     " and downsize_after_underutilized_for ", absl::FormatDuration(downsize_after_underutilized_for),
                     "; both must be positive"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckRange(kName, "chance_of_exploration", chance_of_exploration, 0, 1));
  FRAKTOR_RETURN_IF_ERROR(
      CheckRange(kName, "chance_of_ramping_down_when_full", chance_of_ramping_down_when_full, 0, 1));
  FRAKTOR_RETURN_IF_ERROR(CheckRange(kName, "explore_step_size", explore_step_size, 0, 1));
  FRAKTOR_RETURN_IF_ERROR(CheckRange(kName, "downsize_ratio", downsize_ratio, 0, 1));
  FRAKTOR_RETURN_IF_ERROR(CheckRange(kName, "weight_of_latest_metric", weight_of_latest_metric, 0, 1));
  return CheckRange(kName, "optimization_range", optimization_range, 2, 1000);
}

void ExploringResizer::Learn(const Observation& seen) {
  const bool is_full = seen.size > seen.unknown && seen.busy >= seen.size - seen.unknown;
  const bool was_full = idle_since_ == Instant::InfiniteFuture();
  if (is_full && was_full && has_seen_ && seen.size == last_.size) {
    const int64_t handled = static_cast<int64_t>(seen.messages - last_.messages) + last_.waiting - seen.waiting;
    if (handled > 0) {
      const double latest = absl::ToDoubleSeconds(seen.now - last_.now) / static_cast<double>(handled);
      const auto [found, is_new] = seconds_per_message_.try_emplace(seen.size, latest);
      const double weight = options_.weight_of_latest_metric;
      if (!is_new) found->second = found->second * (1 - weight) + latest * weight;
    }
  }
  if (is_full) {
    idle_since_ = Instant::InfiniteFuture();
    most_busy_ = 0;
  } else {
    if (was_full) idle_since_ = seen.now;
    most_busy_ = std::max(most_busy_, seen.busy);
  }
  last_ = seen;
  has_seen_ = true;
}

int64_t ExploringResizer::Explore(int64_t size) {
  const auto most = static_cast<uint64_t>(std::ceil(static_cast<double>(size) * options_.explore_step_size));
  const auto step = std::max<int64_t>(1, static_cast<int64_t>(random_.Uniform(most + 1)));
  return random_.Bernoulli(options_.chance_of_ramping_down_when_full) ? -step : step;
}

// Moves half of the way to the best known size nearby.
int64_t ExploringResizer::Optimize(int64_t size) const {
  const int side = options_.optimization_range / 2;
  auto first = seconds_per_message_.lower_bound(size);
  auto last = seconds_per_message_.upper_bound(size);
  for (int i = 0; i < side && first != seconds_per_message_.begin(); ++i) --first;
  for (int i = 0; i < side && last != seconds_per_message_.end(); ++i) ++last;
  const auto best = std::min_element(first, last, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == last) return 0;
  const double movement = static_cast<double>(best->first - size) / 2;
  return static_cast<int64_t>(movement < 0 ? std::floor(movement) : std::ceil(movement));
}

int64_t ExploringResizer::Change(const Observation& seen) {
  if (has_seen_ && seen.now < last_.now + options_.action_interval) return 0;
  Learn(seen);
  int64_t change = 0;
  if (idle_since_ != Instant::InfiniteFuture()) {
    if (idle_since_ + options_.downsize_after_underutilized_for <= seen.now) {
      const auto enough = static_cast<int64_t>(static_cast<double>(most_busy_) * options_.downsize_ratio);
      change = std::min<int64_t>(enough + seen.unknown - seen.size, 0);
    }
  } else if (!seconds_per_message_.empty()) {
    change = random_.Bernoulli(options_.chance_of_exploration) ? Explore(seen.size) : Optimize(seen.size);
  }
  // The next observation is that of this size.
  last_.size = std::clamp<int64_t>(seen.size + change, options_.lower_bound, options_.upper_bound);
  return last_.size - seen.size;
}

}  // namespace fraktor::inline v0
