// EnteringBatches: counts who is on his way to something, so that whoever ends it can wait for them. Nobody waits for
// whoever ends it.
//
//   const uint32_t phase = entering.Begin();        // who brings something: counts himself, then looks for the actor,
//   entering.End(phase);                            // sends to it if he has found it, and is done
//
//   placement.GiveUp(actor);                        // who ends the actor: nobody is to find it any more
//   entering.Await();                               // and those who have found it are done
//   Stop(actor);
//
// There are always some on their way, so their number need not come to nothing. Each counts himself in the current
// phase. Await begins the other phase, in which new ones count themselves, and waits until nobody is left in the
// former; and once more the other way round, since somebody may have read the phase and not yet counted himself when it
// changed.
//
// Thread safety: Begin and End from any thread. Await from one at a time.
#ifndef FRAKTOR_CLUSTER_GRAIN_ENTERING_BATCHES_H_
#define FRAKTOR_CLUSTER_GRAIN_ENTERING_BATCHES_H_

#include <atomic>
#include <cstdint>

#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

template <class Atomics = StdAtomics>
class BasicEnteringBatches {
 public:
  // What End wants to know.
  uint32_t Begin() {
    // Any of the two is right: Await looks at both.
    const uint32_t phase = phase_.load(std::memory_order_relaxed);
    // Who is too late to be seen by Await sees what was given up before: acquire, of its release.
    CountOf(phase).fetch_add(1, std::memory_order_acquire);
    return phase;
  }

  // Release: what was done in the meantime comes before what Await's caller does next.
  void End(uint32_t phase) {
    Count& count = CountOf(phase);
    if (count.fetch_sub(1, std::memory_order_release) == 1) count.notify_all();
  }

  void Await() {
    for (int i = 0; i < 2; ++i) {
      Count& former = CountOf(phase_.fetch_xor(1, std::memory_order_relaxed));
      // Release for those who begin later, acquire for those who have ended. It must be in the order of the changes of
      // the count: a load could overlook somebody.
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
  // How many are on their way that have begun in the phase. Pair with each other, as said above.
  Count even_{0};
  Count odd_{0};
};

using EnteringBatches = BasicEnteringBatches<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_ENTERING_BATCHES_H_
