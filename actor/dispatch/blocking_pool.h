// Threads for work that blocks, so that no worker ever does: files, DNS, a library that only knows how to wait.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto pool, BlockingPool::Start({.name = "files"}, toolbox));
//   Future<std::string> text = RunBlocking(*pool, [path] { return ReadWholeFile(path); });
//
// Actors that use a pool must not outlive it, nor it the toolbox of their system. An extension of the system has both:
// it is made at the first use, and ends after all actors.
//
//   struct Files {
//     explicit Files(ActorSystem& system) : pool(BlockingPool::Start({.name = "files"}, system.toolbox()).value()) {}
//     std::unique_ptr<BlockingPool> pool;
//   };
//
//   Task<std::string> On(Context& context, Read read) {                     // takes no other message meanwhile
//     auto reading = RunBlocking(*context.system().Extension<Files>().pool,
//                                [path = read.path] { return ReadWholeFile(path); });
//     absl::StatusOr<std::string> text = co_await reading;
//     co_return text.ok() ? *text : std::string(text.status().message());
//   }
//
// Threads are started as they are needed and kept for the next work. Work that finds no free thread waits its turn,
// first in first out; where too much waits, it is refused. On a toolbox without threads the work runs when the toolbox
// is pumped, one piece in a step: it must not wait for something that the same toolbox does.
//
// Thread safety: any thread; Stop and the destructor not within work of the pool. On a toolbox without threads
// everything belongs to the thread that pumps it.
#ifndef FRAKTOR_ACTOR_DISPATCH_BLOCKING_POOL_H_
#define FRAKTOR_ACTOR_DISPATCH_BLOCKING_POOL_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/worker.h"

namespace fraktor::inline v0 {

struct BlockingPoolOptions {
  // In names of threads and errors. From 1 to 80 bytes.
  std::string name = "blocking";
  // From 1 to 1024.
  int max_threads = 16;
  // How much work may wait for a thread, besides what runs. From 1 to 1'000'000.
  int max_queued = 1024;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class BlockingPool {
 public:
  using Work = absl::AnyInvocable<void()>;

  // `toolbox` must outlive the pool. No thread is started yet.
  static absl::StatusOr<std::unique_ptr<BlockingPool>> Start(const BlockingPoolOptions& options,
                                                             RuntimeToolbox& toolbox);
  // Stops.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Runs `work`, which must not throw, on a thread of the pool. ResourceExhausted if max_queued wait already, or if
  // there is no thread and the toolbox gives none; FailedPrecondition after Stop. Then it is destroyed without being
  // run.
  absl::Status Submit(Work work);

  // Waits for the work that runs, and destroys without running it what waits.
  void Stop();

  // How many threads there are, and how much work waits: at this moment.
  size_t threads() const;
  size_t queued() const;
  const BlockingPoolOptions& options() const { return options_; }

  // If this thread is in an actor's turn: what the actor has sent so far is delivered, since it may wait for the pool.
  static void FlushSender();

 private:
  class Thread;
  struct Seat {
    WorkerHandle handle;
    bool sleeps = false;
  };

  BlockingPool(const BlockingPoolOptions& options, RuntimeToolbox& toolbox);
  // Adds a seat.
  absl::Status StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BlockingPoolOptions options_;
  RuntimeToolbox& toolbox_;

  mutable Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);
  // By the number of the thread.
  std::vector<Seat> seats_ ABSL_GUARDED_BY(mutex_);
  size_t working_ ABSL_GUARDED_BY(mutex_) = 0;
};

namespace blocking_pool_internal {

absl::Status StatusOfException();
absl::Status StoppedError();

// A function and whom its result is for. Told also if it is destroyed without having been run.
template <class F, class T>
class PromisedWork {
 public:
  PromisedWork(F function, Promise<T> promise) : function_(std::move(function)), promise_(std::move(promise)) {}
  PromisedWork(PromisedWork&& other) noexcept = default;
  PromisedWork& operator=(PromisedWork&&) = delete;
  ~PromisedWork() {
    if (promise_.valid()) promise_.Set(StoppedError());
  }

  void operator()() {
    if (promise_.IsCancelled()) return;  // Nobody wants it any more.
    Promise<T> promise = std::move(promise_);
    promise.Set(Result());
  }

 private:
  FutureResult<T> Result() {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
        std::move(function_)();
        return absl::OkStatus();
      } else {
        return std::move(function_)();
      }
    } catch (...) {
      return StatusOfException();
    }
  }

  F function_;
  Promise<T> promise_;
};

}  // namespace blocking_pool_internal

// Runs `f` on the pool. The future's result is what `f` returns (T, absl::StatusOr<T>, absl::Status or void); Internal
// if it throws; Cancelled if the pool was stopped before its turn; and what Submit answers if the pool did not take it.
// If the future is dropped before its turn, `f` does not run.
template <class F>
auto RunBlocking(BlockingPool& pool, F f) -> Future<FutureValue<std::invoke_result_t<F>>> {
  using T = FutureValue<std::invoke_result_t<F>>;
  BlockingPool::FlushSender();
  PromiseAndFuture<T> pair = MakePromise<T>();
  absl::Status submitted =
      pool.Submit(blocking_pool_internal::PromisedWork<F, T>(std::move(f), std::move(pair.promise)));
  if (!submitted.ok()) return MakeReadyFuture<T>(std::move(submitted));
  return std::move(pair.future);
}

// The same for `f(stop)`, which looks at the token now and then. As soon as a stop is requested, the future is Cancelled;
// if that is before the turn of `f`, it does not run. An `f` that runs is not interrupted.
template <class F>
auto RunBlocking(BlockingPool& pool, std::stop_token stop, F f)
    -> Future<FutureValue<std::invoke_result_t<F, std::stop_token>>> {
  using T = FutureValue<std::invoke_result_t<F, std::stop_token>>;
  return WithStop(RunBlocking(pool,
                              [stop, f = std::move(f)]() mutable -> FutureResult<T> {
                                if (stop.stop_requested()) return absl::CancelledError("a stop was requested");
                                if constexpr (std::is_void_v<std::invoke_result_t<F, std::stop_token>>) {
                                  std::move(f)(stop);
                                  return absl::OkStatus();
                                } else {
                                  return std::move(f)(stop);
                                }
                              }),
                  stop);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_BLOCKING_POOL_H_
