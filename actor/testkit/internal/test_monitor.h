// TestMonitor: wakes the thread of a test when something changes in the system under test.
//
// Thread safety: any thread may notify; one waits.
#ifndef FRAKTOR_ACTOR_TESTKIT_INTERNAL_TEST_MONITOR_H_
#define FRAKTOR_ACTOR_TESTKIT_INTERNAL_TEST_MONITOR_H_

#include <condition_variable>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::testkit_internal {

class TestMonitor {
 public:
  void NotifyChanged();

  // Blocks until `done` returns true. It is called after each change, without a lock. False after
  // `within`.
  bool Await(const RuntimeToolbox& clock, absl::FunctionRef<bool()> done, absl::Duration within);

 private:
  Mutex mutex_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::condition_variable_any changed_;
};

}  // namespace fraktor::inline v0::testkit_internal

#endif  // FRAKTOR_ACTOR_TESTKIT_INTERNAL_TEST_MONITOR_H_
