// DeadlineDetector: available as long as the last heartbeat is not too long ago.
//
//   DeadlineDetector detector({.acceptable_pause = absl::Seconds(10), .heartbeat_interval = absl::Seconds(1)});
//
// Thread safety: thread-compatible.
#ifndef FRAKTOR_REMOTE_WATCH_DEADLINE_DETECTOR_H_
#define FRAKTOR_REMOTE_WATCH_DEADLINE_DETECTOR_H_

#include "absl/time/time.h"

#include "fraktor/remote/watch/failure_detector.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct DeadlineDetectorOptions {
  absl::Duration acceptable_pause = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
};

class DeadlineDetector final : public FailureDetector {
 public:
  explicit DeadlineDetector(const DeadlineDetectorOptions& options)
      : patience_(options.acceptable_pause + options.heartbeat_interval) {}

  void Heartbeat(Instant now) override {
    last_ = now;
    is_monitoring_ = true;
  }
  bool IsAvailable(Instant now) const override { return !is_monitoring_ || now < last_ + patience_; }
  bool IsMonitoring() const override { return is_monitoring_; }

 private:
  const absl::Duration patience_;
  Instant last_;
  bool is_monitoring_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WATCH_DEADLINE_DETECTOR_H_
