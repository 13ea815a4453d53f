// BlockingPool: threads for work that blocks, such as files, DNS or a library with blocking calls,
// so that workers never block.
//
//   // An extension is made at its first use and ends after all actors of the system.
//   struct Files {
//     explicit Files(ActorSystem& system) : pool(BlockingPool::Start({.name = "files"}, system.toolbox()).value()) {}
//     std::unique_ptr<BlockingPool> pool;
//   };
//
//   struct Reader : Actor<Reader, Read> {
//     Task<std::string> On(Context& context, Read read) {  // takes no other message meanwhile
//       auto reading = RunBlocking(*context.system().Extension<Files>().pool,
//                                  [path = read.path] { return ReadWholeFile(path); });
//       absl::StatusOr<std::string> text = co_await reading;
//       co_return text.ok() ? *text : std::string(text.status().message());
//     }
//   };
//
// A pool must outlive the actors that use it, and the toolbox must outlive the pool.
//
// The pool starts threads when it needs them and keeps them. Work that finds no free thread waits,
// first in, first out, up to a limit. On a toolbox without threads, each step of the toolbox runs
// one piece of work; that must not wait for something that the same toolbox does.
//
// Thread safety: any thread, except that work of the pool must not call Stop or the destructor. On
// a toolbox without threads, only the thread that pumps it.
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
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

struct BlockingPoolOptions {
  // Part of names of threads and of error texts. From 1 to 80 bytes.
  std::string name = "blocking";
  // The largest number of threads. From 1 to 1024.
  int max_threads = 16;
  // The largest number of pieces of work that wait for a thread. From 1 to 1'000'000.
  int max_queued = 1024;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class BlockingPool {
 public:
  using Work = absl::AnyInvocable<void()>;

  // `toolbox` must outlive the pool. Starts no thread yet.
  static absl::StatusOr<std::unique_ptr<BlockingPool>> Start(const BlockingPoolOptions& options,
                                                             RuntimeToolbox& toolbox);
  // Calls Stop.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Runs `work`, which must not throw, on a thread of the pool. ResourceExhausted if max_queued
  // pieces wait already, or if there is no thread and the toolbox gives none. FailedPrecondition
  // after Stop. On an error the work is destroyed without being run.
  absl::Status Submit(Work work);

  // Waits for the work that runs. Destroys waiting work without running it.
  void Stop();

  // The numbers of threads and of waiting pieces of work. They may be out of date at once.
  size_t threads() const;
  size_t queued() const;
  const BlockingPoolOptions& options() const { return options_; }

  // If this thread is in an actor's turn, delivers the messages that the actor has sent so far: the
  // work may depend on them.
  static void FlushSender();

 private:
  class Thread;
  struct Seat {
    WorkerHandle handle;
    bool sleeps = false;
  };

  BlockingPool(const BlockingPoolOptions& options, RuntimeToolbox& toolbox);
  // Starts a thread and adds its seat.
  absl::Status StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BlockingPoolOptions options_;
  RuntimeToolbox& toolbox_;

  mutable Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);
  // The index is the number of the thread.
  std::vector<Seat> seats_ ABSL_GUARDED_BY(mutex_);
  size_t working_ ABSL_GUARDED_BY(mutex_) = 0;
};

namespace blocking_pool_internal {

absl::Status StatusOfException();
absl::Status StoppedError();

// A function and the promise of its result. If it is destroyed without having run, the promise gets
// an error.
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
    if (promise_.IsCancelled()) return;  // The future is gone.
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

// Runs `f` on the pool. The future gets the result of `f` (T, absl::StatusOr<T>, absl::Status or
// void); Internal if `f` throws; Cancelled if the pool is stopped before `f` runs; and the error of
// Submit if the pool refuses it. If the future is dropped before `f` runs, `f` does not run.
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

// The same for `f(stop)`, which checks the token from time to time. The future is Cancelled as soon
// as a stop is requested. If that is before `f` runs, it does not run. An `f` that runs is not
// interrupted.
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
