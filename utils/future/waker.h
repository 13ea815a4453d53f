// Waker: how a future tells its consumer to poll again. A small value that names a function and what to call it with.
//
//   void Ring(void* target, uint64_t slot, uint64_t generation) noexcept {
//     static_cast<Mailroom*>(target)->PostSystemMessage(slot, generation);
//   }
//   Waker waker{.function = &Ring, .target = &mailroom, .first = slot, .second = generation};
//
// The function is called on whatever thread completes the future, often an I/O thread: it posts something, and does no
// work of its own. It must not throw. It never gets a coroutine handle: the words say who waits (a slot, its
// generation, a wait's number), and the receiver finds out in his own turn whether that is still true. So a late
// wake-up is harmless.
//
// Thread safety: a value; Wake() may be called from any thread if the function may.
#ifndef FRAKTOR_UTILS_FUTURE_WAKER_H_
#define FRAKTOR_UTILS_FUTURE_WAKER_H_

#include <cstdint>
#include <type_traits>

namespace fraktor::inline v0 {

struct Waker {
  using Function = void (*)(void* target, uint64_t first, uint64_t second) noexcept;

  Function function = nullptr;
  void* target = nullptr;
  uint64_t first = 0;
  uint64_t second = 0;

  // Calls the function. A Waker without one does nothing.
  void Wake() const noexcept {
    if (function != nullptr) function(target, first, second);
  }

  friend bool operator==(const Waker&, const Waker&) = default;
};
static_assert(std::is_trivially_copyable_v<Waker> && sizeof(Waker) == 32);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_WAKER_H_
