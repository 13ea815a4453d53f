// Activity: work in steps on an executor, each step begun by a waker. What Future::Then and Task::Start run on.
//
// Between two steps it belongs to nobody: a wake-up, from any thread, posts the next step, and wake-ups during a step
// make one more step afterwards. Steps never overlap. When the executor refuses (it is closed or gone), the activity is
// abandoned on the thread that found out.
//
// An internal class of this folder. It counts its references by itself: one until it has finished, and one for each
// waker that may still be called. So it never matters when a late wake-up comes.
#ifndef FRAKTOR_UTILS_FUTURE_ACTIVITY_H_
#define FRAKTOR_UTILS_FUTURE_ACTIVITY_H_

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

  // A waker for one registration. It is called at most once; if it is not going to be called, give it back.
  Waker LendWaker();
  void ReturnWaker() { Release(); }

 protected:
  explicit Activity(Executor& executor) : lane_(executor.lane()) {}
  virtual ~Activity() = default;

  // One step, on the executor. True when all is done; nothing is called after that. Does not throw.
  virtual bool Step() noexcept = 0;
  // The executor refused a step: let go of everything, and tell those who wait. Does not throw.
  virtual void Abandon() noexcept = 0;

  // Begins with a step on the executor, which may refuse it because it is full.
  void Start(Executor& executor);
  // Begins on the caller's thread, which registers the first waker in between: wake-ups wait for EndPreparing.
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
  // acq_rel on every exchange: a step sees all that the previous step did, on whatever thread, and all that happened
  // before the wake-up.
  std::atomic<uint32_t> state_{kIdle};
  // acq_rel on the way down: pairs with itself, so that the last one sees everything before it deletes.
  std::atomic<uint32_t> references_{1};
  // In the list of those that wait to be abandoned on this thread.
  Activity* next_abandoned_ = nullptr;
};

}  // namespace fraktor::inline v0::future_internal

#endif  // FRAKTOR_UTILS_FUTURE_ACTIVITY_H_
