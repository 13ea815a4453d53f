#include "fraktor/actor/scheduler/work_stealing_coordinator.h"

#include <cassert>

namespace fraktor::inline v0 {

WorkStealingCoordinator::WorkStealingCoordinator(WorkerIndex workers, WorkerWaker& waker)
    : waker_(waker), worker_count_(workers), workers_(std::make_unique<Worker[]>(workers)) {
  assert(workers >= 1 && workers <= kMaxWorkers);
}

bool WorkStealingCoordinator::RegisterReady(WorkerIndex index, ReadyNode& node, Placement placement) {
  switch (ReadyMembership::Enter(node)) {
    case ReadyMembership::Entry::kAlready:
      return false;
    case ReadyMembership::Entry::kRevived:
      return true;
    case ReadyMembership::Entry::kEnter:
      break;
  }
  if (index == kForeign) {
    injected_.Push(&node);
    WakeOneIfUseful();
    return true;
  }
  Worker& worker = workers_[index];
  if (placement == Placement::kNext) {
    // A worker that has one actor to run next needs no help with it.
    ReadyNode* const displaced = worker.warm;
    worker.warm = &node;
    if (displaced == nullptr) {
      worker.has_warm.store(true, std::memory_order_relaxed);
      return true;
    }
    PushToRing(worker, displaced);
  } else {
    PushToRing(worker, &node);
  }
  WakeOneIfUseful();
  return true;
}

void WorkStealingCoordinator::Unregister(ReadyNode& node) { ReadyMembership::MakeVoid(node); }

size_t WorkStealingCoordinator::DrainReady(WorkerIndex index, absl::Span<ReadyNode*> out) {
  size_t drained = 0;
  while (drained < out.size()) {
    ReadyNode* const node = TakeOne(index);
    if (node == nullptr) break;
    if (ReadyMembership::Leave(*node)) out[drained++] = node;
  }
  return drained;
}

bool WorkStealingCoordinator::BeginWait(WorkerIndex index) {
  Worker& worker = workers_[index];
  if (worker.searching) StopSearching(worker);
  worker.sleeps.store(true, std::memory_order_seq_cst);
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  if (!AnythingReady()) return true;
  EndWait(index);
  return false;
}

void WorkStealingCoordinator::EndWait(WorkerIndex index) {
  Worker& worker = workers_[index];
  if (worker.sleeps.exchange(false, std::memory_order_seq_cst)) {
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
  } else {
    // Whoever woke this worker has counted it as searching.
    worker.searching = true;
  }
}

size_t WorkStealingCoordinator::ReadyCountHint() const {
  size_t ready = injected_.SizeHint();
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    ready += workers_[i].ring.SizeHint() + (workers_[i].has_warm.load(std::memory_order_relaxed) ? 1 : 0);
  }
  return ready;
}

void WorkStealingCoordinator::PushToRing(Worker& worker, ReadyNode* node) {
  if (worker.ring.TryPush(node)) return;
  // Too many for one worker: the older half goes to where everybody looks, and keeps its place before the new one.
  Ring::HalfBuffer moved;
  const size_t count = worker.ring.PopHalf(moved);
  for (size_t i = 0; i < count; ++i) injected_.Push(moved[i]);
  const bool pushed = worker.ring.TryPush(node);
  assert(pushed);
  static_cast<void>(pushed);
}

ReadyNode* WorkStealingCoordinator::TakeOne(WorkerIndex index) {
  Worker& worker = workers_[index];
  ReadyNode* node = injected_.TryPop();
  if (node == nullptr && worker.warm != nullptr) {
    node = worker.warm;
    worker.warm = nullptr;
    worker.has_warm.store(false, std::memory_order_relaxed);
    if (++worker.warm_streak <= kWarmStreak) return Found(worker, node);
    if (worker.ring.TryPush(node)) node = nullptr;
  }
  if (node == nullptr) {
    worker.warm_streak = 0;
    node = worker.ring.TryPop();
  }
  return node != nullptr ? Found(worker, node) : Search(index);
}

ReadyNode* WorkStealingCoordinator::Found(Worker& worker, ReadyNode* node) {
  if (worker.searching) {
    StopSearching(worker);
    // There may be more where this came from.
    WakeOneIfUseful();
  }
  return node;
}

ReadyNode* WorkStealingCoordinator::Search(WorkerIndex index) {
  Worker& worker = workers_[index];
  if (!worker.searching) {
    worker.searching = true;
    searching_.fetch_add(1, std::memory_order_seq_cst);
  }
  ReadyNode* const node = Steal(index);
  return node != nullptr ? Found(worker, node) : nullptr;  // Null: still searching, until BeginWait.
}

ReadyNode* WorkStealingCoordinator::Steal(WorkerIndex index) {
  Worker& worker = workers_[index];
  for (WorkerIndex tries = 0; tries < worker_count_; ++tries) {
    worker.next_victim = worker.next_victim + 1 < worker_count_ ? worker.next_victim + 1 : 0;
    if (worker.next_victim == index) continue;
    if (ReadyNode* node = workers_[worker.next_victim].ring.StealHalfInto(worker.ring)) return node;
  }
  return injected_.TryPop();
}

void WorkStealingCoordinator::StopSearching(Worker& worker) {
  worker.searching = false;
  searching_.fetch_sub(1, std::memory_order_seq_cst);
}

bool WorkStealingCoordinator::AnythingReady() const {
  if (!injected_.IsEmptyForParking()) return true;
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    if (!workers_[i].ring.IsEmptyForParking()) return true;
  }
  return false;
}

void WorkStealingCoordinator::WakeOneIfUseful() {
  if (sleeping_.load(std::memory_order_seq_cst) == 0 || searching_.load(std::memory_order_seq_cst) > 0) return;
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    Worker& worker = workers_[i];
    if (!worker.sleeps.load(std::memory_order_relaxed)) continue;
    if (!worker.sleeps.exchange(false, std::memory_order_seq_cst)) continue;
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    // In this order: to count a search that does not take place, even for a moment, would keep others from waking. If
    // the worker is awake already and ends its search first, the count is below zero for that moment.
    searching_.fetch_add(1, std::memory_order_seq_cst);
    waker_.WakeWorker(i);
    return;
  }
}

}  // namespace fraktor::inline v0
