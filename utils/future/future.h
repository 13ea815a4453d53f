// Future<T> and Promise<T>: a result that is available later. No thread has to block for it.
//
//   auto [promise, future] = MakePromise<int>();
//   // Any thread may set it, also with an error: Set(absl::NotFoundError("...")).
//   io.ReadAsync([promise = std::move(promise)](int n) mutable { promise.Set(n); });
//   Future<void> done = std::move(future)
//                           .Map([](int n) { return n * 2; })                          // runs when the result is taken
//                           .Then(executor, [](absl::StatusOr<int> n) { Print(n); });  // runs on the executor
//
// The result is an absl::StatusOr<T> (absl::Status for void). It is consumed once, in one of these
// ways:
// - Poll(waker), and Take() when it is ready. The completion wakes the waker exactly once. All
//   other ways are built on this.
// - `co_await future` in a Task (task.h).
// - Then(executor, fn). Nothing runs on the thread that completes the future.
// - Wait() blocks. For main(), tests and dedicated threads. It rejects workers and threads that
//   drive virtual time.
//
// Either end learns when the other one goes. If the promise is dropped, the future completes with
// kCancelled. If the future is dropped or cancelled, the promise side sees that (IsCancelled,
// OnCancel) and may stop its work; a value that it still sets is discarded.
//
// Thread safety: one thread at a time may use a Future, and one thread at a time a Promise; the two
// may be on different threads. Everything before Set happens before the result is taken. A value
// that is never taken is destroyed on either thread.
//
// Costs: one allocation for a pair, one for a Map, two for a Then. Completing and taking on one
// thread is one atomic exchange altogether. Chains of Map or Then may have any length: they run in
// loops, not by recursion.
#ifndef FRAKTOR_UTILS_FUTURE_FUTURE_H_
#define FRAKTOR_UTILS_FUTURE_FUTURE_H_

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/internal/activity.h"
#include "fraktor/utils/future/internal/future_word.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

// GCC 12 destroys temporaries in a co_await expression twice, even without optimization. With such
// a compiler only a named future can be awaited: `auto asking = Ask(...); auto reply = co_await
// asking;`.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#define FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE 1
#else
#define FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE 0
#endif

namespace fraktor::inline v0 {

template <class T>
class Future;
template <class T>
class Promise;
template <class T>
struct PromiseAndFuture;
template <class T>
PromiseAndFuture<T> MakePromise();

// The source of a Future's result, without its type. The future owns it and releases it with
// Drop(). This is an extension point: a pool of reply slots implements FutureSource<T> and makes
// futures with Future<T>::FromSource.
//
// Only the future's side calls these methods, on one thread at a time. They mean the same as in
// Future and FutureWord.
class FutureNode {
 public:
  virtual bool IsReady() const = 0;
  virtual bool Poll(const Waker& waker) = 0;
  virtual bool StopWaking() = 0;
  virtual bool Cancel() = 0;
  // IsReady, and StopWaking if it is ready, in one call. `wake_is_owed` is set if the waker has
  // been called or will be called.
  virtual bool EndWaitIfReady(bool& wake_is_owed) {
    if (!IsReady()) return false;
    wake_is_owed = !StopWaking();
    return true;
  }
  // If the result cannot arrive before this thread has returned from its current call, so that
  // waiting would never end: a text that says what the result depends on and what to do instead.
  // Null if no such reason is known.
  virtual const char* AwaitsThisThread() const { return nullptr; }
  // Called when the future goes, whether the result was taken or not. Nothing is called after it.
  virtual void Drop() noexcept = 0;

 protected:
  FutureNode() = default;
  virtual ~FutureNode() = default;

 private:
  template <class T>
  friend class Future;
  friend class MapChain;

  // The Map over this source, if there is one.
  class MapChain* outer_ = nullptr;
};

template <class T>
class FutureSource : public FutureNode {
 public:
  // Returns the result. Called once, when it is ready.
  virtual FutureResult<T> Take() = 0;
  // Take and Drop in one call. If it throws, only Drop may be called.
  virtual FutureResult<T> TakeAndDrop() {
    FutureResult<T> result = Take();
    this->Drop();
    return result;
  }
};

// The untyped part of a Map: a chain of Maps over one source that is not a Map. Polls go directly
// to that source. Loops pull the results through the chain from the inside out, and free the chain
// from the outside in.
class MapChain {
 public:
  MapChain(const MapChain&) = delete;
  MapChain& operator=(const MapChain&) = delete;

 protected:
  // `inner_chain` is null if `inner` is not a Map.
  MapChain(FutureNode* inner, MapChain* inner_chain)
      : inner_(inner), inner_chain_(inner_chain), root_(inner_chain == nullptr ? inner : inner_chain->root_) {
    inner->outer_ = this;
  }
  virtual ~MapChain() = default;

  // Takes the result of the inner source, which is ready, and computes the result of this one.
  virtual void Pull() = 0;
  virtual FutureNode* AsNode() = 0;

  void PullAll() {
    for (MapChain* chain = root_->outer_;; chain = chain->AsNode()->outer_) {
      chain->Pull();
      if (chain == this) return;
    }
  }

  void DropAll() noexcept {
    FutureNode* const root = root_;
    for (MapChain* chain = this; chain != nullptr;) {
      MapChain* const inner = chain->inner_chain_;
      delete chain;
      chain = inner;
    }
    root->Drop();
  }

  FutureNode* inner() const { return inner_; }
  FutureNode* root() const { return root_; }

 private:
  FutureNode* const inner_;
  MapChain* const inner_chain_;
  FutureNode* const root_;
};

namespace future_internal {

template <class T>
struct FutureAwaiter;

[[noreturn]] void DieOfMisuse(const char* what);
absl::Status PromiseDroppedError();
absl::Status FutureCancelledError();
absl::Status ExecutorClosedError();

// Returns FailedPrecondition if `node` is not ready and this thread must not wait for it that long:
// the thread is a worker (IsWorkerThread), the result depends on this thread (AwaitsThisThread), or
// the wait has no limit and the thread drives virtual time (DrivesVirtualTime).
absl::Status CheckMayBlock(const FutureNode& node, absl::Duration timeout);
// Blocks until `node` is ready. Returns false if `timeout` passed before.
bool BlockUntilReady(FutureNode& node, absl::Duration timeout);
// Every thread calls `function` before it blocks in a Wait, to push messages that it has deferred.
// Install it once per process.
void InstallBeforeBlocking(void (*function)());

// The state that a Promise and a Future share.
template <class T>
class PromiseState final : public FutureSource<T> {
 public:
  PromiseState() = default;
  // Makes a completed state without a promise side.
  explicit PromiseState(FutureResult<T> result) : result_(std::move(result)) { word_.Complete(); }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override { return word_.Poll(waker); }
  bool StopWaking() override { return word_.StopWaking(); }
  bool Cancel() override { return word_.Cancel(); }
  bool EndWaitIfReady(bool& wake_is_owed) override { return word_.EndWaitIfReady(wake_is_owed); }
  FutureResult<T> Take() override {
    if (word_.WasCancelled()) return FutureCancelledError();
    return *std::move(result_);
  }
  void Drop() noexcept override {
    if (word_.ReleaseFuture()) delete this;
  }

  FutureWord<>& word() { return word_; }
  bool Complete(FutureResult<T> result) {
    // Also written if it may be too late: the side that goes last destroys it.
    result_.emplace(std::move(result));
    const FutureWord<>::Completion completion = word_.Complete();
    if (completion.is_last) delete this;
    return completion.accepted;
  }

 private:
  ~PromiseState() override = default;

  FutureWord<> word_;
  // The promise side writes it before Complete(); the future side reads it when it is ready.
  std::optional<FutureResult<T>> result_;
};

template <class T, class U, class Fn>
class MapSource final : public FutureSource<U>, public MapChain {
 public:
  MapSource(FutureSource<T>* inner, MapChain* inner_chain, Fn fn) : MapChain(inner, inner_chain), fn_(std::move(fn)) {}

  bool IsReady() const override { return root()->IsReady(); }
  bool Poll(const Waker& waker) override { return root()->Poll(waker); }
  bool StopWaking() override { return root()->StopWaking(); }
  bool Cancel() override { return root()->Cancel(); }
  bool EndWaitIfReady(bool& wake_is_owed) override { return root()->EndWaitIfReady(wake_is_owed); }
  const char* AwaitsThisThread() const override { return root()->AwaitsThisThread(); }
  void Drop() noexcept override { DropAll(); }
  FutureResult<U> Take() override {
    if (!result_.has_value()) PullAll();
    return *std::move(result_);
  }

 private:
  void Pull() override { result_.emplace(fn_(static_cast<FutureSource<T>*>(inner())->Take())); }
  FutureNode* AsNode() override { return this; }

  Fn fn_;
  std::optional<FutureResult<U>> result_;
};

// Waits for a future, and then runs a function on an executor.
template <class T, class U, class Fn>
class ThenActivity final : public Activity {
 public:
  static void Begin(Executor& executor, Future<T> source, Promise<U> promise, Fn fn) {
    auto* const activity = new ThenActivity(executor, std::move(source), std::move(promise), std::move(fn));
    activity->BeginPreparing();
    activity->Prepare();
    activity->EndPreparing();
  }

 private:
  ThenActivity(Executor& executor, Future<T> source, Promise<U> promise, Fn fn)
      : Activity(executor), body_(std::in_place, std::move(source), std::move(promise), std::move(fn)) {}

  struct Body {
    Body(Future<T> s, Promise<U> p, Fn f) : source(std::move(s)), promise(std::move(p)), fn(std::move(f)) {}
    Future<T> source;
    Promise<U> promise;
    Fn fn;
  };

  void Prepare() {
    source_waits_ = !body_->source.Poll(LendWaker());
    if (!source_waits_) {
      ReturnWaker();
      WakeSelf();
      return;
    }
    cancel_waits_ = body_->promise.OnCancel(LendWaker());
    if (!cancel_waits_) {
      ReturnWaker();
      WakeSelf();
    }
  }

  void WakeSelf() { LendWaker().Wake(); }

  void TakeWakersBack() {
    if (source_waits_ && body_->source.StopWaking()) ReturnWaker();
    if (cancel_waits_ && body_->promise.StopCancelWaking()) ReturnWaker();
    source_waits_ = cancel_waits_ = false;
  }

  bool Step() noexcept override {
    const bool is_cancelled = body_->promise.IsCancelled();
    if (!is_cancelled && !body_->source.IsReady()) return false;
    TakeWakersBack();
    if (is_cancelled) {
      body_.reset();
      return true;
    }
    FutureResult<U> result = InvokeForResult(std::move(body_->fn), body_->source.Take());
    Promise<U> promise = std::move(body_->promise);
    body_.reset();
    promise.Set(std::move(result));
    return true;
  }

  void Abandon() noexcept override {
    TakeWakersBack();
    Promise<U> promise = std::move(body_->promise);
    body_.reset();
    promise.Set(ExecutorClosedError());
  }

  std::optional<Body> body_;
  // Whether the future and the promise hold a waker of this activity.
  bool source_waits_ = false;
  bool cancel_waits_ = false;
};

}  // namespace future_internal

// The consumer's end. Movable. An empty one (moved from, taken, or default-constructed) can only be
// assigned to, destroyed, or asked for valid().
template <class T>
class [[nodiscard]] Future {
 public:
  using Result = FutureResult<T>;
  using value_type = T;

  Future() = default;
  Future(Future&& other) noexcept : source_(std::exchange(other.source_, nullptr)), chain_(other.chain_) {}
  Future& operator=(Future&& other) noexcept {
    if (this != &other) {
      Drop();
      source_ = std::exchange(other.source_, nullptr);
      chain_ = other.chain_;
    }
    return *this;
  }
  // Tells the promise side that the result is not needed any more.
  ~Future() { Drop(); }

  // Makes a future of any source. The future releases the source with Drop().
  static Future FromSource(FutureSource<T>& source) { return Future(&source, nullptr); }

  bool valid() const { return source_ != nullptr; }

  // True if there is a result: a value, an error, or a cancellation.
  bool IsReady() const { return Source().IsReady(); }

  // False: the completion will wake `waker` exactly once. It has replaced the waker before it,
  // without a gap. True: the future is ready, call Take(); `waker` was not registered. (If the
  // completion came before the replacement, the previous waker has been woken or is about to be.)
  bool Poll(const Waker& waker) { return Source().Poll(waker); }

  // Takes the waker back. True: it will not be called. False: the completion has called it or is
  // about to.
  bool StopWaking() { return Source().StopWaking(); }

  // Returns the result of a ready future, which is empty afterwards. Maps run here.
  Result Take() {
    FutureSource<T>& source = Source();
    if (!source.IsReady()) future_internal::DieOfMisuse("Take of a future that is not ready; poll it first");
    return TakeReady();
  }

  // Gives up. Returns true if no result had been set: the result is then kCancelled, at once, and
  // the promise side is told.
  bool Cancel() { return Source().Cancel(); }

  // Blocks the thread until there is a result, and takes it. For main() and tests. If the future is
  // not ready, these threads are rejected at once with FailedPrecondition; the future stays valid
  // then:
  // - A worker, as in a handler of an actor: it would hold up other actors, perhaps the one that
  //   completes this future. Threads of a BlockingPool and of pinned actors may wait.
  // - The thread that drives a LocalToolbox, a SimToolbox or a TestKit with virtual time: nothing
  //   would run meanwhile. Call TestKit::Await(future), or RunUntil of the toolbox:
  //   `toolbox.RunUntil([&] { return future.IsReady(); }, absl::Hours(1))`. For a future that
  //   another thread completes, call WaitFor with a limit.
  // - Any thread in the child of a fork() that has lost the threads of its toolboxes
  //   (utils/toolbox/internal/fork_guard.h).
  Result Wait() {
    if (absl::Status refused = future_internal::CheckMayBlock(Source(), absl::InfiniteDuration()); !refused.ok()) {
      return refused;
    }
    future_internal::BlockUntilReady(Source(), absl::InfiniteDuration());
    return Take();
  }
  // The same with a limit, in real time. Returns nothing if it passed; the future stays valid then.
  // With a finite limit, a thread that drives virtual time is not rejected.
  std::optional<Result> WaitFor(absl::Duration timeout) {
    if (timeout > absl::ZeroDuration()) {
      if (absl::Status refused = future_internal::CheckMayBlock(Source(), timeout); !refused.ok()) return refused;
    }
    if (!future_internal::BlockUntilReady(Source(), timeout)) return std::nullopt;
    return Take();
  }

  // Returns a future of `fn(value)`. An error passes through. `fn` returns U, absl::StatusOr<U>,
  // absl::Status or void. It runs when the new future is taken, on that thread, and not at all if
  // the new future is never taken. If it throws, the result is the error of StatusFromException.
  template <class Fn>
  auto Map(Fn fn) &&;

  // The same with the whole result: `fn(absl::StatusOr<T>)`. It also runs for errors, and may
  // repair them.
  template <class Fn>
  auto MapResult(Fn fn) && {
    using U = FutureValue<std::invoke_result_t<Fn, Result>>;
    auto apply = [fn = std::move(fn)](Result result) mutable {
      return future_internal::InvokeForResult(std::move(fn), std::move(result));
    };
    using Source = future_internal::MapSource<T, U, decltype(apply)>;
    FutureSource<T>& inner = this->Source();
    auto* const source = new Source(&inner, chain_, std::move(apply));
    source_ = nullptr;
    return Future<U>(source, source);
  }

  // Returns a future of `fn(result)`. `fn` runs as a task of `executor` when there is a result,
  // even if there already is one, and never on the thread that completes the future. `fn` takes the
  // whole result and returns U, absl::StatusOr<U>, absl::Status or void. If it throws, the result
  // is the error of StatusFromException. Unlike with Map, it runs even if the new future is never
  // taken. It does not run once the new future has been dropped or cancelled: then this future is
  // dropped too. `fn` and its captures are destroyed on the executor.
  //
  // If the executor is closed when the result arrives, `fn` is destroyed unrun on the thread that
  // called the executor, and the result of the new future is kCancelled. A SerialExecutor may be
  // destroyed before that, which counts as closed; for other executors see Executor::lane. To run a
  // function on an executor at once: MakeReadyFuture().Then(executor, ...).
  template <class Fn>
  auto Then(Executor& executor, Fn fn) && -> Future<FutureValue<std::invoke_result_t<Fn, Result>>>;

  // For Task coroutines: see task.h.
  auto operator co_await() & noexcept;
#if FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE
  // Without a definition: the error of a program that does not compile names it.
  struct GiveTheFutureANameFirst;
  GiveTheFutureANameFirst operator co_await() && = delete;  // `auto asking = Ask(...); auto reply = co_await asking;`
#else
  auto operator co_await() && noexcept;
#endif

  // The source of this future, for code that waits on futures of several types.
  FutureNode& node() { return Source(); }

 private:
  template <class U>
  friend class Future;
  template <class U>
  friend struct future_internal::FutureAwaiter;

  Future(FutureSource<T>* source, MapChain* chain) : source_(source), chain_(chain) {}

  FutureSource<T>& Source() const {
    if (source_ == nullptr) future_internal::DieOfMisuse("use of an empty future; it was moved from or taken");
    return *source_;
  }

  // Take of a future that is known to be ready.
  Result TakeReady() {
    Result result = Source().TakeAndDrop();
    source_ = nullptr;
    return result;
  }

  void Drop() noexcept {
    if (source_ != nullptr) std::exchange(source_, nullptr)->Drop();
  }

  FutureSource<T>* source_ = nullptr;
  // The same object as the source, if that is a Map.
  MapChain* chain_ = nullptr;
};

// The producer's end. Movable; empty after Set. If it is dropped before Set, the future completes
// with kCancelled.
template <class T>
class [[nodiscard]] Promise {
 public:
  Promise() = default;
  Promise(Promise&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Promise& operator=(Promise&& other) noexcept {
    if (this != &other) {
      Drop();
      state_ = std::exchange(other.state_, nullptr);
    }
    return *this;
  }
  ~Promise() { Drop(); }

  bool valid() const { return state_ != nullptr; }

  // Completes the future with a value or an error, and wakes its waiter. Any thread may call it,
  // once. Returns false if the future had been dropped or cancelled: the result is discarded.
  bool Set(FutureResult<T> result) {
    State();
    return std::exchange(state_, nullptr)->Complete(std::move(result));
  }
  bool Set() requires std::is_void_v<T> { return Set(absl::OkStatus()); }

  // True if the future was dropped or cancelled, so that the work may stop.
  bool IsCancelled() const { return State().word().IsCancelled(); }

  // Registers the one waker that is woken, once, when the future is dropped or cancelled. Returns
  // false, without registering it, if that has already happened.
  bool OnCancel(const Waker& waker) { return State().word().OnCancel(waker); }

  // Takes the waker of OnCancel back. True: it will not be called. False: it has been called or is
  // about to be.
  bool StopCancelWaking() { return State().word().StopCancelWaking(); }

 private:
  friend PromiseAndFuture<T> MakePromise<T>();

  explicit Promise(future_internal::PromiseState<T>* state) : state_(state) {}

  future_internal::PromiseState<T>& State() const {
    if (state_ == nullptr) future_internal::DieOfMisuse("use of an empty promise; it was moved from or set before");
    return *state_;
  }

  void Drop() noexcept {
    if (state_ != nullptr) std::exchange(state_, nullptr)->Complete(future_internal::PromiseDroppedError());
  }

  future_internal::PromiseState<T>* state_ = nullptr;
};

template <class T>
struct PromiseAndFuture {
  Promise<T> promise;
  Future<T> future;
};

// Makes a connected pair: `auto [promise, future] = MakePromise<int>();`
template <class T>
PromiseAndFuture<T> MakePromise() {
  auto* const state = new future_internal::PromiseState<T>();
  return PromiseAndFuture<T>{Promise<T>(state), Future<T>::FromSource(*state)};
}

// Makes a future that is ready from the start.
template <class T>
Future<T> MakeReadyFuture(FutureResult<T> result) {
  return Future<T>::FromSource(*new future_internal::PromiseState<T>(std::move(result)));
}
inline Future<void> MakeReadyFuture() { return MakeReadyFuture<void>(absl::OkStatus()); }

template <class T>
template <class Fn>
auto Future<T>::Map(Fn fn) && {
  if constexpr (std::is_void_v<T>) {
    using Mapped = FutureResult<std::invoke_result_t<Fn>>;
    return std::move(*this).MapResult([fn = std::move(fn)](absl::Status status) mutable -> Mapped {
      if (!status.ok()) return status;
      return future_internal::InvokeForResult(std::move(fn));
    });
  } else {
    using Mapped = FutureResult<std::invoke_result_t<Fn, T>>;
    return std::move(*this).MapResult([fn = std::move(fn)](absl::StatusOr<T> result) mutable -> Mapped {
      if (!result.ok()) return std::move(result).status();
      return future_internal::InvokeForResult(std::move(fn), *std::move(result));
    });
  }
}

template <class T>
template <class Fn>
auto Future<T>::Then(Executor& executor, Fn fn) && -> Future<FutureValue<std::invoke_result_t<Fn, Result>>> {
  using U = FutureValue<std::invoke_result_t<Fn, Result>>;
  Source();
  PromiseAndFuture<U> pair = MakePromise<U>();
  future_internal::ThenActivity<T, U, Fn>::Begin(executor, std::move(*this), std::move(pair.promise), std::move(fn));
  return std::move(pair.future);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_FUTURE_H_
