// Shared by the tests of the toolboxes: a worker made of functions, a counter to wait for, and one
// way to wait on all three toolboxes.
#ifndef FRAKTOR_UTILS_TOOLBOX_TOOLBOX_UNDER_TEST_H_
#define FRAKTOR_UTILS_TOOLBOX_TOOLBOX_UNDER_TEST_H_

#include <condition_variable>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {

class FunctionWorker : public ToolboxWorker {
 public:
  explicit FunctionWorker(absl::AnyInvocable<Progress()> run_some) : run_some_(std::move(run_some)) {}
  Progress RunSome() override { return run_some_(); }

 private:
  absl::AnyInvocable<Progress()> run_some_;
};

inline std::unique_ptr<ToolboxWorker> MakeWorker(absl::AnyInvocable<ToolboxWorker::Progress()> run_some) {
  return std::make_unique<FunctionWorker>(std::move(run_some));
}

// A counter for any thread.
class Tally {
 public:
  void Add(int n = 1) {
    MutexLock lock(mutex_);
    count_ += n;
    changed_.notify_all();
  }
  int count() const {
    MutexLock lock(mutex_);
    return count_;
  }
  void WaitFor(int n) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&] {
      mutex_.AssertHeld();
      return count_ >= n;
    });
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lets a toolbox run until `tally` has reached `n`: waits if it has threads, pumps if it has none.
inline void Await(RuntimeToolbox& toolbox, Tally& tally, int n) {
  auto* pumped = dynamic_cast<PumpedToolbox*>(&toolbox);
  if (pumped == nullptr) {
    tally.WaitFor(n);
    return;
  }
  absl::Status ran = pumped->RunUntil([&] { return tally.count() >= n; }, absl::Hours(24));
  ASSERT_TRUE(ran.ok()) << ran;
}

}  // namespace fraktor

#endif  // FRAKTOR_UTILS_TOOLBOX_TOOLBOX_UNDER_TEST_H_
