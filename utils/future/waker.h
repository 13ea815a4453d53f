// Waker: tells the consumer of a future to poll again. A small value: a function and its arguments.
//
//   void PostWakeUp(void* target, uint64_t slot, uint64_t generation) noexcept {
//     static_cast<Mailroom*>(target)->PostSystemMessage(slot, generation);
//   }
//
//   Waker waker{.function = &PostWakeUp, .target = &mailroom, .first = slot, .second = generation};
//
// The function runs on the thread that completes the future, often an I/O thread. So it only posts
// a message, and must not throw. It never receives a coroutine handle. Its arguments identify the
// waiter (a slot, its generation, the number of a wait), and the receiver checks in its own turn
// whether that waiter still waits. So a late wake-up is harmless.
//
// Thread safety: a value. Any thread may call Wake() if any thread may call the function.
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
