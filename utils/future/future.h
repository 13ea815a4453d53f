// Future<T> and Promise<T>: a value that somebody will have later, without anybody blocking for it.
//
//   auto [promise, future] = MakePromise<int>();
//   // From any thread, or Set(absl::NotFoundError("...")):
//   io.ReadAsync([promise = std::move(promise)](int n) mutable { promise.Set(n); });
//   Future<void> done = std::move(future)
//                           .Map([](int n) { return n * 2; })  // when and where it is consumed
//                           .Then(executor, [](absl::StatusOr<int> n) { Print(n); });  // there, whoever completed it
//
// The result is an absl::StatusOr<T> (absl::Status for void). It is consumed in one of these ways, once:
// - Poll(waker), and Take() when it is ready. The waker is woken exactly once by the completion. This is what
//   everything else is made of.
// - `co_await future` in a Task (task.h).
// - Then(executor, fn): nothing runs on the thread that completes.
// - Wait(): blocks. For main(), tests and threads of their own. A worker, and a thread that drives
//   virtual time, are refused.
//
// Broken ends are told. A promise that is dropped completes with kCancelled. A future that is dropped or cancelled
// tells the promise side (IsCancelled, OnCancel), which may then stop working; what it still sets is thrown away.
//
// Thread safety: a Future and a Promise are used by one thread at a time each; the two may be on different threads. The
// value is moved from one to the other with the ordering that implies. A value that nobody takes is destroyed on either
// thread.
//
// Costs: one allocation for a pair, one for a Map, two for a Then. Completing and taking on one thread are one atomic
// exchange in all. No chain of Map or Then is too long: they are run by loops, not by recursion.
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

#include "fraktor/utils/future/activity.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/future_word.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

// gcc 12 destroys temporaries in a co_await expression twice, even without optimization. With such a compiler only a
// named future can be awaited: `auto asking = Ask(...); auto answer = co_await asking;`.
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

// What a Future polls, without its type. The future owns it and lets it go with Drop(). Extension point: a pool of
// reply slots implements FutureSource<T> and hands out futures with Future<T>::FromSource.
//
// All are called by the future's side only, on one thread at a time, and mean what they mean in Future and FutureWord.
class FutureNode {
 public:
  virtual bool IsReady() const = 0;
  virtual bool Poll(const Waker& waker) = 0;
  virtual bool StopWaking() = 0;
  virtual bool Cancel() = 0;
  // IsReady, and if it is, StopWaking too, in one call: `wake_is_owed` if the waker has been called or will be.
  virtual bool EndWaitIfReady(bool& wake_is_owed) {
    if (!IsReady()) return false;
    wake_is_owed = !StopWaking();
    return true;
  }
  // Why it will not be ready before this thread has returned from what it is in, so that waiting would have no end:
  // what comes when, and what to do instead. Null if nothing is known against it.
  virtual const char* AwaitsThisThread() const { return nullptr; }
  // The future has gone, taken or not. Nothing is called after it.
  virtual void Drop() noexcept = 0;

 protected:
  FutureNode() = default;
  virtual ~FutureNode() = default;

 private:
  template <class T>
  friend class Future;
  friend class MapChain;

  // The Map over this one, if there is one.
  class MapChain* outer_ = nullptr;
};

template <class T>
class FutureSource : public FutureNode {
 public:
  // The result. Called once, when it is ready.
  virtual FutureResult<T> Take() = 0;
  // Take and Drop in one call. If it throws, only Drop is still to come.
  virtual FutureResult<T> TakeAndDrop() {
    FutureResult<T> result = Take();
    this->Drop();
    return result;
  }
};

// The untyped part of a Map: a chain of Maps over one source that is no Map. Polls go straight to that source; results
// are pulled through the chain from the inside out, and the chain is freed from the outside in, both by loops.
class MapChain {
 public:
  MapChain(const MapChain&) = delete;
  MapChain& operator=(const MapChain&) = delete;

 protected:
  // `inner_chain` is null if `inner` is no Map.
  MapChain(FutureNode* inner, MapChain* inner_chain)
      : inner_(inner), inner_chain_(inner_chain), root_(inner_chain == nullptr ? inner : inner_chain->root_) {
    inner->outer_ = this;
  }
  virtual ~MapChain() = default;

  // Takes the result of the inner one, which is there, and makes this one's.
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

// FailedPrecondition if `node` is not ready and this thread must not wait for it that long: it is a
// worker (IsWorkerThread), or is itself waited for, or would wait for ever for what only it can
// drive (DrivesVirtualTime).
absl::Status CheckMayBlock(const FutureNode& node, absl::Duration timeout);
// Blocks until `node` is ready; false if `timeout` passed before.
bool BlockUntilReady(FutureNode& node, absl::Duration timeout);
// Called by every thread before it blocks there: what it has put off for others goes its way. Once for the process.
void InstallBeforeBlocking(void (*function)());

// The state that a Promise and a Future share.
template <class T>
class PromiseState final : public FutureSource<T> {
 public:
  PromiseState() = default;
  // Already completed, without a promise side.
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
    // Written also if it may be too late: only the one who goes last destroys it.
    result_.emplace(std::move(result));
    const FutureWord<>::Completion completion = word_.Complete();
    if (completion.is_last) delete this;
    return completion.accepted;
  }

 private:
  ~PromiseState() override = default;

  FutureWord<> word_;
  // Written by the promise side before Complete(), read by the future side when it is ready.
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

// Waits for a future and then runs a function on an executor.
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
  // Whether the future and the promise have a waker of ours.
  bool source_waits_ = false;
  bool cancel_waits_ = false;
};

}  // namespace future_internal

// The consumer's end. Movable; an empty one (moved from, taken, or made by default) may only be assigned to, destroyed,
// or asked valid().
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
  // Tells the promise side that nobody waits any more.
  ~Future() { Drop(); }

  // Over any source; the future lets it go with Drop().
  static Future FromSource(FutureSource<T>& source) { return Future(&source, nullptr); }

  bool valid() const { return source_ != nullptr; }

  // Whether there is a result now: a value, an error, or the cancellation.
  bool IsReady() const { return Source().IsReady(); }

  // False: `waker`, and no other, will be woken exactly once, when it becomes ready; it has replaced the one before,
  // without a gap. True: ready, Take() it; `waker` was not registered. (If the completion came before the replacement,
  // the one before has been woken or is about to be.)
  bool Poll(const Waker& waker) { return Source().Poll(waker); }

  // Takes the waker back. True: it will not be called. False: the completion has called it or is about to.
  bool StopWaking() { return Source().StopWaking(); }

  // The result of a ready future, which is empty afterwards. Maps run here.
  Result Take() {
    FutureSource<T>& source = Source();
    if (!source.IsReady()) future_internal::DieOfMisuse("Take of a future that is not ready; poll it first");
    return TakeReady();
  }

  // Gives up: true if nothing had been set before. The result is kCancelled then, at once, and the promise side is
  // told.
  bool Cancel() { return Source().Cancel(); }

  // Blocks the thread until there is a result, and takes it. For main() and tests. The thread is
  // refused with FailedPrecondition at once, unless the future is ready; the future is still there
  // then. Refused are:
  // - A worker, as in a handler of an actor: it would hold others up, perhaps the one that it waits
  //   for. Threads of a BlockingPool and of pinned actors may wait.
  // - The thread that drives a LocalToolbox, a SimToolbox or a TestKit with virtual time: nothing
  //   would run meanwhile. Call TestKit::Await(future), or RunUntil of the toolbox:
  //   `toolbox.RunUntil([&] { return future.IsReady(); }, absl::Hours(1))`. For a future that
  //   another thread completes there is WaitFor, with a limit.
  // - Any thread in the child of a fork() that has lost the threads of its toolboxes
  //   (utils/toolbox/fork_guard.h).
  Result Wait() {
    if (absl::Status refused = future_internal::CheckMayBlock(Source(), absl::InfiniteDuration()); !refused.ok()) {
      return refused;
    }
    future_internal::BlockUntilReady(Source(), absl::InfiniteDuration());
    return Take();
  }
  // The same with a limit, in real time. None if it passed; the future is still there then. A limit
  // below infinity is no reason to refuse a thread that drives virtual time.
  std::optional<Result> WaitFor(absl::Duration timeout) {
    if (timeout > absl::ZeroDuration()) {
      if (absl::Status refused = future_internal::CheckMayBlock(Source(), timeout); !refused.ok()) return refused;
    }
    if (!future_internal::BlockUntilReady(Source(), timeout)) return std::nullopt;
    return Take();
  }

  // A future of `fn(value)`; an error passes by. `fn` returns U, absl::StatusOr<U>, absl::Status or void, and runs when
  // the new future is taken, on that thread; it never runs if nobody takes it. If it throws, the result is the error of
  // StatusFromException.
  template <class Fn>
  auto Map(Fn fn) &&;

  // The same with the whole result: `fn(absl::StatusOr<T>)`. It also runs for errors, and may repair them.
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

  // A future of `fn(result)`, run as a task of `executor` when there is a result: also if there already is one, and
  // never on the thread that completes it. `fn` takes the whole result and returns U, absl::StatusOr<U>, absl::Status
  // or void. If it throws, the result is the error of StatusFromException. Unlike Map it runs even if nobody looks at
  // the new future, but not once that has been dropped or cancelled: this future is dropped then in turn. `fn` and what
  // it holds are destroyed on the executor.
  //
  // If the executor is closed when the result comes, `fn` is destroyed unrun on the thread that found out, and the new
  // future's result is kCancelled. A SerialExecutor may go before that, which counts as closed; of other executors, see
  // Executor::lane. To run something on an executor at once: MakeReadyFuture().Then(executor, ...).
  template <class Fn>
  auto Then(Executor& executor, Fn fn) && -> Future<FutureValue<std::invoke_result_t<Fn, Result>>>;

  // For Task coroutines: task.h.
  auto operator co_await() & noexcept;
#if FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE
  void operator co_await() && = delete;  // give the future a name first: see the top of this file
#else
  auto operator co_await() && noexcept;
#endif

  // What this future polls, for those who wait on futures of several types.
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

  // Take of one that is known to be ready.
  Result TakeReady() {
    Result result = Source().TakeAndDrop();
    source_ = nullptr;
    return result;
  }

  void Drop() noexcept {
    if (source_ != nullptr) std::exchange(source_, nullptr)->Drop();
  }

  FutureSource<T>* source_ = nullptr;
  // The source again, if it is a Map.
  MapChain* chain_ = nullptr;
};

// The producer's end. Movable; empty after Set. Dropping one that has not been set completes the future with
// kCancelled.
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

  // Completes the future with a value or an error, and wakes who waits for it: from any thread, once. False if the
  // future had been dropped or cancelled: the result is thrown away.
  bool Set(FutureResult<T> result) {
    State();
    return std::exchange(state_, nullptr)->Complete(std::move(result));
  }
  bool Set() requires std::is_void_v<T> { return Set(absl::OkStatus()); }

  // Whether the future was dropped or cancelled, so that the work may stop.
  bool IsCancelled() const { return State().word().IsCancelled(); }

  // Registers the one waker to be woken, once, when the future is dropped or cancelled. False: it already is, and the
  // waker is not registered.
  bool OnCancel(const Waker& waker) { return State().word().OnCancel(waker); }

  // Takes the waker of OnCancel back. True: it will not be called. False: it has been or is about to be.
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

// A connected pair: `auto [promise, future] = MakePromise<int>();`
template <class T>
PromiseAndFuture<T> MakePromise() {
  auto* const state = new future_internal::PromiseState<T>();
  return PromiseAndFuture<T>{Promise<T>(state), Future<T>::FromSource(*state)};
}

// A future that is ready from the start.
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
