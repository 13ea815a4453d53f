// SharedAccess<T>: a value that can be reached only while its lock is held.
//
//   SharedAccess<absl::flat_hash_map<std::string, int>> counts;
//   counts.WithWrite([](auto& map) { ++map["a"]; });
//   int a = counts.WithRead([](const auto& map) { auto it = map.find("a"); return it == map.end() ? 0 : it->second; });
//
// Both functions return the result of the given function. They reject, at compile time, results
// that plainly point into the value: references, pointers, and views such as std::string_view and
// std::span. They do not see a view inside a struct, or an iterator: return a copy.
//
// Thread safety: any thread may call both. Readers run at the same time, a writer runs alone. The
// given function must not use the same SharedAccess again: that is a deadlock. An exception
// releases the lock and propagates.
#ifndef FRAKTOR_UTILS_SHARED_SHARED_ACCESS_H_
#define FRAKTOR_UTILS_SHARED_SHARED_ACCESS_H_

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/shared/shared_mutex.h"

namespace fraktor::inline v0 {

namespace shared_internal {

template <class T>
inline constexpr bool kIsReferenceWrapper = false;
template <class T>
inline constexpr bool kIsReferenceWrapper<std::reference_wrapper<T>> = true;

// A trivially copyable class with data() and size() is a view; std::array is the exception.
template <class T>
concept View = std::is_trivially_copyable_v<T> && requires(const T& view) {
  view.data();
  view.size();
} && !requires {
  std::tuple_size<T>::value;
};

template <class T>
concept MayLeaveTheLock = std::is_void_v<T> ||
    (!std::is_reference_v<T> && !std::is_pointer_v<T> && !kIsReferenceWrapper<T> && !View<T>);

}  // namespace shared_internal

template <class T>
class SharedAccess {
 public:
  SharedAccess() = default;
  template <class... Args>
  requires(sizeof...(Args) > 0 && std::is_constructible_v<T, Args...>) explicit SharedAccess(Args&&... args)
      : value_(std::forward<Args>(args)...) {}

  SharedAccess(const SharedAccess&) = delete;
  SharedAccess& operator=(const SharedAccess&) = delete;

  // Calls `fn(const T&)`. Other readers may run at the same time, a writer may not.
  template <class Fn>
  auto WithRead(Fn&& fn) const -> std::invoke_result_t<Fn, const T&> {
    static_assert(shared_internal::MayLeaveTheLock<std::invoke_result_t<Fn, const T&>>,
                  "the result would point into the value after the lock is released: return a copy");
    ReaderMutexLock lock(mutex_);
    return std::invoke(std::forward<Fn>(fn), value_);
  }

  // Calls `fn(T&)`. No other reader or writer runs at the same time.
  template <class Fn>
  auto WithWrite(Fn&& fn) -> std::invoke_result_t<Fn, T&> {
    static_assert(shared_internal::MayLeaveTheLock<std::invoke_result_t<Fn, T&>>,
                  "the result would point into the value after the lock is released: return a copy");
    WriterMutexLock lock(mutex_);
    return std::invoke(std::forward<Fn>(fn), value_);
  }

 private:
  mutable SharedMutex mutex_;
  T value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_SHARED_SHARED_ACCESS_H_
