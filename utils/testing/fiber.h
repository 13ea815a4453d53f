// A stack of its own that runs until it hands control to another: what the model checker runs each model thread on.
//
//   Fiber root;                                   // stands for the stack that the program is on
//   Fiber worker(256 * 1024, [](void* arg) { ... SwitchFiber(worker, root); ... }, &state);
//   SwitchFiber(root, worker);                    // returns when somebody switches back to root
//
// A switch costs some nanoseconds on x86-64 with ELF, and two system calls elsewhere (ucontext). AddressSanitizer and
// ThreadSanitizer are told of each switch.
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

  // Stands for the stack of the caller. Something must switch away from it before anything switches to it.
  Fiber();

  // A new stack of at least `stack_bytes`, with an unmapped page below it. The first switch to it calls
  // `entry(argument)`, which must not return and must not throw.
  Fiber(std::size_t stack_bytes, Entry entry, void* argument);

  // The fiber must not be the running one. What lives on its stack is not destroyed; see Abandon.
  ~Fiber();

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Gives up a fiber that will never run again although objects still live on its stack; nothing may refer to them any
  // more. What they own is leaked. With AddressSanitizer the stack stays mapped, so that its leak checker does not tell.
  static void Abandon(std::unique_ptr<Fiber> fiber);

 private:
  friend void SwitchFiber(Fiber& from, Fiber& to);
  struct Context;

  std::unique_ptr<Context> context_;
};

// Suspends `from`, which must be the running fiber, and resumes `to`. Returns when something switches to `from` again.
void SwitchFiber(Fiber& from, Fiber& to);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_FIBER_H_
