// FailureDetector: whether a peer whose heartbeats come, or do not, is to be taken for dead.
//
//   PhiAccrualDetector detector({.acceptable_pause = absl::Seconds(10)});
//   detector.Heartbeat(now);                     // whenever one comes
//   if (!detector.IsAvailable(now)) GiveUp();
//
// Before the first heartbeat a peer is available: nobody has begun to listen.
//
// Thread safety: thread-compatible. Time comes in as an argument.
#ifndef FRAKTOR_REMOTE_WATCH_FAILURE_DETECTOR_H_
#define FRAKTOR_REMOTE_WATCH_FAILURE_DETECTOR_H_

#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class FailureDetector {
 public:
  virtual ~FailureDetector() = default;

  virtual void Heartbeat(Instant now) = 0;
  virtual bool IsAvailable(Instant now) const = 0;
  // Whether a heartbeat has ever come.
  virtual bool IsMonitoring() const = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WATCH_FAILURE_DETECTOR_H_
