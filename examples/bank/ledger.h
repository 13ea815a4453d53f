// Ledger: what the customers were told, and how long they waited for it. It is all that the audit believes besides the
// journal, so it is kept where nobody is killed.
//
// Memory: some 150 bytes for each transfer that was acknowledged.
//
// Thread safety: any thread.
#ifndef FRAKTOR_EXAMPLES_BANK_LEDGER_H_
#define FRAKTOR_EXAMPLES_BANK_LEDGER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/examples/bank/audit.h"
#include "fraktor/examples/bank/latencies.h"
#include "fraktor/utils/sync/mutex.h"

namespace bank {

class Ledger {
 public:
  struct Totals {
    uint64_t acknowledged = 0;
    uint64_t retries = 0;
    // Customers gave up: it may have happened or not.
    uint64_t unanswered = 0;
    Latencies latencies = {};
    // Why the last retry was needed.
    absl::Status last_error = {};
  };

  void NoteAcknowledged(Acknowledged transfer, absl::Duration latency) {
    fraktor::MutexLock lock(mutex_);
    ++totals_.acknowledged;
    recent_.Add(latency);
    acknowledged_.push_back(std::move(transfer));
  }
  void NoteRetry(const absl::Status& why) {
    fraktor::MutexLock lock(mutex_);
    ++totals_.retries;
    totals_.last_error = why;
  }
  void NoteUnanswered() {
    fraktor::MutexLock lock(mutex_);
    ++totals_.unanswered;
  }

  // Since it was asked last.
  Latencies TakeRecent() {
    fraktor::MutexLock lock(mutex_);
    totals_.latencies.Merge(recent_);
    return std::exchange(recent_, Latencies());
  }
  // With what TakeRecent has taken.
  Totals totals() const {
    fraktor::MutexLock lock(mutex_);
    return totals_;
  }
  std::vector<Acknowledged> TakeAcknowledged() {
    fraktor::MutexLock lock(mutex_);
    return std::exchange(acknowledged_, {});
  }

 private:
  mutable fraktor::Mutex mutex_;
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  Latencies recent_ ABSL_GUARDED_BY(mutex_);
  std::vector<Acknowledged> acknowledged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_LEDGER_H_
