// Fiber: a stack of its own that runs until it hands control to another one. The model checker runs
// each model thread on a fiber. Internal to this folder.
//
// A switch costs some nanoseconds on x86-64 with ELF, and two system calls elsewhere (ucontext).
// AddressSanitizer and ThreadSanitizer are told of each switch.
//
// Thread safety: none. All fibers that switch to each other belong to one thread.
#ifndef FRAKTOR_UTILS_TESTING_FIBER_H_
#define FRAKTOR_UTILS_TESTING_FIBER_H_

#include <cstddef>
#include <memory>

namespace fraktor::inline v0 {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  // Stands for the stack of the caller. A switch away from it must come before the first switch to
  // it.
  Fiber();

  // A new stack of at least `stack_bytes`, with an unmapped page below it. The first switch to it
  // calls `entry(argument)`, which must not return and must not throw.
  Fiber(std::size_t stack_bytes, Entry entry, void* argument);

  // The fiber must not be running. Objects on its stack are not destroyed; see Abandon.
  ~Fiber();

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Gives up a fiber that will never run again although objects still live on its stack. Nothing
  // may refer to them any more, and their memory is leaked. With AddressSanitizer the stack stays
  // mapped, so that the leak checker does not report them.
  static void Abandon(std::unique_ptr<Fiber> fiber);

 private:
  friend void SwitchFiber(Fiber& from, Fiber& to);
  struct Context;

  std::unique_ptr<Context> context_;
};

// Suspends `from`, which must be the running fiber, and resumes `to`. Returns at the next switch to
// `from`.
void SwitchFiber(Fiber& from, Fiber& to);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_FIBER_H_
