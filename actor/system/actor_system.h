// An actor system: everything that actors need, and the place where they are spawned from outside.
//
//   ActorSystem system("shop");
//   auto cart = system.Spawn<Cart>("cart");                                // pekko://shop/user/cart
//   cart.Tell(Add{"milk"});
//   absl::StatusOr<Total> total = system.AskAndWait(cart, GetTotal{}, absl::Seconds(10));
//   ShutdownReport report = system.Shutdown(absl::Seconds(10));
//
// The typed front door is fraktor/actor/actor.h.
//
// Its life: Create boots it, guardians first. Terminate, or the end of /user by itself, ends all actors: those of /user,
// then those of /system, then the root. Then the termination future is ready. The destructor waits for that, up to
// ActorSystemOptions::shutdown_timeout.
//
// fork(): no actor system survives in the child, which has none of the threads that run actors. The
// child may call exec or _exit, and nothing else. There Create, Spawn, Ask, AskAndWait and
// Future::Wait fail at once, with FailedPrecondition. Shutdown reports the root as not stopped,
// Terminate and the destructor do nothing, and messages go nowhere. A process may fork before it
// makes its first system, or after it has destroyed its last one: then both processes can have
// systems. posix_spawn, popen and std::system are always possible.
//
// Thread safety: any thread may call anything, except the destructor and Shutdown, which belong to one thread that is no
// worker.
#ifndef FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_H_
#define FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_H_

#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/ask_source.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"

namespace fraktor::inline v0 {

class ActorNames;
class ActorPath;
class ActorProps;
class ActorTree;
class CoordinatedShutdown;
class DeadLetters;
class EventStream;
class Logger;
class ObservabilityHub;
class ReadyQueueScheduler;
class RemoteProvider;
class RunningSystemState;
class RuntimeToolbox;
class SystemParts;
struct ActorSystemOptions;
struct SpawnOptions;

// How a shutdown went.
struct ShutdownReport {
  // The paths of actors that had not ended by the deadline, up to 1000, parents before their children, and of the
  // guardians only if there is nobody else. Those that were still there when the handlers that ran had returned were
  // ended without their hooks.
  std::vector<std::string> not_stopped;

  bool ok() const { return not_stopped.empty(); }
};

// What the constructors of ActorSystem throw. Create returns the same status instead.
class ActorSystemError : public std::runtime_error {
 public:
  explicit ActorSystemError(const absl::Status& status)
      : std::runtime_error(std::string(status.message())), status_(status) {}
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

class ActorSystem {
 public:
  // Makes a system, with the usual options or with these. Throws ActorSystemError with the status of Create.
  explicit ActorSystem(std::string_view name);
  explicit ActorSystem(const ActorSystemOptions& options);
  // The same without throwing. InvalidArgument for bad options; kSystemNotBootstrapped if the boot fails.
  static absl::StatusOr<std::unique_ptr<ActorSystem>> Create(const ActorSystemOptions& options);
  ~ActorSystem();
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  std::string_view name() const;

  // Spawns a child of /user by its recipe, or a typed actor that is made of `args` (fraktor/actor/actor.h). Spawn
  // throws SpawnError; TrySpawn returns its status. Errors as ActorContext::TrySpawn, kSystemNotBootstrapped while the
  // system boots, kTerminating when it ends: FailedPrecondition while it does, Unavailable afterwards.
  ActorRef Spawn(const ActorProps& props, std::string_view name = {});
  absl::StatusOr<ActorRef> TrySpawn(const ActorProps& props, std::string_view name = {});
  template <class A, class... Args>
  typename A::Ref Spawn(std::string_view name = {}, Args&&... args);
  template <class A, class... Args>
  typename A::Ref Spawn(std::string_view name, const SpawnOptions& options, Args&&... args);
  template <class A, class... Args>
  absl::StatusOr<typename A::Ref> TrySpawn(std::string_view name = {}, Args&&... args);
  template <class A, class... Args>
  absl::StatusOr<typename A::Ref> TrySpawn(std::string_view name, const SpawnOptions& options, Args&&... args);
  // A typed actor that `factory()` makes, again for each restart: see TypedContext::Spawn.
  template <int&... kDeduced, class Factory>
  requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
  typename std::invoke_result_t<const Factory&>::Ref Spawn(std::string_view name, Factory factory);
  template <int&... kDeduced, class Factory>
  requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
  typename std::invoke_result_t<const Factory&>::Ref Spawn(std::string_view name, const SpawnOptions& options,
                                                           Factory factory);
  template <int&... kDeduced, class Factory>
  requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
  absl::StatusOr<typename std::invoke_result_t<const Factory&>::Ref> TrySpawn(std::string_view name, Factory factory);
  template <int&... kDeduced, class Factory>
  requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
  absl::StatusOr<typename std::invoke_result_t<const Factory&>::Ref> TrySpawn(std::string_view name,
                                                                              const SpawnOptions& options,
                                                                              Factory factory);
  // As Spawn and TrySpawn, and `watcher` watches the actor from the beginning: it gets a Terminated
  // when the actor ends.
  ActorRef SpawnWatched(const ActorProps& props, ActorRef watcher, std::string_view name = {});
  absl::StatusOr<ActorRef> TrySpawnWatched(const ActorProps& props, ActorRef watcher, std::string_view name = {});
  // As Spawn and TrySpawn, for a child of /system: part of a runtime, which outlives the users'
  // actors. It runs on the system pool, which users' actors cannot keep busy, unless the props
  // choose another; its own children where their props say.
  ActorRef SpawnSystemActor(const ActorProps& props, std::string_view name = {});
  absl::StatusOr<ActorRef> TrySpawnSystemActor(const ActorProps& props, std::string_view name = {});

  // Ends an actor: see ActorContext::Stop. A handler that waits in co_await is cancelled; a
  // PoisonPill would let it finish.
  void Stop(ActorRef actor);
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  void Stop(const Ref& actor) { Stop(actor.untyped()); }

  // Gives an actor of this system metrics of its own, beside those of its type (label "actor", with its path), from the
  // next time it runs until it ends or StopObserving. InvalidArgument if it is no actor of this system, NotFound if it
  // has ended, AlreadyExists if it is observed, ResourceExhausted if there are ObservabilityOptions.max_actors already,
  // FailedPrecondition if metrics are off. What nobody asks for costs nothing.
  absl::Status Observe(ActorRef actor);
  void StopObserving(ActorRef actor);
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::Status Observe(const Ref& actor) { return Observe(actor.untyped()); }
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  void StopObserving(const Ref& actor) { StopObserving(actor.untyped()); }

  // Asks from any thread; in an actor, ActorContext::Ask is better. Errors as there, and
  // Unavailable if the system has ended. The ask keeps its place among the messages that the thread
  // tells the actor before and after. A future that is dropped before it is ready ends the ask, as
  // there.
  template <class R, class M, class Explain = AsItIs>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, Explain explain = {}) {
    EnvelopePtr question = MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message));
    auto* const source =
        new AskSource<R, AskedBy::kSystem, Explain>(question->type(), timeout, nullptr, std::move(explain));
    Future<R> answer = Future<R>::FromSource(*source);
    AskFor(to, std::move(question), *source);
    return answer;
  }
  // The same, and waits: blocks the thread, or pumps the toolbox if that has no threads. FailedPrecondition on a worker,
  // which must not wait, unless it is that of a pinned actor.
  template <class R, class M>
  absl::StatusOr<R> AskAndWait(ActorRef to, M&& message, absl::Duration timeout) {
    CheckWaitsForAMessage<R>();
    return AskAndBlock<R>(to, std::forward<M>(message), timeout);
  }
  // Both where the question says what its answer is: `using Reply = ...`.
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& question, absl::Duration timeout) {
    CheckDeclaresReply<Q>();
    return Ask<ReplyOf<Q>>(to, std::forward<Q>(question), timeout);
  }
  template <int&... kDeduced, class Q>
  absl::StatusOr<ReplyOf<Q>> AskAndWait(ActorRef to, Q&& question, absl::Duration timeout) {
    CheckDeclaresReply<Q>();
    return AskAndBlock<ReplyOf<Q>>(to, std::forward<Q>(question), timeout);
  }

  // The same of typed references; the question says what its answer is, `using Reply = ...`, or the caller does.
  template <int&... kDeduced, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<ReplyOf<Q>> Ask(const Ref& to, Q&& question, absl::Duration timeout) {
    Ref::template Check<Q>();
    CheckDeclaresReply<Q>();
    return Ask<ReplyOf<Q>>(to.untyped(), std::forward<Q>(question), timeout);
  }
  template <class R, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<R> Ask(const Ref& to, Q&& question, absl::Duration timeout) {
    Ref::template Check<Q>();
    return Ask<R>(to.untyped(), std::forward<Q>(question), timeout);
  }
  template <int&... kDeduced, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<ReplyOf<Q>> AskAndWait(const Ref& to, Q&& question, absl::Duration timeout) {
    Ref::template Check<Q>();
    CheckDeclaresReply<Q>();
    return AskAndBlock<ReplyOf<Q>>(to.untyped(), std::forward<Q>(question), timeout);
  }
  template <class R, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<R> AskAndWait(const Ref& to, Q&& question, absl::Duration timeout) {
    Ref::template Check<Q>();
    CheckWaitsForAMessage<R>();
    return AskAndBlock<R>(to.untyped(), std::forward<Q>(question), timeout);
  }

  // Asks as above, and the future is Cancelled as soon as a stop is requested
  // (utils/future/with_stop.h), which ends the ask. Any thread may request the stop.
  template <class R, class M>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<M>(message), timeout), std::move(stop));
  }
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& question, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(question), timeout), std::move(stop));
  }
  template <class R, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<R> Ask(const Ref& to, Q&& question, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<Q>(question), timeout), std::move(stop));
  }
  template <int&... kDeduced, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<ReplyOf<Q>> Ask(const Ref& to, Q&& question, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(question), timeout), std::move(stop));
  }

  // Runs a coroutine in turns of an actor of the system's own. An error that it comes to is logged.
  void Run(Task<void> task);

  // The living actor of a path ("pekko://shop/user/cart" or "/user/cart"), with or without its uid.
  // Errors: what is wrong with the text; kUidReserved if the uid is that of an actor of this path
  // that has ended, for ActorSystemConfig::uid_reservation; otherwise kPidUnknown if there is none.
  // A path of another system gives a reference to the actor that has it there when a message
  // arrives, if there is a RemoteProvider.
  absl::StatusOr<ActorRef> Resolve(std::string_view path) const;
  // The path of an actor, "pekko://shop/user/cart", or of the promise of an ask,
  // "pekko://shop/temp/cart$a". The path of an actor with a name is remembered after its end, for
  // ActorSystemConfig::uid_reservation. Without a path, a text that says what is known.
  std::string PathOf(ActorRef actor) const;
  // The path with the uid, "pekko://shop/user/cart#5320": two lives of one path differ in it. ""
  // if the actor has ended and its path is not remembered. If only the uid of an actor of another
  // node is known, "pekko://shop@10.0.0.7:2552/?#5320". If only its path is known, the path.
  std::string CanonicalPathOf(ActorRef actor) const;
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  std::string PathOf(const Ref& actor) const { return PathOf(actor.untyped()); }
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  std::string CanonicalPathOf(const Ref& actor) const { return CanonicalPathOf(actor.untyped()); }

  // Runs the coordinated shutdown, which ends all actors, in order: see the top. Later calls do nothing.
  void Terminate();
  // What runs before that, and how.
  CoordinatedShutdown& coordinated_shutdown();
  // Ready when the root has ended: OK after an orderly end. If an actor's failure went up to /user or /system, by which
  // the system has ended, it is that error, which names the actor. Remoting has waited until then for other nodes to
  // confirm what was sent to them, but for no longer than RemoteOptions::shutdown_flush (1 s): what they have not
  // confirmed is lost if the process ends at once (_exit).
  Future<void> WhenTerminated();
  bool IsTerminated() const;
  // Terminates, and waits for that up to `timeout`; then the rest is ended without ceremony, as soon as the handlers
  // that run have returned: one that never returns holds it up for ever, and the log says whom it waits for. No worker
  // runs afterwards. A second call finds nothing left to do. On a worker, as in a handler, it is an error that is logged:
  // it does as Terminate does, and reports who is there now.
  ShutdownReport Shutdown(absl::Duration timeout);
  // Who has not ended yet, as Shutdown would report it now. A snapshot that is a little blurred while actors run.
  ShutdownReport NotStopped() const;
  // Called when the root has ended, the latest first. FailedPrecondition if it has already.
  absl::Status OnTermination(std::function<void()> callback);

  // The parts.
  ActorRef root_guardian() const;
  ActorRef user_guardian() const;
  ActorRef system_guardian() const;
  // Not while it boots.
  const RunningSystemState& state() const;
  EventStream& events();
  DeadLetters& dead_letters();
  const Logger& log() const;
  Logger& log();
  RuntimeToolbox& toolbox();
  ObservabilityHub& hub();
  ActorTree& tree();
  ActorNames& names();
  ReadyQueueScheduler& scheduler();
  const ActorSystemOptions& options() const;

  // Null if there is none.
  RemoteProvider* remote_provider() const;
  // Once, before others are to be found.
  void SetRemoteProvider(RemoteProvider* provider);
  // Whether a path, or an anchor, is of another system that the provider is asked for.
  bool IsElsewhere(const ActorPath& path) const;

  // The one T of this system, made from it at the first call: T(ActorSystem&). It ends with the system, after all
  // actors, the latest first. A T must not ask for itself in its constructor.
  template <class T>
  T& Extension() {
    return *static_cast<T*>(FindOrMakeExtension(
        &kExtensionKey<T>, [](ActorSystem& system) { return std::shared_ptr<void>(std::make_shared<T>(system)); }));
  }

 private:
  friend class SystemParts;

  // One address for each type.
  template <class T>
  static constexpr char kExtensionKey = 0;

  explicit ActorSystem(std::unique_ptr<SystemParts> parts);
  template <class R>
  static constexpr void CheckWaitsForAMessage() {
    static_assert(!std::is_same_v<R, absl::Status>,
                  "AskAndWait<R> comes to a StatusOr<R>, so that R is a message and no Status: answer with Done");
  }
  template <class R, class M>
  absl::StatusOr<R> AskAndBlock(ActorRef to, M&& message, absl::Duration timeout) {
    if (absl::Status may = MayWait(); !may.ok()) return may;
    Future<R> answer = Ask<R>(to, std::forward<M>(message), timeout);
    AwaitReady(answer.node());
    return answer.Take();
  }
  void AskFor(ActorRef to, EnvelopePtr question, AskCompletion& completion);
  absl::Status MayWait() const;
  // Whether the threads of the system are those of the process that this one was forked from.
  bool IsLeftBehind() const;
  absl::Status Ended() const;
  // The result of a spawn; Ended() if it failed because the system has ended meanwhile.
  absl::StatusOr<ActorRef> OrEnded(absl::StatusOr<ActorRef> spawned) const;
  void AwaitReady(FutureNode& node);
  void* FindOrMakeExtension(const void* key, std::shared_ptr<void> (*make)(ActorSystem& system));

  std::unique_ptr<SystemParts> parts_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_H_
