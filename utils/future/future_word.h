// The state of one future, and the hand-over between the one who completes it and the one who waits.
//
// Two parties share a FutureWord, each on one thread at a time: the promise side and the future side. The value itself
// lies beside the word and is not known here. All decisions are bits of one atomic word:
//
//   EMPTY ──Poll──▸ WAKER ──Complete──▸ READY (the completer saw WAKER: it wakes, once)
//     │               └──Cancel──▸ CANCELLED
//     ├──Complete──▸ READY (nobody waits: it wakes nobody)
//     └──Cancel──▸ CANCELLED (and, if the promise side asked to be told, one wake for it)
//
// READY and CANCELLED exclude each other: whoever comes first wins, and the other is told. WAKER stays set in READY if
// and only if the completer saw it, so the future side can always say whether a wake-up is still to come (StopWaking).
// Two more bits say which party has gone; the second one to go frees the memory.
//
// Where the two parties are known to take turns for as long as one waits for the other, as an actor and the answers to
// its questions do, the exchanges are for nothing: PollInTurns.
//
// A template over the atomics (fraktor/utils/queue/atomics.h), so that a model checker can try all
// interleavings. Without kTellsOfCancel there is no OnCancel, and the word is smaller.
#ifndef FRAKTOR_UTILS_FUTURE_FUTURE_WORD_H_
#define FRAKTOR_UTILS_FUTURE_FUTURE_WORD_H_

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

template <class Atomics = StdAtomics, bool kTellsOfCancel = true>
class FutureWord {
 public:
  // What Complete() came to.
  struct Completion {
    bool accepted;  // false: the future side had cancelled before
    bool is_last;   // the future side has gone too: the caller frees the memory
  };

  FutureWord() = default;
  FutureWord(const FutureWord&) = delete;
  FutureWord& operator=(const FutureWord&) = delete;

  // The future side.

  // Whether Poll() would say so. What the completer wrote before is visible then.
  bool IsReady() const { return (word_.load(std::memory_order_acquire) & (kReady | kCancelled)) != 0; }

  bool WasCancelled() const { return (word_.load(std::memory_order_relaxed) & kCancelled) != 0; }

  // False: `waker`, and no other, will be woken once by the completion; it has replaced the one before. True: completed
  // or cancelled, and `waker` was not registered by this call; if the completion came before the replacement, the one
  // before has been woken or is about to be (StopWaking says so).
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

  // The same for a future side that takes turns with the promise side until the wait is over: on one thread, or handed
  // from thread to thread by somebody else, who orders what they do. Neither needs an exchange then.
  bool PollInTurns(const Waker& waker) {
    const uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & (kReady | kCancelled)) != 0) return true;
    waker_ = waker;
    word_.store(word | kWaker | kInTurns, std::memory_order_relaxed);
    return false;
  }

  // IsReady, and if it is, StopWaking too: whether the waker has been called or will be at any moment.
  bool EndWaitIfReady(bool& wake_is_owed) {
    const uint32_t word = word_.load(std::memory_order_acquire);
    // In READY it does not change any more, and in CANCELLED there is none.
    wake_is_owed = (word & kWaker) != 0;
    return (word & (kReady | kCancelled)) != 0;
  }

  // Takes the registered waker back. True: it is not going to be called (or there is none). False: the completion saw
  // it, and it has been called or will be at any moment; it must stay callable until then.
  bool StopWaking() {
    uint32_t word = word_.load(std::memory_order_acquire);
    return (word & kWaker) == 0 || Clear(word, kWaker | kInTurns, kReady);
  }

  // True: the future side has given up before it was completed (now or earlier); a registered waker will not be called.
  // False: it is completed.
  bool Cancel() {
    uint32_t word = word_.load(std::memory_order_acquire);
    while ((word & kReady) == 0) {
      if ((word & kCancelled) != 0) return true;
      // release: pairs with the acquire in IsCancelled and in the promise side's exchanges. acquire: the promise side's
      // waker.
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

  // The future side goes; cancels what is not completed. True: the promise side has gone before, the caller frees the
  // memory.
  bool ReleaseFuture() {
    Cancel();
    return ReleaseEndedFuture();
  }
  // The same after Cancel() has returned true or false.
  bool ReleaseEndedFuture() { return Release(kFutureGone, kPromiseGone); }

  // The promise side.

  bool IsCancelled() const { return (word_.load(std::memory_order_acquire) & kCancelled) != 0; }

  // True: `waker`, and no other, will be woken once if the future side cancels or goes before the completion. False: it
  // already has.
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

  // As StopWaking, for the waker of OnCancel.
  bool StopCancelWaking() requires kTellsOfCancel {
    uint32_t word = word_.load(std::memory_order_acquire);
    return (word & kCancelWaker) == 0 || Clear(word, kCancelWaker, kCancelled);
  }

  // Publishes what the caller wrote, wakes the waiting consumer if there is one, and lets the promise side go. Called
  // once, and nothing of the promise side after it.
  Completion Complete() {
    uint32_t word = word_.load(std::memory_order_acquire);
    if ((word & kInTurns) != 0) return CompleteInTurns(word);
    while ((word & kCancelled) == 0) {
      // With nobody to wake, the promise side goes in the same step.
      const bool must_wake = (word & kWaker) != 0;
      const uint32_t next = word | kReady | (must_wake ? 0 : kPromiseGone);
      // release: publishes the value, pairs with the acquire in IsReady and Poll. acquire: the waker, written before
      // Poll's exchange.
      if (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      if (!must_wake) return {.accepted = true, .is_last = false};
      const Waker waker = static_cast<Waker>(waker_);
      const bool is_last = ReleasePromise();
      waker.Wake();
      return {.accepted = true, .is_last = is_last};
    }
    return {.accepted = false, .is_last = ReleasePromise()};
  }

  // The promise side goes without completing anything. True: the future side has gone before, the caller frees the
  // memory.
  bool ReleasePromise() { return Release(kPromiseGone, kFutureGone); }

 private:
  static constexpr uint32_t kWaker = 1;      // waker_ is valid; set and cleared by the future side, not in READY
  static constexpr uint32_t kReady = 2;      // completed; set by the promise side
  static constexpr uint32_t kCancelled = 4;  // given up; set by the future side
  static constexpr uint32_t kCancelWaker =
      8;  // cancel_waker_ is valid; set and cleared by the promise side, not in CANCELLED
  static constexpr uint32_t kFutureGone = 16;   // the future side will not touch this again
  static constexpr uint32_t kPromiseGone = 32;  // the promise side will not touch this again
  static constexpr uint32_t kInTurns = 64;      // with kWaker only: the other side does nothing meanwhile

  // The future side waits, and will not look before this thread has returned.
  Completion CompleteInTurns(uint32_t word) {
    const Waker waker = static_cast<Waker>(waker_);
    word_.store(word | kReady | kPromiseGone, std::memory_order_relaxed);
    waker.Wake();
    return {.accepted = true, .is_last = false};
  }

  // Sets or clears `bit` unless one of `unless` is set; says whether it did. `word` is the last known value, and is
  // brought up to date. release: publishes a waker to the other side. acquire: whatever the other side published with
  // `unless`.
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

  // acq_rel: all that the one who goes first did to the memory happens before the other one frees it.
  bool Release(uint32_t mine, uint32_t others) {
    if ((word_.load(std::memory_order_acquire) & others) != 0) return true;
    return (word_.fetch_or(mine, std::memory_order_acq_rel) & others) != 0;
  }

  // The only atomic: each side's exchanges pair with the loads and exchanges of the other side.
  typename Atomics::template Atomic<uint32_t> word_{0};
  // Written by the future side before it sets WAKER; read by the promise side after it set READY over WAKER.
  typename Atomics::template Plain<Waker> waker_{};
  // Written by the promise side before it sets CANCEL_WAKER; read by the future side after it set CANCELLED over that.
  struct NoWaker {};
  [[no_unique_address]] std::conditional_t<kTellsOfCancel, typename Atomics::template Plain<Waker>, NoWaker>
      cancel_waker_{};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_FUTURE_WORD_H_
