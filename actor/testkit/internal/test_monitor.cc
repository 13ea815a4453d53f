#include "fraktor/actor/testkit/internal/test_monitor.h"

#include <algorithm>

namespace fraktor::inline v0::testkit_internal {

void TestMonitor::NotifyChanged() {
  {
    MutexLock lock(mutex_);
    ++changes_;
  }
  changed_.notify_all();
}

bool TestMonitor::Await(const RuntimeToolbox& clock, absl::FunctionRef<bool()> done, absl::Duration within) {
  // An infinite time would overflow the clock.
  const Instant deadline = clock.Now() + std::min(within, absl::Hours(24));
  for (;;) {
    uint64_t seen = 0;
    {
      MutexLock lock(mutex_);
      seen = changes_;
    }
    if (done()) return true;
    MutexLock lock(mutex_);
    while (changes_ == seen) {
      const absl::Duration left = deadline - clock.Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.wait_for(lock, absl::ToChronoNanoseconds(left));
    }
  }
}

}  // namespace fraktor::inline v0::testkit_internal
