// StdAtomics: the atomics that a concurrent class is built from.
//
//   template <typename Atomics = StdAtomics>
//   class BasicFlag {
//    public:
//     void Set(int value) {
//       value_ = value;
//       is_set_.store(true, std::memory_order_release);        // pairs with the acquire of a reader
//     }
//
//    private:
//     typename Atomics::template Atomic<bool> is_set_{false};  // std::atomic<bool>
//     typename Atomics::template Plain<int> value_{0};         // int
//   };
//   using Flag = BasicFlag<>;
//
// The concurrent classes of utils are templates over such a policy. Programs use StdAtomics, which
// costs nothing. The model checker (utils/testing) substitutes instrumented types and tries all
// interleavings.
//
// A policy has two member templates:
// - Atomic<T> has the interface of std::atomic<T> with explicit memory orders: load, store,
//   exchange, compare_exchange_weak and _strong, fetch_add, fetch_sub, fetch_or, fetch_and.
// - Plain<T> is an ordinary variable that threads hand over to each other by means of an Atomic. It
//   is made from a T, read by conversion to T and written by assignment from T. Nothing else is
//   done with it (no address, no reference, no compound assignment), so that a checker sees each
//   access and reports an access that no Atomic orders.
#ifndef FRAKTOR_UTILS_QUEUE_INTERNAL_ATOMICS_H_
#define FRAKTOR_UTILS_QUEUE_INTERNAL_ATOMICS_H_

#include <atomic>

namespace fraktor::inline v0::utils_internal {

// The policy of programs: standard atomics and ordinary variables.
struct StdAtomics {
  template <typename T>
  using Atomic = std::atomic<T>;

  template <typename T>
  using Plain = T;
};

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_QUEUE_INTERNAL_ATOMICS_H_
