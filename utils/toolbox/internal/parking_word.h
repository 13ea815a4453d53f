// ParkingWord: one word that tells whether a worker is awake. Waking an awake worker is one load,
// and no wake-up is lost.
//
// | worker:                                       waker:
// |   while (Work()) {}                             PublishWork();             // seq_cst, or under a lock
// |   word.PublishParking();                        if (word.Wake()) WakeInKernel();  // FutexWakeOne(word.word())
// |   if (Work()) { word.StayAwake(); continue; }
// |   if (word.FallAsleep()) Sleep();             // FutexWait(word.word(), kParked, ...)
//
// Either the worker's second call of Work() sees the work, or the waker sees kParking or kParked:
// both write one variable and then read the other, in the total order of sequentially consistent
// operations. Each transition out of kParked, except the sleeper's own (Stir), obliges the thread
// that makes it to exactly one call of the kernel.
//
// Thread safety: only the worker's thread may call PublishParking, StayAwake, FallAsleep, Stir and
// Finish. Any thread may call the other methods.
#ifndef FRAKTOR_UTILS_TOOLBOX_INTERNAL_PARKING_WORD_H_
#define FRAKTOR_UTILS_TOOLBOX_INTERNAL_PARKING_WORD_H_

#include <atomic>
#include <cstdint>

#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0 {
namespace toolbox_internal {

template <typename Atomics = utils_internal::StdAtomics>
class BasicParkingWord {
 public:
  enum State : uint32_t {
    kAwake,    // runs, or will check for work again before it sleeps
    kParking,  // has published that it will sleep; does not sleep yet, or has just stopped sleeping
    kParked,   // sleeps; only the kernel can wake it
    kDone,     // the final value
  };

  // Makes the worker awake. Returns true if it sleeps: the caller must wake it by the kernel. One
  // load if it is awake.
  bool Wake() {
    uint32_t state = word_.load(std::memory_order_seq_cst);
    while (state == kParking || state == kParked) {
      if (word_.compare_exchange_weak(state, kAwake, std::memory_order_seq_cst, std::memory_order_seq_cst)) {
        return state == kParked;
      }
    }
    return false;
  }

  // Makes a sleeping worker check its deadline again, without making it awake. Returns true as Wake
  // does.
  bool Nudge() {
    uint32_t expected = kParked;
    return word_.compare_exchange_strong(expected, kParking, std::memory_order_seq_cst, std::memory_order_seq_cst);
  }

  void PublishParking() { word_.store(kParking, std::memory_order_seq_cst); }
  void StayAwake() { word_.store(kAwake, std::memory_order_seq_cst); }

  // Goes from kParking to kParked. Returns false if a Wake came first.
  bool FallAsleep() {
    uint32_t expected = kParking;
    return word_.compare_exchange_strong(expected, kParked, std::memory_order_seq_cst, std::memory_order_seq_cst);
  }

  // Goes back to kParking after a sleep that ended for any reason. Returns false if a Wake came
  // first.
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
  // Pairs with itself, and through the total order with the operation that announces work; see the
  // top of this file.
  typename Atomics::template Atomic<uint32_t> word_{kAwake};
};

using ParkingWord = BasicParkingWord<>;

}  // namespace toolbox_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_INTERNAL_PARKING_WORD_H_
