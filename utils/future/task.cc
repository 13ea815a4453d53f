#include "fraktor/utils/future/task.h"

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <new>
#include <utility>

#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {
namespace {

void* AllocateOnHeap(size_t size) { return ::operator new(size); }
void FreeOnHeap(void* frame, size_t) noexcept { ::operator delete(frame); }

constexpr TaskFrames kHeapFrames = {.allocate = &AllocateOnHeap, .free = &FreeOnHeap};

// Null until the first frame is allocated or an allocator is installed; never changes after that.
// release and acquire: pairs with itself, for the object that it points to.
constinit std::atomic<const TaskFrames*> task_frames{nullptr};

const TaskFrames& Frames() {
  const TaskFrames* frames = task_frames.load(std::memory_order_acquire);
  if (frames == nullptr && task_frames.compare_exchange_strong(frames, &kHeapFrames, std::memory_order_acq_rel)) {
    return kHeapFrames;
  }
  return *frames;
}

}  // namespace

bool InstallTaskFrames(const TaskFrames& frames) {
  const TaskFrames* expected = nullptr;
  return task_frames.compare_exchange_strong(expected, &frames, std::memory_order_acq_rel);
}

namespace future_internal {

void* AllocateTaskFrame(size_t size) { return Frames().allocate(size); }
void FreeTaskFrame(void* frame, size_t size) noexcept { Frames().free(frame, size); }

void TaskContext::EnterRoot(TaskPromiseBase& root) {
  root.context_ = this;
  innermost_ = &root;
}

void TaskContext::Enter(TaskPromiseBase& child, TaskPromiseBase& parent, std::coroutine_handle<>& owner) {
  if (child.context_ != nullptr) DieOfMisuse("a task is awaited a second time");
  child.context_ = this;
  child.parent_ = &parent;
  child.owner_ = &owner;
  innermost_ = &child;
  next_ = child.self_;
}

void TaskContext::Leave(TaskPromiseBase& finished) {
  innermost_ = finished.parent_;
  if (innermost_ != nullptr) next_ = innermost_->self_;
}

bool TaskContext::WaitFor(FutureNode& node) {
  if (node.Poll(driver_.BeginWait())) {
    driver_.EndWait(/*wake_is_owed=*/false);
    return false;
  }
  waiting_for_ = &node;
  return true;
}

void TaskContext::EndWait() noexcept {
  const bool wake_is_owed = !std::exchange(waiting_for_, nullptr)->StopWaking();
  driver_.EndWait(wake_is_owed);
}

bool TaskContext::Run() {
  if (waiting_for_ != nullptr) {
    bool wake_is_owed = false;
    if (!waiting_for_->EndWaitIfReady(wake_is_owed)) return false;
    waiting_for_ = nullptr;
    driver_.EndWait(wake_is_owed);
  }
  next_ = innermost_->self_;
  while (next_ != nullptr) std::exchange(next_, nullptr).resume();
  return innermost_ == nullptr;
}

void TaskContext::Unwind() noexcept {
  if (waiting_for_ != nullptr) EndWait();
  while (innermost_ != nullptr && innermost_->parent_ != nullptr) {
    TaskPromiseBase* const parent = innermost_->parent_;
    *innermost_->owner_ = nullptr;
    innermost_->self_.destroy();
    innermost_ = parent;
  }
}

}  // namespace future_internal
}  // namespace fraktor::inline v0
