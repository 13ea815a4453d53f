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
// There is always somebody inside, so their number need not come to nothing. Each counts himself in the current phase.
// Await begins the other phase, in which new ones count themselves, and waits until nobody is left in the former; and once
// more the other way round, since somebody may have read the phase and not yet counted himself when it changed.
//
// Costs one read-modify-write to enter and one to leave.
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_VISITOR_COUNT_H_
#define FRAKTOR_CLUSTER_GRAIN_VISITOR_COUNT_H_

#include <atomic>
#include <cstdint>

#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// The same for one who waits at a time.
template <class Atomics = utils_internal::StdAtomics>
class BasicVisitorCount {
 public:
  // What Leave wants to know: 0 or 1.
  uint32_t Enter() {
    // Any of the two is right: Await looks at both.
    const uint32_t phase = phase_.load(std::memory_order_relaxed);
    // Who is too late to be seen by Await sees what was changed before: acquire, of its release.
    CountOf(phase).fetch_add(1, std::memory_order_acquire);
    return phase;
  }

  // Release: what was done inside comes before what Await's caller does next.
  void Leave(uint32_t phase) {
    Count& count = CountOf(phase);
    if (count.fetch_sub(1, std::memory_order_release) == 1) count.notify_all();
  }

  // Not by somebody who is inside.
  void Await() {
    for (int i = 0; i < 2; ++i) {
      Count& former = CountOf(phase_.fetch_xor(1, std::memory_order_relaxed));
      // Release for those who enter later, acquire for those who have left. It must be in the order of the changes of the
      // count: a load could overlook somebody.
      uint32_t count = former.fetch_add(0, std::memory_order_acq_rel);
      while (count != 0) {
        former.wait(count, std::memory_order_relaxed);
        count = former.load(std::memory_order_acquire);
      }
    }
  }

 private:
  using Count = typename Atomics::template Atomic<uint32_t>;

  Count& CountOf(uint32_t phase) { return phase == 0 ? even_ : odd_; }

  Count phase_{0};
  // How many are inside who have entered in the phase. Pair with each other, as said above.
  Count even_{0};
  Count odd_{0};
};

class VisitorCount {
 public:
  uint32_t Enter() { return count_.Enter(); }
  void Leave(uint32_t visit) { count_.Leave(visit); }
  // Not by somebody who is inside. Several wait one after the other.
  void Await() {
    const MutexLock lock(awaiting_);
    count_.Await();
  }

 private:
  BasicVisitorCount<> count_;
  Mutex awaiting_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_VISITOR_COUNT_H_
