// Executor: runs work on another thread than the one that submits it.
//
//   void Reply(Executor& io, std::string text) {
//     io.Post([text = std::move(text)] { Write(text); });   // returns at once; Write runs on the executor's thread
//   }
//
// A continuation of a future names an executor, so that it never runs on the thread that happens to
// complete the future.
//
// Thread safety: any thread may call Post, unless the implementation says otherwise.
#ifndef FRAKTOR_UTILS_TOOLBOX_EXECUTOR_H_
#define FRAKTOR_UTILS_TOOLBOX_EXECUTOR_H_

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace fraktor::inline v0 {

// Accepts further steps of work that the executor has accepted before: the continuation of a
// future, or the next step of a task that waited.
class ExecutorLane {
 public:
  virtual ~ExecutorLane() = default;

  // Like Executor::Post, but a full executor accepts the step too. Only a closed or destroyed
  // executor rejects it. Each piece of work has at most one step in the lane at a time.
  virtual void PostStep(absl::AnyInvocable<void() &&> step) = 0;
};

class Executor {
 public:
  Executor() : forward_(*this) {}
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  // Runs `task` later, exactly once, and never on the stack of the caller. If the caller is itself
  // a task of this executor, `task` runs after Post has returned. An executor that cannot accept
  // the task (it is closed, or full: each implementation states its limit) destroys the task unrun
  // before Post returns. The destructors of the task's members report that: a promise in it
  // completes as cancelled. `task` must not throw.
  virtual void Post(absl::AnyInvocable<void() &&> task) = 0;

  // Some implementations allow the lane to outlive the executor. This default does not: it forwards
  // to Post, so the lane must not be used after the executor has ended.
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
