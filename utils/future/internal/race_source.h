// RaceSource: the common part of WithTimeout and WithStop. A future (the inner one) races against a
// rival, such as a timer or a stop token. The first of them completes the outer future.
//
// The derived class, Self, calls Race once, after the outer future has its owner, and then arms its
// rival, which calls WinAsRival. Self has `void DropRival()`, after which the rival does nothing
// more, and `FutureResult<R> TakeFrom(bool rival_won)`, which returns the result of the outer
// future. Both run on the side of the outer future. A rival that may run while the outer future is
// dropped holds a reference (AddReference, Release).
//
// Called by: with_timeout.h and with_stop.h. Thread: as any future; the rival may run on any
// thread.
#ifndef FRAKTOR_UTILS_FUTURE_INTERNAL_RACE_SOURCE_H_
#define FRAKTOR_UTILS_FUTURE_INTERNAL_RACE_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/internal/future_word.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0::future_internal {

// The inner future gives a T, the outer one an R.
template <class Self, class T, class R>
class RaceSource : public FutureSource<R> {
 public:
  bool IsReady() const final { return word_.IsReady(); }
  bool Poll(const Waker& waker) final { return word_.Poll(waker); }
  bool StopWaking() final { return word_.StopWaking(); }
  bool Cancel() final {
    if (!word_.Cancel()) return false;
    DropBoth();
    return true;
  }
  FutureResult<R> Take() final {
    if (word_.WasCancelled()) return FutureCancelledError();
    // Acquire: pairs with the acq_rel of IsFirst. The word has ordered the writes of the winner
    // already.
    return self().TakeFrom(winner_.load(std::memory_order_acquire) == Winner::kRival);
  }
  void Drop() noexcept final {
    word_.Cancel();
    DropBoth();
    Release();
  }

 protected:
  explicit RaceSource(Future<T> inner) : inner_(std::move(inner)), node_(inner_.node()) {}
  ~RaceSource() override = default;

  // Waits for the inner future. False if it was ready: then the race is over.
  bool Race() {
    AddReference();
    is_polled_ = !inner_.Poll(Waker{.function = &OnInner, .target = this});
    if (is_polled_) return true;
    references_.fetch_sub(1, std::memory_order_relaxed);  // Not the last: the outer future has one.
    if (IsFirst(Winner::kInner)) word_.Complete();
    return false;
  }

  // The rival completes the outer future, if it is first. `before` runs before that, and may use
  // the inner future.
  template <class Before>
  void WinAsRival(Before before) {
    if (!IsFirst(Winner::kRival)) return;
    before();
    word_.Complete();
  }

  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Future<T>& inner() { return inner_; }
  // For AwaitsThisThread of a race that only the inner future is certain to end.
  const char* InnerAwaitsThisThread() const { return word_.IsReady() ? nullptr : node_.AwaitsThisThread(); }

 private:
  enum class Winner : uint8_t { kNone, kInner, kRival };

  static void OnInner(void* target, uint64_t, uint64_t) noexcept {
    auto* const source = static_cast<RaceSource*>(target);
    if (source->IsFirst(Winner::kInner)) source->word_.Complete();
    source->Release();
  }

  bool IsFirst(Winner winner) {
    Winner none = Winner::kNone;
    return winner_.compare_exchange_strong(none, winner, std::memory_order_acq_rel);
  }

  // Called on the side of the outer future.
  void DropBoth() {
    self().DropRival();
    if (std::exchange(is_polled_, false) && inner_.valid() && inner_.StopWaking()) {
      references_.fetch_sub(1, std::memory_order_acq_rel);  // Not the last: the outer future has one.
    }
    inner_ = Future<T>();
  }

  Self& self() { return static_cast<Self&>(*this); }

  Future<T> inner_;
  FutureNode& node_;  // The node of the inner future; it lives until the outer future is ready.
  FutureWord<> word_;
  // The first side to complete the outer future. Pairs with itself: only one of the two completes
  // the word.
  std::atomic<Winner> winner_{Winner::kNone};
  // One for the outer future, one for the inner future that has our waker, and those of the rival.
  // acq_rel: pairs with itself, for the deletion.
  std::atomic<int> references_{1};
  bool is_polled_ = false;
};

}  // namespace fraktor::inline v0::future_internal

#endif  // FRAKTOR_UTILS_FUTURE_INTERNAL_RACE_SOURCE_H_
