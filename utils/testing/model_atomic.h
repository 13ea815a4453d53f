// The variables of a model: atomics, plain variables and semaphores. The model checker sees every
// access to them.
//
//   template <typename Atomics>
//   struct Mail {
//     typename Atomics::template Plain<int> text{0};
//     typename Atomics::template Atomic<bool> sent{false};
//   };
//
//   Mail<StdAtomics> for_programs;
//   Mail<ModelAtomics> for_the_checker;               // only inside CheckInterleavings
//
// See interleaving.h for the checker. Each object belongs to the execution in which it was made.
//
// Thread safety: the model threads of one CheckInterleavings use them; one thread runs at a time.
#ifndef FRAKTOR_UTILS_TESTING_MODEL_ATOMIC_H_
#define FRAKTOR_UTILS_TESTING_MODEL_ATOMIC_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fraktor/utils/testing/model_engine.h"

namespace fraktor::inline v0 {

namespace model_internal {

template <typename T>
uint64_t ToBits(const T& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
constexpr ValueType TypeOf() {
  ValueKind kind = ValueKind::kUnsigned;
  if constexpr (std::is_same_v<T, bool>) kind = ValueKind::kBool;
  if constexpr (std::is_signed_v<T>) kind = ValueKind::kSigned;
  if constexpr (std::is_pointer_v<T>) kind = ValueKind::kPointer;
  return {.kind = kind, .bytes = static_cast<uint8_t>(sizeof(T))};
}

// The failure order of a compare_exchange that was given a single order.
constexpr std::memory_order FailureOrder(std::memory_order order) {
  if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
  if (order == std::memory_order_release) return std::memory_order_relaxed;
  return order;
}

}  // namespace model_internal

// std::atomic<T> under the model checker: the same operations with the same meaning. The last
// parameter of each operation is the place of the call, for the trail; callers never pass it.
template <typename T>
class ModelAtomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "an atomic is copied as up to eight bytes");

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  // constexpr like the constructors of std::atomic, so that classes made of either may be
  // constexpr.
  constexpr ModelAtomic() : ModelAtomic(T()) {}
  constexpr ModelAtomic(T value)  // NOLINT(google-explicit-constructor): as std::atomic
      : handle_(model_internal::NewLocation(model_internal::ToBits(value), model_internal::TypeOf<T>())) {}
  ~ModelAtomic() { model_internal::EndLocation(handle_); }

  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) const {
    return model_internal::FromBits<T>(model_internal::Load(handle_, order, site));
  }

  void store(T value, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    model_internal::Store(handle_, model_internal::ToBits(value), order, site);
  }

  T exchange(T value, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    return Modify(
        "exchange", [](T, T operand) { return operand; }, value, order, site);
  }

  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure,
                             ModelSite site = ModelSite::Here()) {
    return CompareExchange(model_internal::CompareExchangeKind::kWeak, expected, desired, success, failure, site);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst,
                             ModelSite site = ModelSite::Here()) {
    return CompareExchange(model_internal::CompareExchangeKind::kWeak, expected, desired, order,
                           model_internal::FailureOrder(order), site);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               ModelSite site = ModelSite::Here()) {
    return CompareExchange(model_internal::CompareExchangeKind::kStrong, expected, desired, success, failure, site);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order = std::memory_order_seq_cst,
                               ModelSite site = ModelSite::Here()) {
    return CompareExchange(model_internal::CompareExchangeKind::kStrong, expected, desired, order,
                           model_internal::FailureOrder(order), site);
  }

  // For integers, and for pointers with a difference as the operand.
  template <typename U>
  T fetch_add(U operand, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    return Modify(
        "fetch_add", [](T value, Operand by) { return Add(value, by); }, static_cast<Operand>(operand), order, site);
  }
  template <typename U>
  T fetch_sub(U operand, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    return Modify(
        "fetch_sub", [](T value, Operand by) { return Subtract(value, by); }, static_cast<Operand>(operand), order,
        site);
  }

  // For integers.
  T fetch_and(T operand, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    return Modify(
        "fetch_and", [](T value, T by) { return static_cast<T>(value & by); }, operand, order, site);
  }
  T fetch_or(T operand, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    return Modify(
        "fetch_or", [](T value, T by) { return static_cast<T>(value | by); }, operand, order, site);
  }
  T fetch_xor(T operand, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) {
    return Modify(
        "fetch_xor", [](T value, T by) { return static_cast<T>(value ^ by); }, operand, order, site);
  }

  // Blocks while the value is `old`, until it is notified; then checks the value again.
  void wait(T old, std::memory_order order = std::memory_order_seq_cst, ModelSite site = ModelSite::Here()) const {
    model_internal::Wait(handle_, model_internal::ToBits(old), order, site);
  }
  void notify_one(ModelSite site = ModelSite::Here()) {
    model_internal::Notify(handle_, model_internal::NotifyKind::kOne, site);
  }
  void notify_all(ModelSite site = ModelSite::Here()) {
    model_internal::Notify(handle_, model_internal::NotifyKind::kAll, site);
  }

  operator T() const { return load(std::memory_order_seq_cst, {}); }  // NOLINT(google-explicit-constructor)
  T operator=(T value) {  // NOLINT(misc-unconventional-assign-operator): as std::atomic
    store(value, std::memory_order_seq_cst, {});
    return value;
  }
  T operator++() { return Add(fetch_add(1, std::memory_order_seq_cst, {}), 1); }
  T operator++(int) { return fetch_add(1, std::memory_order_seq_cst, {}); }
  T operator--() { return Subtract(fetch_sub(1, std::memory_order_seq_cst, {}), 1); }
  T operator--(int) { return fetch_sub(1, std::memory_order_seq_cst, {}); }
  template <typename U>
  T operator+=(U operand) {
    return Add(fetch_add(operand, std::memory_order_seq_cst, {}), static_cast<Operand>(operand));
  }
  template <typename U>
  T operator-=(U operand) {
    return Subtract(fetch_sub(operand, std::memory_order_seq_cst, {}), static_cast<Operand>(operand));
  }

  // The name that the trail shows instead of a number. `name` is not copied.
  ModelAtomic& Named(const char* name) {
    model_internal::NameLocation(handle_, name);
    return *this;
  }

 private:
  using Operand = std::conditional_t<std::is_pointer_v<T>, std::ptrdiff_t, T>;

  // Wraps around, as std::atomic does.
  static T Add(T value, Operand by) {
    if constexpr (std::is_pointer_v<T>) {
      return value + by;
    } else {
      return static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(by));
    }
  }
  static T Subtract(T value, Operand by) {
    if constexpr (std::is_pointer_v<T>) {
      return value - by;
    } else {
      return static_cast<T>(static_cast<uint64_t>(value) - static_cast<uint64_t>(by));
    }
  }

  template <typename Function, typename By>
  T Modify(const char* name, Function, By operand, std::memory_order order, ModelSite site) {
    static_assert(std::is_empty_v<Function> && std::is_default_constructible_v<Function>);
    constexpr model_internal::Modify kModify = [](uint64_t current, uint64_t by) {
      return model_internal::ToBits(Function()(model_internal::FromBits<T>(current), model_internal::FromBits<By>(by)));
    };
    return model_internal::FromBits<T>(
        model_internal::ReadModifyWrite(handle_, name, kModify, model_internal::ToBits(operand), order, site));
  }

  bool CompareExchange(model_internal::CompareExchangeKind kind, T& expected, T desired, std::memory_order success,
                       std::memory_order failure, ModelSite site) {
    uint64_t bits = model_internal::ToBits(expected);
    const bool exchanged =
        model_internal::CompareExchange(handle_, kind, bits, model_internal::ToBits(desired), success, failure, site);
    if (!exchanged) expected = model_internal::FromBits<T>(bits);
    return exchanged;
  }

  model_internal::Handle handle_;
};

// A variable that is not atomic. Two accesses of different threads, at least one of them a write,
// that nothing orders are a failure (a data race). A copy is a read of the original and a new
// variable.
template <typename T>
class ModelPlain {
 public:
  constexpr ModelPlain() : ModelPlain(T()) {}
  constexpr ModelPlain(T value)  // NOLINT(google-explicit-constructor): stands for a T
      : value_(std::move(value)) {
    model_internal::NewPlain(state_);
  }
  ModelPlain(const ModelPlain& other) : ModelPlain(other.Get()) {}
  ~ModelPlain() { model_internal::EndPlain(state_); }

  ModelPlain& operator=(const ModelPlain& other) { return *this = other.Get(); }
  ModelPlain& operator=(T value) {
    model_internal::PlainWrite(state_);
    value_ = std::move(value);
    return *this;
  }

  T Get() const {
    model_internal::PlainRead(state_);
    return value_;
  }
  operator T() const { return Get(); }  // NOLINT(google-explicit-constructor): stands for a T

  T operator->() const requires(std::is_pointer_v<T>) { return Get(); }

  // A read and then a write.
  ModelPlain& operator++() { return *this += 1; }
  ModelPlain& operator--() { return *this -= 1; }
  T operator++(int) {
    T old = Get();
    *this += 1;
    return old;
  }
  T operator--(int) {
    T old = Get();
    *this -= 1;
    return old;
  }
  template <typename U>
  ModelPlain& operator+=(const U& operand) {
    return *this = static_cast<T>(Get() + operand);
  }
  template <typename U>
  ModelPlain& operator-=(const U& operand) {
    return *this = static_cast<T>(Get() - operand);
  }

 private:
  mutable model_internal::PlainState state_;
  T value_;
};

// A number of permits. A thread that waits for a permit is blocked; if no permit can ever arrive,
// the execution fails as a deadlock. It stands for anything that a thread parks on; with max = 1,
// for a park token.
//
// An acquire synchronizes with every release before it, not only with the one whose permit it gets.
class ModelSemaphore {
 public:
  explicit ModelSemaphore(int permits = 0, int max = 1 << 30)
      : max_(static_cast<uint64_t>(max)),
        handle_(model_internal::NewLocation(static_cast<uint64_t>(permits), model_internal::TypeOf<int>())) {
    model_internal::NameLocation(handle_, "semaphore");
  }
  ~ModelSemaphore() { model_internal::EndLocation(handle_); }

  ModelSemaphore(const ModelSemaphore&) = delete;
  ModelSemaphore& operator=(const ModelSemaphore&) = delete;

  // Adds a permit, unless there already are `max`.
  void Release(ModelSite site = ModelSite::Here()) {
    model_internal::ReadModifyWrite(
        handle_, "Release", [](uint64_t permits, uint64_t max) { return permits < max ? permits + 1 : permits; }, max_,
        std::memory_order_acq_rel, site);
  }

  // Waits for a permit and takes it.
  void Acquire(ModelSite site = ModelSite::Here()) { model_internal::AcquirePermit(handle_, site); }

  ModelSemaphore& Named(const char* name) {
    model_internal::NameLocation(handle_, name);
    return *this;
  }

 private:
  uint64_t max_;
  model_internal::Handle handle_;
};

// The policy that puts model variables into a class that is a template over its atomics.
struct ModelAtomics {
  template <typename T>
  using Atomic = ModelAtomic<T>;

  template <typename T>
  using Plain = ModelPlain<T>;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_MODEL_ATOMIC_H_
