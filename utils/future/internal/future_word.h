// FutureWord: the state of one future, and the hand-over between its completer and its waiter.
// Internal: only sources of futures use it.
//
// Two parties share a FutureWord, each on one thread at a time: the promise side and the future
// side. The value lies beside the word; the word does not know it. All decisions are bits of one
// atomic word:
//
// | EMPTY ──Poll──▸ WAKER ──Complete──▸ READY (the completer saw WAKER: it wakes, once)
// |   │               └──Cancel──▸ CANCELLED
// |   ├──Complete──▸ READY (there is no waiter to wake)
// |   └──Cancel──▸ CANCELLED (and one wake-up for the promise side, if it registered a waker)
//
// READY and CANCELLED exclude each other: the first one wins, and the other side is told. WAKER
// stays set in READY if and only if the completer saw it, so the future side always knows whether a
// wake-up is still to come (StopWaking). Two more bits tell which party has gone; the second one to
// go frees the memory.
//
// Sometimes the two parties are known to take turns while one waits for the other, for example an
// actor and the replies to its asks. Then the exchanges are unnecessary: see PollInTurns.
//
// The class is a template over the atomics (fraktor/utils/queue/internal/atomics.h), so that a
// model checker can try all interleavings. Without kTellsOfCancel there is no OnCancel, and the
// word is smaller.
#ifndef FRAKTOR_UTILS_FUTURE_INTERNAL_FUTURE_WORD_H_
#define FRAKTOR_UTILS_FUTURE_INTERNAL_FUTURE_WORD_H_

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::future_internal {

template <class Atomics = utils_internal::StdAtomics, bool kTellsOfCancel = true>
class FutureWord {
 public:
  // The result of Complete().
  struct Completion {
    bool accepted;  // false: the future side had cancelled before
    bool is_last;   // the future side has gone too: the caller frees the memory
  };

  FutureWord() = default;
  FutureWord(const FutureWord&) = delete;
  FutureWord& operator=(const FutureWord&) = delete;

  // Methods of the future side.

  // True if Poll() would return true. Then all earlier writes of the completer are visible.
  bool IsReady() const { return (word_.load(std::memory_order_acquire) & (kReady | kCancelled)) != 0; }

  bool WasCancelled() const { return (word_.load(std::memory_order_relaxed) & kCancelled) != 0; }

  // False: the completion will wake `waker` once; it has replaced the waker before it. True:
  // completed or cancelled, and this call did not register `waker`. If the completion came before
  // the replacement, the previous waker has been woken or is about to be (StopWaking tells).
  bool Poll(const Waker& waker) {
    uint32_t word = word_.load(std::memory_order_acquire);
    if ((word & kWaker) != 0 && (word & kReady) == 0) {
      if (static_cast<Waker>(waker_) == waker) return false;
      if (!Clear(word, kWaker | kInTurns, kReady)) return true;
    }
    if ((word & (kReady | kCancelled)) != 0) return true;
    waker_ = waker;
    return !Set(word, kWaker, kReady);
  }

  // The same for a future side that takes turns with the promise side until the wait is over: on
  // one thread, or on several threads that another mechanism orders. Neither side needs an exchange
  // then.
  bool PollInTurns(const Waker& waker) {
    const uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & (kReady | kCancelled)) != 0) return true;
    waker_ = waker;
    word_.store(word | kWaker | kInTurns, std::memory_order_relaxed);
    return false;
  }

  // IsReady, and StopWaking if it is ready: `wake_is_owed` tells whether the waker has been called
  // or will be at any moment.
  bool EndWaitIfReady(bool& wake_is_owed) {
    const uint32_t word = word_.load(std::memory_order_acquire);
    // In READY the bit does not change any more, and in CANCELLED there is no waker.
    wake_is_owed = (word & kWaker) != 0;
    return (word & (kReady | kCancelled)) != 0;
  }

  // Takes the registered waker back. True: it will not be called, or there is none. False: the
  // completion saw it, and it has been called or will be at any moment; it must stay callable until
  // then.
  bool StopWaking() {
    uint32_t word = word_.load(std::memory_order_acquire);
    return (word & kWaker) == 0 || Clear(word, kWaker | kInTurns, kReady);
  }

  // True: the future side has given up before the completion, now or earlier; a registered waker
  // will not be called. False: it is completed.
  bool Cancel() {
    uint32_t word = word_.load(std::memory_order_acquire);
    while ((word & kReady) == 0) {
      if ((word & kCancelled) != 0) return true;
      // release: pairs with the acquire in IsCancelled and in the promise side's exchanges.
      // acquire: the promise side's waker.
      if (word_.compare_exchange_weak(word, (word | kCancelled) & ~(kWaker | kInTurns), std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        if constexpr (kTellsOfCancel) {
          if ((word & kCancelWaker) != 0) static_cast<Waker>(cancel_waker_).Wake();
        }
        return true;
      }
    }
    return false;
  }

  // The future side goes, and cancels if there is no completion. True: the promise side has gone
  // before, so the caller frees the memory.
  bool ReleaseFuture() {
    Cancel();
    return ReleaseEndedFuture();
  }
  // The same after Cancel() has returned true or false.
  bool ReleaseEndedFuture() { return Release(kFutureGone, kPromiseGone); }

  // Methods of the promise side.

  bool IsCancelled() const { return (word_.load(std::memory_order_acquire) & kCancelled) != 0; }

  // True: `waker` will be woken once if the future side cancels or goes before the completion; it
  // has replaced the waker before it. False: that has already happened.
  bool OnCancel(const Waker& waker) requires kTellsOfCancel {
    uint32_t word = word_.load(std::memory_order_acquire);
    if ((word & kCancelWaker) != 0 && (word & kCancelled) == 0) {
      if (static_cast<Waker>(cancel_waker_) == waker) return true;
      if (!Clear(word, kCancelWaker, kCancelled)) return false;
    }
    if ((word & kCancelled) != 0) return false;
    cancel_waker_ = waker;
    return Set(word, kCancelWaker, kCancelled);
  }

  // Like StopWaking, for the waker of OnCancel.
  bool StopCancelWaking() requires kTellsOfCancel {
    uint32_t word = word_.load(std::memory_order_acquire);
    return (word & kCancelWaker) == 0 || Clear(word, kCancelWaker, kCancelled);
  }

  // Publishes the writes of the caller, wakes the waiting consumer if there is one, and lets the
  // promise side go. Call it once, and no other method of the promise side after it.
  Completion Complete() {
    uint32_t word = word_.load(std::memory_order_acquire);
    if ((word & kInTurns) != 0) return CompleteInTurns(word);
    while ((word & kCancelled) == 0) {
      // Without a waiter, the promise side goes in the same exchange.
      const bool must_wake = (word & kWaker) != 0;
      const uint32_t next = word | kReady | (must_wake ? 0 : kPromiseGone);
      // release: publishes the value, pairs with the acquire in IsReady and Poll. acquire: the
      // waker, written before Poll's exchange.
      if (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (!must_wake) return {.accepted = true, .is_last = false};
      const Waker waker = static_cast<Waker>(waker_);
      const bool is_last = ReleasePromise();
      waker.Wake();
      return {.accepted = true, .is_last = is_last};
    }
    return {.accepted = false, .is_last = ReleasePromise()};
  }

  // The promise side goes without completing. True: the future side has gone before, so the caller
  // frees the memory.
  bool ReleasePromise() { return Release(kPromiseGone, kFutureGone); }

 private:
  static constexpr uint32_t kWaker = 1;      // waker_ is valid; the future side sets and clears it, not in READY
  static constexpr uint32_t kReady = 2;      // completed; the promise side sets it
  static constexpr uint32_t kCancelled = 4;  // given up; the future side sets it
  static constexpr uint32_t kCancelWaker =
      8;  // cancel_waker_ is valid; the promise side sets and clears it, not in CANCELLED
  static constexpr uint32_t kFutureGone = 16;   // the future side will not touch this again
  static constexpr uint32_t kPromiseGone = 32;  // the promise side will not touch this again
  static constexpr uint32_t kInTurns = 64;      // only with kWaker: the two sides take turns

  // The future side waits, and does not access the word before this thread has returned.
  Completion CompleteInTurns(uint32_t word) {
    const Waker waker = static_cast<Waker>(waker_);
    word_.store(word | kReady | kPromiseGone, std::memory_order_relaxed);
    waker.Wake();
    return {.accepted = true, .is_last = false};
  }

  // Sets or clears `bit` unless a bit of `unless` is set; returns whether it did. `word` is the
  // last known value, and is updated. release: publishes a waker to the other side. acquire: the
  // data that the other side published with `unless`.
  bool Set(uint32_t& word, uint32_t bit, uint32_t unless) {
    while ((word & unless) == 0) {
      if (word_.compare_exchange_weak(word, word | bit, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  bool Clear(uint32_t& word, uint32_t bit, uint32_t unless) {
    while ((word & unless) == 0) {
      if (word_.compare_exchange_weak(word, word & ~bit, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  // acq_rel: all accesses of the side that goes first happen before the other side frees the
  // memory.
  bool Release(uint32_t mine, uint32_t others) {
    if ((word_.load(std::memory_order_acquire) & others) != 0) return true;
    return (word_.fetch_or(mine, std::memory_order_acq_rel) & others) != 0;
  }

  // The only atomic: each side's exchanges pair with the loads and exchanges of the other side.
  typename Atomics::template Atomic<uint32_t> word_{0};
  // The future side writes it before it sets WAKER; the promise side reads it after it has set
  // READY over WAKER.
  typename Atomics::template Plain<Waker> waker_{};
  // The promise side writes it before it sets CANCEL_WAKER; the future side reads it after it has
  // set CANCELLED over that.
  struct NoWaker {};
  [[no_unique_address]] std::conditional_t<kTellsOfCancel, typename Atomics::template Plain<Waker>, NoWaker>
      cancel_waker_{};
};

}  // namespace fraktor::inline v0::future_internal

#endif  // FRAKTOR_UTILS_FUTURE_INTERNAL_FUTURE_WORD_H_
