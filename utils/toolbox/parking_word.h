// ParkingWord: one word that says whether a worker is awake, so that waking an awake one is a load and no wake-up is
// ever lost.
//
//   worker:                                         waker:
//     while (Work()) {}                               PublishWork();               // sequentially consistent, or under
//     a lock word.PublishParking();                          if (word.Wake()) Shake();    // FutexWakeOne(word.word())
//     if (Work()) { word.StayAwake(); continue; }
//     if (word.FallAsleep()) Sleep();               // FutexWait(word.word(), kParked, ...)
//
// Either the worker's second look sees the work, or the waker sees kParking or kParked: both write one thing and then
// read the other, in the total order of sequentially consistent operations. Each way out of kParked but the sleeper's
// own (Stir) makes exactly one call to the kernel, by whoever took it.
//
// Thread safety: PublishParking, StayAwake, FallAsleep, Stir and Finish belong to the worker's thread; the others to
// any.
#ifndef FRAKTOR_UTILS_TOOLBOX_PARKING_WORD_H_
#define FRAKTOR_UTILS_TOOLBOX_PARKING_WORD_H_

#include <atomic>
#include <cstdint>

#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {
namespace internal_toolbox {

template <typename Atomics = StdAtomics>
class BasicParkingWord {
 public:
  enum State : uint32_t {
    kAwake,    // runs, or will look again before it sleeps
    kParking,  // has published that it will sleep; does not yet, or not any more
    kParked,   // sleeps; to wake it takes the kernel
    kDone,     // the last value
  };

  // Makes the worker awake. True if it sleeps: the caller must wake it by the kernel. One load if it is awake.
  bool Wake() {
    uint32_t state = word_.load(std::memory_order_seq_cst);
    while (state == kParking || state == kParked) {
      if (word_.compare_exchange_weak(state, kAwake, std::memory_order_seq_cst, std::memory_order_seq_cst)) {
        return state == kParked;
      }
    }
    return false;
  }

  // Makes a worker that sleeps stir, without being awake: it looks at its deadline and sleeps on. True as with Wake.
  bool Nudge() {
    uint32_t expected = kParked;
    return word_.compare_exchange_strong(expected, kParking, std::memory_order_seq_cst, std::memory_order_seq_cst);
  }

  void PublishParking() { word_.store(kParking, std::memory_order_seq_cst); }
  void StayAwake() { word_.store(kAwake, std::memory_order_seq_cst); }

  // From kParking to kParked. False if a Wake came first.
  bool FallAsleep() {
    uint32_t expected = kParking;
    return word_.compare_exchange_strong(expected, kParked, std::memory_order_seq_cst, std::memory_order_seq_cst);
  }

  // After a sleep, whyever it ended: back to kParking. False if a Wake came first.
  bool Stir() {
    uint32_t expected = kParked;
    return word_.compare_exchange_strong(expected, kParking, std::memory_order_seq_cst, std::memory_order_seq_cst) ||
           expected == kParking;
  }

  void Finish() { word_.store(kDone, std::memory_order_release); }  // pairs with done()

  bool awake() const { return word_.load(std::memory_order_seq_cst) == kAwake; }
  bool done() const { return word_.load(std::memory_order_acquire) == kDone; }

  // For the futex.
  const typename Atomics::template Atomic<uint32_t>& word() const { return word_; }

 private:
  // Pairs with itself, and through the total order with whatever announces work; see above.
  typename Atomics::template Atomic<uint32_t> word_{kAwake};
};

using ParkingWord = BasicParkingWord<>;

}  // namespace internal_toolbox
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_PARKING_WORD_H_
