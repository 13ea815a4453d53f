// Executor: the place where a piece of work runs that must not run on the thread that finds it.
//
//   void Reply(Executor& io, std::string text) {
//     io.Post([text = std::move(text)] { Write(text); });   // returns at once; Write runs on the executor's thread
//   }
//
// A continuation of a future names one, so that nothing runs inline on whatever thread happened to complete the future.
//
// Thread safety: Post may be called from any thread, unless the implementation says otherwise.
#ifndef FRAKTOR_UTILS_TOOLBOX_EXECUTOR_H_
#define FRAKTOR_UTILS_TOOLBOX_EXECUTOR_H_

#include "absl/functional/any_invocable.h"

namespace fraktor::inline v0 {

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` later, exactly once, never before Post returns to a caller that is itself a task of this executor, and
  // never on the stack of the caller. An executor that cannot take the task (it is closed, or full: each implementation
  // states its limit) destroys it unrun before Post returns; what the task owns is told by its own destruction (a
  // promise in it completes as cancelled). `task` must not throw.
  virtual void Post(absl::AnyInvocable<void() &&> task) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_EXECUTOR_H_
