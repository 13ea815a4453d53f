// Activity: work in steps on an executor. A waker starts each step. Future::Then and Task::Start
// are activities. Internal to this folder.
//
// A wake-up, from any thread, posts the next step. Wake-ups during a step cause one more step
// afterwards. Steps never overlap. When the executor rejects a step (it is closed or gone), the
// activity is abandoned on the thread that called the executor.
//
// An activity counts its references itself: one until it has finished, and one for each waker that
// may still be called. So a late wake-up is safe.
#ifndef FRAKTOR_UTILS_FUTURE_INTERNAL_ACTIVITY_H_
#define FRAKTOR_UTILS_FUTURE_INTERNAL_ACTIVITY_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor::inline v0::future_internal {

class Activity {
 public:
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  // Returns a waker for one registration. It is called at most once. If it will not be called, call
  // ReturnWaker.
  Waker LendWaker();
  void ReturnWaker() { Release(); }

 protected:
  explicit Activity(Executor& executor) : lane_(executor.lane()) {}
  virtual ~Activity() = default;

  // Runs one step, on the executor. Returns true when the activity is done; nothing is called after
  // that. Must not throw.
  virtual bool Step() noexcept = 0;
  // Called when the executor has rejected a step. Releases everything and completes the promise.
  // Must not throw.
  virtual void Abandon() noexcept = 0;

  // Starts with a step on the executor, which may reject it because it is full.
  void Start(Executor& executor);
  // Starts on the thread of the caller, which registers the first waker between the two calls.
  // Wake-ups are deferred until EndPreparing.
  void BeginPreparing() { state_.store(kRunning, std::memory_order_relaxed); }
  void EndPreparing() { Settle(); }

 private:
  friend class PostedStep;
  enum State : uint32_t { kIdle, kScheduled, kRunning, kWokenWhileRunning, kFinished };

  static void WakeFunction(void* target, uint64_t, uint64_t) noexcept;

  void Wake();
  void Post();
  void Run();
  void Refused();
  void Settle();
  void Finish();
  void Release();

  const std::shared_ptr<ExecutorLane> lane_;
  // acq_rel on every exchange: a step sees everything that the previous step did, on any thread,
  // and everything that happened before the wake-up.
  std::atomic<uint32_t> state_{kIdle};
  // acq_rel on the decrement: pairs with itself, so that the last one sees everything before it
  // deletes.
  std::atomic<uint32_t> references_{1};
  // The next activity in this thread's list of activities to abandon.
  Activity* next_abandoned_ = nullptr;
};

}  // namespace fraktor::inline v0::future_internal

#endif  // FRAKTOR_UTILS_FUTURE_INTERNAL_ACTIVITY_H_
