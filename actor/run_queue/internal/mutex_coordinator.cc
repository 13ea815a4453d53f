#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace fraktor::inline v0::actor_internal {

MutexCoordinator::MutexCoordinator(WorkerIndex workers, WorkerWaker& waker, Choice choice)
    : waker_(waker), choice_(std::move(choice)), waits_(workers, false) {
  assert(workers >= 1 && workers <= kMaxWorkers);
}

bool MutexCoordinator::RegisterReady(WorkerIndex /*worker*/, ReadyNode& node, Placement /*placement*/) {
  WorkerIndex sleeper = kForeign;
  {
    MutexLock lock(mutex_);
    if (!ReadyMembership::Enter(node)) return false;
    ReadyMembership::set_next(node, nullptr);
    if (last_ == nullptr) {
      first_ = &node;
    } else {
      ReadyMembership::set_next(*last_, &node);
    }
    last_ = &node;
    ++size_;
    const auto found = std::find(waits_.begin(), waits_.end(), true);
    if (found != waits_.end()) {
      *found = false;
      sleeper = static_cast<WorkerIndex>(found - waits_.begin());
    }
  }
  if (sleeper != kForeign) waker_.WakeWorker(sleeper);
  return true;
}

size_t MutexCoordinator::DrainReady(WorkerIndex /*worker*/, absl::Span<ReadyNode*> out) {
  MutexLock lock(mutex_);
  size_t drained = 0;
  while (drained < out.size() && size_ > 0) {
    ReadyNode* const node = TakeAt(choice_ != nullptr && size_ > 1 ? choice_(size_) : 0);
    ReadyMembership::Leave(*node);
    out[drained++] = node;
  }
  return drained;
}

bool MutexCoordinator::BeginWait(WorkerIndex worker) {
  MutexLock lock(mutex_);
  if (size_ > 0) return false;
  waits_[worker] = true;
  return true;
}

void MutexCoordinator::EndWait(WorkerIndex worker) {
  MutexLock lock(mutex_);
  waits_[worker] = false;
}

size_t MutexCoordinator::ReadyCountHint() const {
  MutexLock lock(mutex_);
  return size_;
}

ReadyNode* MutexCoordinator::TakeAt(size_t position) {
  assert(position < size_);
  ReadyNode* before = nullptr;
  ReadyNode* node = first_;
  for (; position > 0; --position) {
    before = node;
    node = ReadyMembership::next(*node);
  }
  ReadyNode* const after = ReadyMembership::next(*node);
  if (before == nullptr) {
    first_ = after;
  } else {
    ReadyMembership::set_next(*before, after);
  }
  if (last_ == node) last_ = before;
  --size_;
  return node;
}

}  // namespace fraktor::inline v0::actor_internal
