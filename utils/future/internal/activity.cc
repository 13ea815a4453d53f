#include "fraktor/utils/future/internal/activity.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor::inline v0::future_internal {

// The posted function. If the executor destroys it unrun, the activity is abandoned.
class PostedStep {
 public:
  explicit PostedStep(Activity* activity) : activity_(activity) {}
  PostedStep(PostedStep&& other) noexcept : activity_(std::exchange(other.activity_, nullptr)) {}
  PostedStep& operator=(PostedStep&&) = delete;
  ~PostedStep() {
    if (activity_ != nullptr) activity_->Refused();
  }

  void operator()() { std::exchange(activity_, nullptr)->Run(); }

 private:
  Activity* activity_;
};

namespace {

// The activities that were rejected while another one was being abandoned on this thread. An
// abandoned activity cancels the next one of a chain, and so on; without the list a long chain
// would overflow the stack.
constinit thread_local Activity* abandoned_first = nullptr;
constinit thread_local Activity** abandoned_end = nullptr;

}  // namespace

Waker Activity::LendWaker() {
  references_.fetch_add(1, std::memory_order_relaxed);
  return Waker{.function = &WakeFunction, .target = this};
}

void Activity::WakeFunction(void* target, uint64_t, uint64_t) noexcept {
  auto* const activity = static_cast<Activity*>(target);
  activity->Wake();
  activity->Release();
}

void Activity::Start(Executor& executor) {
  state_.store(kScheduled, std::memory_order_relaxed);
  executor.Post(PostedStep(this));
}

void Activity::Wake() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  for (;;) {
    uint32_t next;
    switch (state) {
      case kIdle:
        next = kScheduled;
        break;
      case kRunning:
        next = kWokenWhileRunning;
        break;
      default:
        // Either a step is already due, or the activity is done. The exchange is still needed: it
        // orders this wake-up before that step.
        next = state;
    }
    if (state_.compare_exchange_weak(state, next, std::memory_order_acq_rel, std::memory_order_relaxed)) break;
  }
  if (state == kIdle) Post();
}

void Activity::Post() {
  // The step may run, and delete this activity, before PostStep returns.
  const std::shared_ptr<ExecutorLane> lane = lane_;
  lane->PostStep(PostedStep(this));
}

void Activity::Run() {
  state_.exchange(kRunning, std::memory_order_acq_rel);
  if (Step()) {
    Finish();
  } else {
    Settle();
  }
}

void Activity::Settle() {
  uint32_t expected = kRunning;
  if (state_.compare_exchange_strong(expected, kIdle, std::memory_order_acq_rel, std::memory_order_acquire)) return;
  // Woken during the step. The next step is posted rather than run here, so that other work gets
  // its turn.
  state_.exchange(kScheduled, std::memory_order_acq_rel);
  Post();
}

void Activity::Refused() {
  if (abandoned_end != nullptr) {
    *abandoned_end = this;
    abandoned_end = &next_abandoned_;
    return;
  }
  abandoned_first = this;
  abandoned_end = &next_abandoned_;
  while (Activity* const activity = abandoned_first) {
    // Further activities are appended to the list while this one is abandoned. This one is deleted
    // only after its link has been read.
    activity->state_.exchange(kRunning, std::memory_order_acq_rel);
    activity->Abandon();
    abandoned_first = activity->next_abandoned_;
    if (abandoned_first == nullptr) abandoned_end = &abandoned_first;
    activity->Finish();
  }
  abandoned_end = nullptr;
}

void Activity::Finish() {
  state_.exchange(kFinished, std::memory_order_acq_rel);
  Release();
}

void Activity::Release() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace fraktor::inline v0::future_internal
