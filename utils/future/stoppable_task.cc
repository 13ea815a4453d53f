#include "fraktor/utils/future/stoppable_task.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/future/with_stop.h"

namespace fraktor::inline v0 {
namespace {

// Turns each wait of the inner task into a future, which the outer task awaits.
class WaitAsFuture final : public TaskDriver {
 public:
  Waker BeginWait() override {
    PromiseAndFuture<void> pair = MakePromise<void>();
    woken_ = std::move(pair.future);
    waking_ = new Promise<void>(std::move(pair.promise));
    return {.function = &Wake, .target = waking_};
  }
  void EndWait(bool wake_is_owed) override {
    // A waker that is called owns the promise.
    if (!wake_is_owed) delete waking_;
    waking_ = nullptr;
  }

  // The future of the present wait.
  Future<void> TakeWoken() { return std::move(woken_); }

 private:
  static void Wake(void* target, uint64_t, uint64_t) noexcept {
    const std::unique_ptr<Promise<void>> waking(static_cast<Promise<void>*>(target));
    waking->Set();
  }

  Future<void> woken_;
  Promise<void>* waking_ = nullptr;
};

}  // namespace

Task<void> RunUntilStopped(Task<void> task, std::stop_token stop) {
  WaitAsFuture driver;
  RunningTask<void> running(std::move(task), driver);
  while (!running.Resume()) {
    Future<void> waking = WithStop(driver.TakeWoken(), stop);
    const absl::Status woken = co_await waking;
    if (!woken.ok()) co_return;
  }
  if (const std::exception_ptr thrown = running.exception()) std::rethrow_exception(thrown);
}

}  // namespace fraktor::inline v0
