// Which atomics a concurrent structure is built from.
//
// The concurrent classes of utils are templates over such a policy. Programs use StdAtomics, which costs nothing; a
// model checker puts instrumented types in its place and tries the interleavings.
//
//   template <typename Atomics = StdAtomics>
//   class BasicFlag {
//     typename Atomics::template Atomic<bool> set_{false};    // std::atomic<bool>
//     typename Atomics::template Plain<int> value_{0};        // int
//   };
//   using Flag = BasicFlag<>;
//
// A policy has two member templates:
// - Atomic<T>: the interface of std::atomic<T> with explicit memory orders: load, store, exchange,
//   compare_exchange_weak and _strong, fetch_add, fetch_sub, fetch_or, fetch_and.
// - Plain<T>: an ordinary variable that threads hand over to each other by means of an Atomic. It is made from a T,
//   read by conversion to T and written by assignment from T; nothing else is done with it (no address, no reference,
//   no compound assignment), so that a checker may see each access and report those that no Atomic orders.
#ifndef FRAKTOR_UTILS_QUEUE_ATOMICS_H_
#define FRAKTOR_UTILS_QUEUE_ATOMICS_H_

#include <atomic>

namespace fraktor::inline v0 {

// The policy of programs: the standard's atomics and bare variables.
struct StdAtomics {
  template <typename T>
  using Atomic = std::atomic<T>;

  template <typename T>
  using Plain = T;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_QUEUE_ATOMICS_H_
