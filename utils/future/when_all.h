// WhenAll: combines several futures into one.
//
//   Future<std::vector<int>> all = WhenAll(std::move(futures));                         // a vector of Future<int>
//   Future<std::tuple<User, Cart>> both = WhenAll(LoadUser(id), LoadCart(id));
//   Future<void> flushed = WhenAll(std::move(flushes));                                 // a vector of Future<void>
//   Future<std::vector<absl::StatusOr<int>>> each = WhenAllResults(std::move(more));    // errors one by one
//
// The values have the order of the futures. WhenAll waits for all futures, even after an error.
// Then it fails with the error of the first future in that order that has one, so the result does
// not depend on timing. (To stop early, look at the futures yourself, or drop the whole.) Without
// futures it is ready at once. In a tuple, the value of a Future<void> is std::monostate.
//
// The completion of the last part wakes the consumer, exactly once. Dropping or cancelling the
// whole drops or cancels each part. Maps of the parts run when the whole is taken, on that thread.
//
// Costs: one allocation, a vector, and one atomic decrement for each part. A WhenAll inside a
// WhenAll is a nested call when it is polled: do not nest them thousands deep.
#ifndef FRAKTOR_UTILS_FUTURE_WHEN_ALL_H_
#define FRAKTOR_UTILS_FUTURE_WHEN_ALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/internal/future_word.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0 {

namespace future_internal {

// Counts the parts down and completes the whole. Lives until the whole has been dropped and no part
// will call its waker any more.
template <class T>
class AllSource : public FutureSource<T> {
 public:
  bool IsReady() const final { return word_.IsReady(); }
  bool Poll(const Waker& waker) final { return word_.Poll(waker); }
  bool StopWaking() final { return word_.StopWaking(); }
  bool Cancel() final {
    if (!word_.Cancel()) return false;
    LetGoOfParts();
    return true;
  }
  // The whole is as late as its last part.
  const char* AwaitsThisThread() const final { return word_.IsReady() ? nullptr : PartAwaitsThisThread(); }
  FutureResult<T> Take() final {
    if (word_.WasCancelled()) return FutureCancelledError();
    return TakeParts();
  }
  void Drop() noexcept final {
    word_.Cancel();
    LetGoOfParts();
    Release();
  }

 protected:
  AllSource() = default;

  // The number of parts.
  virtual size_t CountParts() const = 0;
  // Polls each part with the waker. Returns how many are ready, and marks those.
  virtual size_t PollParts(const Waker& waker) = 0;
  // Takes the waker back from each part that was not marked, and drops all parts. Returns how many
  // will not call it.
  virtual size_t DropParts() = 0;
  // The reason of the first part that awaits this thread, or null. Not called after DropParts.
  virtual const char* PartAwaitsThisThread() const = 0;
  virtual FutureResult<T> TakeParts() = 0;

  // The constructor of a derived class calls this once, after it has set up the parts.
  void Arm() {
    const size_t count = CountParts();
    // One more than the number of parts, so that the whole is not completed while they are being
    // polled.
    remaining_.store(count + 1, std::memory_order_relaxed);
    references_.fetch_add(count, std::memory_order_relaxed);
    const size_t ready = PollParts(Waker{.function = &OnPart, .target = this});
    references_.fetch_sub(ready, std::memory_order_acq_rel);  // not the last ones: the whole still has one
    CountDown(ready + 1);
  }

 private:
  static void OnPart(void* target, uint64_t, uint64_t) noexcept {
    auto* const source = static_cast<AllSource*>(target);
    source->CountDown(1);
    source->Release();
  }

  void CountDown(size_t count) {
    if (remaining_.fetch_sub(count, std::memory_order_acq_rel) == count) word_.Complete();
  }

  void LetGoOfParts() {
    if (is_let_go_) return;
    is_let_go_ = true;
    const size_t returned = DropParts();
    references_.fetch_sub(returned, std::memory_order_acq_rel);  // not the last ones: the whole still has one
  }

  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  FutureWord<> word_;
  // acq_rel: the thread that counts the last part has seen all others, and publishes them by
  // completing the word.
  std::atomic<size_t> remaining_{0};
  // One for the whole, and one for each part that may call OnPart. acq_rel: pairs with itself, for
  // the deletion.
  std::atomic<size_t> references_{1};
  bool is_let_go_ = false;
};

// One part: its future, and whether the future holds a waker of the whole.
template <class T>
struct AllPart {
  explicit AllPart(Future<T> f) : future(std::move(f)), node(&future.node()) {}

  // Returns 1 if it is ready.
  size_t Poll(const Waker& waker) {
    is_waiting = !future.Poll(waker);
    return is_waiting ? 0 : 1;
  }
  // Returns 1 if it had the waker and will not call it.
  size_t Drop() {
    if (!future.valid()) return 0;
    const size_t returned = is_waiting && future.StopWaking() ? 1 : 0;
    future = Future<T>();
    return returned;
  }

  // The part must not have been dropped.
  const char* AwaitsThisThread() const { return node->IsReady() ? nullptr : node->AwaitsThisThread(); }

  Future<T> future;
  const FutureNode* node;
  bool is_waiting = false;
};

template <class T, class Whole>
class AllOfVector : public AllSource<Whole> {
 public:
  explicit AllOfVector(std::vector<Future<T>> futures) {
    parts_.reserve(futures.size());
    for (Future<T>& future : futures) parts_.emplace_back(std::move(future));
    this->Arm();
  }

 protected:
  size_t CountParts() const override { return parts_.size(); }
  size_t PollParts(const Waker& waker) override {
    size_t ready = 0;
    for (AllPart<T>& part : parts_) ready += part.Poll(waker);
    return ready;
  }
  size_t DropParts() override {
    size_t returned = 0;
    for (AllPart<T>& part : parts_) returned += part.Drop();
    return returned;
  }
  const char* PartAwaitsThisThread() const override {
    for (const AllPart<T>& part : parts_) {
      if (const char* const why = part.AwaitsThisThread()) return why;
    }
    return nullptr;
  }

  std::vector<AllPart<T>> parts_;
};

template <class T>
class AllValues final : public AllOfVector<T, std::vector<T>> {
 public:
  using AllOfVector<T, std::vector<T>>::AllOfVector;

 private:
  absl::StatusOr<std::vector<T>> TakeParts() override {
    std::vector<T> values;
    values.reserve(this->parts_.size());
    absl::Status first_error;
    for (AllPart<T>& part : this->parts_) {
      absl::StatusOr<T> result = part.future.Take();
      if (result.ok()) {
        if (first_error.ok()) values.push_back(*std::move(result));
      } else if (first_error.ok()) {
        first_error = std::move(result).status();
      }
    }
    if (!first_error.ok()) return first_error;
    return values;
  }
};

template <>
class AllValues<void> final : public AllOfVector<void, void> {
 public:
  using AllOfVector<void, void>::AllOfVector;

 private:
  absl::Status TakeParts() override {
    absl::Status first_error;
    for (AllPart<void>& part : this->parts_) first_error.Update(part.future.Take());
    return first_error;
  }
};

template <class T>
class AllResults final : public AllOfVector<T, std::vector<FutureResult<T>>> {
 public:
  using AllOfVector<T, std::vector<FutureResult<T>>>::AllOfVector;

 private:
  absl::StatusOr<std::vector<FutureResult<T>>> TakeParts() override {
    std::vector<FutureResult<T>> results;
    results.reserve(this->parts_.size());
    for (AllPart<T>& part : this->parts_) results.push_back(part.future.Take());
    return results;
  }
};

template <class T>
using TupleElement = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class... Ts>
class AllOfTuple final : public AllSource<std::tuple<TupleElement<Ts>...>> {
 public:
  explicit AllOfTuple(Future<Ts>... futures) : parts_(AllPart<Ts>(std::move(futures))...) { this->Arm(); }

 private:
  using Whole = std::tuple<TupleElement<Ts>...>;

  size_t CountParts() const override { return sizeof...(Ts); }
  size_t PollParts(const Waker& waker) override {
    return std::apply([&](auto&... part) { return (size_t{0} + ... + part.Poll(waker)); }, parts_);
  }
  size_t DropParts() override {
    return std::apply([](auto&... part) { return (size_t{0} + ... + part.Drop()); }, parts_);
  }
  const char* PartAwaitsThisThread() const override {
    const char* why = nullptr;
    std::apply([&](const auto&... part) { ((why = why != nullptr ? why : part.AwaitsThisThread()), ...); }, parts_);
    return why;
  }
  absl::StatusOr<Whole> TakeParts() override {
    // Braces instead of parentheses, so that the parts are taken from left to right.
    std::tuple<FutureResult<Ts>...> results =
        std::apply([](auto&... part) { return std::tuple<FutureResult<Ts>...>{part.future.Take()...}; }, parts_);
    absl::Status first_error;
    std::apply([&](auto&... result) { (first_error.Update(StatusOf(result)), ...); }, results);
    if (!first_error.ok()) return first_error;
    return std::apply([](auto&... result) { return Whole{ValueOf(result)...}; }, results);
  }

  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <class T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }
  static std::monostate ValueOf(absl::Status&) { return {}; }
  template <class T>
  static T ValueOf(absl::StatusOr<T>& result) {
    return *std::move(result);
  }

  std::tuple<AllPart<Ts>...> parts_;
};

}  // namespace future_internal

// All values, or the first error in the order of the futures. For void: OK, or that error.
template <class T>
Future<std::vector<T>> WhenAll(std::vector<Future<T>> futures) {
  return Future<std::vector<T>>::FromSource(*new future_internal::AllValues<T>(std::move(futures)));
}
inline Future<void> WhenAll(std::vector<Future<void>> futures) {
  return Future<void>::FromSource(*new future_internal::AllValues<void>(std::move(futures)));
}

// Each result by itself. The whole never fails.
template <class T>
Future<std::vector<FutureResult<T>>> WhenAllResults(std::vector<Future<T>> futures) {
  return Future<std::vector<FutureResult<T>>>::FromSource(*new future_internal::AllResults<T>(std::move(futures)));
}

// A tuple of the values, or the first error from left to right.
template <class... Ts>
Future<std::tuple<future_internal::TupleElement<Ts>...>> WhenAll(Future<Ts>... futures) {
  return Future<std::tuple<future_internal::TupleElement<Ts>...>>::FromSource(
      *new future_internal::AllOfTuple<Ts...>(std::move(futures)...));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_WHEN_ALL_H_
