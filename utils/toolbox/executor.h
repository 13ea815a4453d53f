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

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace fraktor::inline v0 {

// The way back to an executor for work that it has taken on before: the continuation of a future, the next step of a
// task that waited.
class ExecutorLane {
 public:
  virtual ~ExecutorLane() = default;

  // As Executor::Post, but never refused because the executor is full: only if it is closed or gone. Each piece of work
  // has at most one step in it at a time.
  virtual void PostStep(absl::AnyInvocable<void() &&> step) = 0;
};

class Executor {
 public:
  Executor() : forward_(*this) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Runs `task` later, exactly once, never before Post returns to a caller that is itself a task of this executor, and
  // never on the stack of the caller. An executor that cannot take the task (it is closed, or full: each implementation
  // states its limit) destroys it unrun before Post returns; what the task owns is told by its own destruction (a
  // promise in it completes as cancelled). `task` must not throw.
  virtual void Post(absl::AnyInvocable<void() &&> task) = 0;

  // The lane may be kept for longer than the executor lives, if the implementation says so. This default does not: it
  // forwards to Post, and whoever keeps it must not outlive the executor.
  virtual std::shared_ptr<ExecutorLane> lane() { return {std::shared_ptr<void>(), &forward_}; }

 private:
  class Forward final : public ExecutorLane {
   public:
    explicit Forward(Executor& executor) : executor_(executor) {}
    void PostStep(absl::AnyInvocable<void() &&> step) override { executor_.Post(std::move(step)); }

   private:
    Executor& executor_;
  };

  Forward forward_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_EXECUTOR_H_
