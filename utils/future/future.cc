#include "fraktor/utils/future/future.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/internal/fork_guard.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0::future_internal {

using toolbox_internal::ForkedError;
using toolbox_internal::IsForkedFromThreads;

namespace {

// A flag that one thread raises and another waits for. The waiter may destroy it as soon as it has
// seen it raised.
class Signal {
 public:
  Waker waker() {
    return Waker{.function = [](void* target, uint64_t, uint64_t) noexcept { static_cast<Signal*>(target)->Raise(); },
                 .target = this};
  }

  void Wait() {
    MutexLock lock(mutex_);
    raised_changed_.wait(lock, [this] { return IsRaised(); });
  }

  bool WaitFor(absl::Duration timeout) {
    MutexLock lock(mutex_);
    return raised_changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return IsRaised(); });
  }

 private:
  void Raise() {
    MutexLock lock(mutex_);
    raised_ = true;
    raised_changed_.notify_one();  // under the lock: after that the waiter may destroy this
  }

  bool IsRaised() {
    mutex_.AssertHeld();
    return raised_;
  }

  Mutex mutex_;
  std::condition_variable_any raised_changed_;
  bool raised_ ABSL_GUARDED_BY(mutex_) = false;
};

// A longer timeout counts as infinite; the deadline of wait_for would overflow.
constexpr absl::Duration kForever = absl::Hours(24 * 365);

// The release of InstallBeforeBlocking pairs with the acquire of BlockUntilReady.
std::atomic<void (*)()> before_blocking{nullptr};

}  // namespace

void DieOfMisuse(const char* what) {
  std::fprintf(stderr, "fraktor::Future: %s\n", what);
  std::abort();
}

absl::Status PromiseDroppedError() {
  return absl::CancelledError("the promise was dropped before it was set; find the code that should have set it");
}
absl::Status FutureCancelledError() { return absl::CancelledError("the future was cancelled by its owner"); }
absl::Status ExecutorClosedError() {
  return absl::CancelledError("the executor refused to run the continuation or task; it is closed or full");
}

absl::Status CheckMayBlock(const FutureNode& node, absl::Duration timeout) {
  if (node.IsReady()) return absl::OkStatus();
  if (IsForkedFromThreads()) return ForkedError("Wait");
  if (!IsWorkerThread()) {
    if (const char* const why = node.AwaitsThisThread()) return absl::FailedPreconditionError(why);
    if (timeout < kForever || !DrivesVirtualTime()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "Wait on the thread that drives virtual time would never end, since nothing runs meanwhile; call "
        "TestKit::Await(future), or toolbox.RunUntil([&] { return future.IsReady(); }, limit); if another thread "
        "completes the future, call WaitFor with a limit");
  }
  return absl::FailedPreconditionError(
      "Wait blocks the worker, which other actors need, perhaps the one that completes this future; co_await the "
      "future, or use PipeTo; move work that must block to RunBlocking, to an actor with DispatcherChoice::kPinned, or "
      "to a pool with DispatcherOptions::may_block");
}

void InstallBeforeBlocking(void (*function)()) { before_blocking.store(function, std::memory_order_release); }

bool BlockUntilReady(FutureNode& node, absl::Duration timeout) {
  if (node.IsReady()) return true;
  if (void (*const before)() = before_blocking.load(std::memory_order_acquire)) before();
  Signal signal;
  if (node.Poll(signal.waker())) return true;
  if (timeout >= kForever) {
    signal.Wait();
    return true;
  }
  if (signal.WaitFor(timeout)) return true;
  if (node.StopWaking()) return false;
  signal.Wait();  // the completer is about to raise it, so it must still exist
  return true;
}

}  // namespace fraktor::inline v0::future_internal
