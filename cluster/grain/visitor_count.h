// VisitorCount: counts who is inside of something, so that somebody who has changed what they may see there can wait until
// those are gone who may have seen it as it was.
//
//   const uint32_t visit = count.Enter();             // any thread, again and again
//   if (is_open.load(std::memory_order_acquire)) ...
//   count.Leave(visit);
//
//   is_open.store(false, std::memory_order_release);
//   count.Await();                                    // from here on nobody is inside who has seen that it was open
//
// Who comes while somebody waits sees the change, and is not waited for, but for those who come at its very beginning. So it
// ends, however many come.
//
// Costs one read-modify-write to enter and one to leave.
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_VISITOR_COUNT_H_
#define FRAKTOR_CLUSTER_GRAIN_VISITOR_COUNT_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class VisitorCount {
 public:
  VisitorCount() = default;
  VisitorCount(const VisitorCount&) = delete;
  VisitorCount& operator=(const VisitorCount&) = delete;

  // What Leave wants: 0 or 1.
  uint32_t Enter() {
    const uint32_t phase = phase_.load(std::memory_order_relaxed) & 1;
    inside_[phase].fetch_add(1, std::memory_order_acq_rel);
    return phase;
  }

  void Leave(uint32_t phase) {
    const bool is_last = inside_[phase].fetch_sub(1, std::memory_order_seq_cst) == 1;
    if (is_last && is_awaited_.load(std::memory_order_seq_cst)) inside_[phase].notify_all();
  }

  // Not by somebody who is inside.
  void Await() {
    const MutexLock lock(awaiting_);
    is_awaited_.store(true, std::memory_order_seq_cst);
    // Twice: somebody may have read the phase and not yet counted himself when it changed.
    for (int i = 0; i < 2; ++i) {
      std::atomic<uint32_t>& former = inside_[phase_.fetch_xor(1, std::memory_order_acq_rel) & 1];
      // A read-modify-write: whoever counts himself after it sees what was done before.
      for (uint32_t count = former.fetch_add(0, std::memory_order_seq_cst); count != 0;
           count = former.load(std::memory_order_seq_cst)) {
        former.wait(count, std::memory_order_seq_cst);
      }
    }
    is_awaited_.store(false, std::memory_order_seq_cst);
  }

 private:
  // By the phase in which they came. The counting pairs with the look of Await.
  std::array<std::atomic<uint32_t>, 2> inside_{};
  std::atomic<uint32_t> phase_{0};
  // Pairs with inside_: who leaves counts and then looks here, who waits sets it and then looks at the count.
  std::atomic<bool> is_awaited_{false};
  // Of those who wait, one at a time.
  Mutex awaiting_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_VISITOR_COUNT_H_
