// PhiAccrualDetector: how suspicious the silence of a peer is, by how regular its heartbeats have been (Hayashibara et al.,
// "The phi accrual failure detector"). A value of n means that one silence in 10^n of a living peer is as long as this.
//
//   PhiAccrualDetector detector({.threshold = 10, .acceptable_pause = absl::Seconds(10)});
//   detector.Phi(now)                            // 0.3 when a heartbeat is just due, then it grows fast
//
// The history holds the last `max_samples` intervals between heartbeats, in a ring: mean and deviation are kept up to
// date, so a heartbeat costs the same whatever its size.
//
// Thread safety: thread-compatible.
#ifndef FRAKTOR_REMOTE_WATCH_PHI_ACCRUAL_DETECTOR_H_
#define FRAKTOR_REMOTE_WATCH_PHI_ACCRUAL_DETECTOR_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/remote/watch/failure_detector.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// The last intervals, in milliseconds.
class HeartbeatHistory {
 public:
  explicit HeartbeatHistory(size_t max_samples) : max_samples_(max_samples) {}

  void Add(double interval_ms);
  size_t size() const { return intervals_.size(); }
  double mean() const;
  double variance() const;
  double deviation() const;

 private:
  const size_t max_samples_;
  std::vector<double> intervals_;
  size_t oldest_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

struct PhiAccrualOptions {
  double threshold = 10.0;
  size_t max_samples = 200;
  absl::Duration min_deviation = absl::Milliseconds(100);
  absl::Duration acceptable_pause = absl::Seconds(10);
  // What is expected before there is a history.
  absl::Duration first_interval = absl::Seconds(1);

  absl::Status Validate() const;
};

// Of a silence of t, where intervals have this mean and deviation.
double PhiOf(double t, double mean, double deviation);
// The share of intervals up to t.
double CumulativeOf(double t, double mean, double deviation);

class PhiAccrualDetector final : public FailureDetector {
 public:
  // The options are valid.
  explicit PhiAccrualDetector(const PhiAccrualOptions& options);

  void Heartbeat(Instant now) override;
  bool IsAvailable(Instant now) const override { return Phi(now) < options_.threshold; }
  bool IsMonitoring() const override { return is_monitoring_; }

  // 0 before the first heartbeat.
  double Phi(Instant now) const;
  const HeartbeatHistory& history() const { return history_; }

 private:
  const PhiAccrualOptions options_;
  HeartbeatHistory history_;
  Instant last_;
  bool is_monitoring_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WATCH_PHI_ACCRUAL_DETECTOR_H_
