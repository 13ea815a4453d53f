#include "fraktor/actor/supervision/supervisor_strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

absl::Duration RestartBackoff::After(int64_t restarts) const {
  if (min <= absl::ZeroDuration()) return absl::ZeroDuration();
  const double times = std::pow(factor, static_cast<double>(std::clamp<int64_t>(restarts - 1, 0, 1000)));
  return std::isfinite(times) ? std::min(max, min * times) : max;
}

absl::Status SupervisorStrategyOptions::Validate() const {
  if (max_restarts < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("SupervisorStrategyOptions.max_restarts is ", max_restarts, "; it is -1 (any number) or more"));
  }
  if (window <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("SupervisorStrategyOptions.window is ", absl::FormatDuration(window), "; it must be positive"));
  }
  if (backoff.min < absl::ZeroDuration() || backoff.max < backoff.min) {
    return absl::InvalidArgumentError(
        absl::StrCat("SupervisorStrategyOptions.backoff goes from ", absl::FormatDuration(backoff.min), " to ",
                     absl::FormatDuration(backoff.max), "; min must not be negative, nor above max"));
  }
  if (!(backoff.factor >= 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("SupervisorStrategyOptions.backoff.factor is ", backoff.factor, "; it must be 1 or more"));
  }
  return absl::OkStatus();
}

SupervisorStrategy::SupervisorStrategy(SupervisorStrategyOptions options) : options_(std::move(options)) {
  if (const absl::Status valid = options_.Validate(); !valid.ok()) {
    std::fprintf(stderr, "fraktor: %s\n", valid.ToString().c_str());
    std::abort();
  }
}

const SupervisorStrategy& SupervisorStrategy::Default() {
  static const auto& strategy = *new SupervisorStrategy();
  return strategy;
}

const SupervisorStrategy& SupervisorStrategy::Stopping() {
  static const auto& strategy =
      *new SupervisorStrategy({.decider = [](const Failure&) { return SupervisionDirective::kStop; }});
  return strategy;
}

SupervisionDirective SupervisorStrategy::Decide(const Failure& failure) const {
  return options_.decider == nullptr ? DecideByDefault(failure) : options_.decider(failure);
}

SupervisionDirective SupervisorStrategy::DecideByDefault(const Failure& failure) {
  switch (failure.cause) {
    case FailureCause::kInitialization:
    case FailureCause::kKilled:
    case FailureCause::kDeathPact:
      return SupervisionDirective::kStop;
    case FailureCause::kThrownUnknown:
      return SupervisionDirective::kEscalate;
    case FailureCause::kReturned:
    case FailureCause::kThrown:
      break;
  }
  return SupervisionDirective::kRestart;
}

bool SupervisorStrategy::AllowsRestart(RestartStats& stats, Instant now) const {
  const bool has_window = options_.window != absl::InfiniteDuration();
  if (options_.max_restarts == 0) return false;
  if (options_.max_restarts < 0 && !has_window) {
    ++stats.restarts;
    return true;
  }
  const int64_t allowed = options_.max_restarts < 0 ? 1 : options_.max_restarts;
  if (has_window) {
    if (stats.window_start == Instant::InfiniteFuture()) stats.window_start = now;
    if (now - stats.window_start > options_.window) {
      stats = {.restarts = 1, .window_start = now};
      return true;
    }
  }
  return ++stats.restarts <= allowed;
}

}  // namespace fraktor::inline v0
