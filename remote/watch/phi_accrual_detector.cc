#include "fraktor/remote/watch/phi_accrual_detector.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {
namespace {

// The logistic approximation of the normal distribution; its error is below 0.014 %.
double Tail(double t, double mean, double deviation) {
  const double y = (t - mean) / deviation;
  return std::exp(-y * (1.5976 + 0.070566 * y * y));
}

}  // namespace

void HeartbeatHistory::Add(double interval_ms) {
  if (max_samples_ == 0) return;
  if (intervals_.size() < max_samples_) {
    intervals_.push_back(interval_ms);
  } else {
    const double gone = intervals_[oldest_];
    sum_ -= gone;
    sum_of_squares_ -= gone * gone;
    intervals_[oldest_] = interval_ms;
    oldest_ = (oldest_ + 1) % max_samples_;
  }
  sum_ += interval_ms;
  sum_of_squares_ += interval_ms * interval_ms;
}

double HeartbeatHistory::mean() const { return intervals_.empty() ? 0 : sum_ / static_cast<double>(intervals_.size()); }

double HeartbeatHistory::variance() const {
  if (intervals_.empty()) return 0;
  const double m = mean();
  // Rounding may leave a little less than nothing.
  return std::max(0.0, sum_of_squares_ / static_cast<double>(intervals_.size()) - m * m);
}

double HeartbeatHistory::deviation() const { return std::sqrt(variance()); }

double PhiOf(double t, double mean, double deviation) {
  const double e = Tail(t, mean, deviation);
  return t > mean ? -std::log10(e / (1.0 + e)) : -std::log10(1.0 - 1.0 / (1.0 + e));
}

double CumulativeOf(double t, double mean, double deviation) { return 1.0 / (1.0 + Tail(t, mean, deviation)); }

absl::Status PhiAccrualOptions::Validate() const {
  const auto bad = [](const char* option, const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("PhiAccrualOptions.", option, " ", why));
  };
  if (!(threshold > 0)) return bad("threshold", absl::StrCat("is ", threshold, "; it must be above 0"));
  if (max_samples == 0) return bad("max_samples", "is 0; use at least 1");
  if (min_deviation <= absl::ZeroDuration()) {
    return bad("min_deviation", absl::StrCat("is ", absl::FormatDuration(min_deviation), "; it must be positive"));
  }
  if (acceptable_pause < absl::ZeroDuration()) {
    return bad("acceptable_pause",
               absl::StrCat("is ", absl::FormatDuration(acceptable_pause), "; it must not be negative"));
  }
  if (first_interval <= absl::ZeroDuration()) {
    return bad("first_interval", absl::StrCat("is ", absl::FormatDuration(first_interval), "; it must be positive"));
  }
  return absl::OkStatus();
}

PhiAccrualDetector::PhiAccrualDetector(const PhiAccrualOptions& options)
    : options_(options), history_(options.max_samples) {}

void PhiAccrualDetector::Heartbeat(Instant now) {
  if (!is_monitoring_) {
    // Two that have the expected mean, and a quarter of it as deviation.
    const double expected = absl::ToDoubleMilliseconds(options_.first_interval);
    history_.Add(expected - expected / 4);
    history_.Add(expected + expected / 4);
    is_monitoring_ = true;
  } else if (IsAvailable(now)) {
    // A silence that was taken for the end says nothing about heartbeats.
    history_.Add(absl::ToDoubleMilliseconds(now - last_));
  }
  last_ = now;
}

double PhiAccrualDetector::Phi(Instant now) const {
  if (!is_monitoring_) return 0;
  const double silence = absl::ToDoubleMilliseconds(now - last_);
  const double mean = history_.mean() + absl::ToDoubleMilliseconds(options_.acceptable_pause);
  const double deviation = std::max(history_.deviation(), absl::ToDoubleMilliseconds(options_.min_deviation));
  return PhiOf(silence, mean, deviation);
}

}  // namespace fraktor::inline v0
