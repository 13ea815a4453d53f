// ActorSystem: runs actors, and spawns them from outside. A program makes one, mostly in main().
//
//   ActorSystem system("shop");
//   auto cart = system.Spawn<Cart>("cart");                                // pekko://shop/user/cart
//   cart.Tell(Add{"milk"});
//   absl::StatusOr<Total> total = system.AskAndWait(cart, GetTotal{}, absl::Seconds(10));
//   ShutdownReport report = system.Shutdown(absl::Seconds(10));
//
// Programs include fraktor/actor/actor.h, which has typed actors too.
//
// Life cycle: Create boots the system, guardians first. Terminate, or the end of /user, ends all
// actors: first those of /user, then those of /system, then the root. Then the future of
// WhenTerminated is ready. The destructor waits for that, up to
// ActorSystemOptions::shutdown_timeout.
//
// fork(): the child process has none of the threads that run actors. It may call exec or _exit, and
// nothing else. In the child Create, Spawn, Ask, AskAndWait and
// Future::Wait fail at once, with FailedPrecondition. Shutdown reports the root as not stopped,
// Terminate and the destructor do nothing, and messages are lost. A process may fork before it
// makes its first system, or after it has destroyed its last one: then both processes can have
// systems. posix_spawn, popen and std::system are always possible.
//
// Thread safety: any thread may call anything, except the destructor and Shutdown: one thread calls
// them, which is not a worker.
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

#include "fraktor/actor/ask/internal/ask_source.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"

namespace fraktor::inline v0 {

namespace actor_internal {
class ActorNames;
class ActorTree;
class ReadyQueueScheduler;
class RemoteProvider;
class RunningSystemState;
}  // namespace actor_internal

// The type that a message declares as its reply: Ask returns a Future<ReplyOf<Message>>.
using actor_internal::ReplyOf;

class ActorPath;
class ActorProps;
class CoordinatedShutdown;
class DeadLetters;
class EventStream;
class Logger;
class ObservabilityHub;
class RuntimeToolbox;
class SystemParts;
struct ActorSystemOptions;  // Include fraktor/actor/system/actor_system_options.h to set options.
struct SpawnOptions;

// The result of a shutdown.
struct ShutdownReport {
  // The paths of actors that had not ended by the deadline: up to 1000, parents before their
  // children. Guardians are listed only if no other actor is left. The shutdown waits for running
  // handlers, and then ends these actors without their hooks.
  std::vector<std::string> not_stopped;

  bool ok() const { return not_stopped.empty(); }
};

// The exception of the constructors of ActorSystem. Create returns the status instead.
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
  // Makes a system with the default options, or with these. Throws ActorSystemError.
  explicit ActorSystem(std::string_view name);
  explicit ActorSystem(const ActorSystemOptions& options);
  // The same without an exception. Errors: InvalidArgument for invalid options, and
  // kSystemNotBootstrapped if the boot fails.
  static absl::StatusOr<std::unique_ptr<ActorSystem>> Create(const ActorSystemOptions& options);
  ~ActorSystem();
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  std::string_view name() const;

  // Spawns a child of /user by its recipe, or a typed actor that is constructed from `args`
  // (fraktor/actor/actor.h). Spawn throws SpawnError; TrySpawn returns its status. Errors: those of
  // ActorContext::TrySpawn; kSystemNotBootstrapped while the system boots; kTerminating while the
  // system ends (FailedPrecondition) and afterwards (Unavailable).
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
  // Spawns the typed actor that `factory()` returns. Each restart calls it again: see
  // TypedContext::Spawn.
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
  // As Spawn and TrySpawn. `watcher` watches the actor from the beginning, and gets a Terminated
  // when it ends.
  ActorRef SpawnWatched(const ActorProps& props, ActorRef watcher, std::string_view name = {});
  absl::StatusOr<ActorRef> TrySpawnWatched(const ActorProps& props, ActorRef watcher, std::string_view name = {});
  // As Spawn and TrySpawn, for a child of /system, which outlives the actors of /user: for parts of
  // a runtime. The actor runs on the system pool, which the actors of /user cannot keep busy,
  // unless its props choose another. Its children run where their props say.
  ActorRef SpawnSystemActor(const ActorProps& props, std::string_view name = {});
  absl::StatusOr<ActorRef> TrySpawnSystemActor(const ActorProps& props, std::string_view name = {});

  // Ends an actor: see ActorContext::Stop. Cancels a handler that waits in co_await; a PoisonPill
  // lets it finish.
  void Stop(ActorRef actor);
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  void Stop(const Ref& actor) { Stop(actor.untyped()); }

  // Gives an actor metrics of its own, besides those of its type (label "actor", with its path),
  // from its next turn until it ends or StopObserving. Errors: InvalidArgument if it is no actor of
  // this system, NotFound if it has ended, AlreadyExists if it is observed, ResourceExhausted
  // beyond ObservabilityOptions.max_actors, FailedPrecondition if metrics are off.
  absl::Status Observe(ActorRef actor);
  void StopObserving(ActorRef actor);
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::Status Observe(const Ref& actor) { return Observe(actor.untyped()); }
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  void StopObserving(const Ref& actor) { StopObserving(actor.untyped()); }

  // Asks from any thread. Actors call ActorContext::Ask instead. Errors: those of
  // ActorContext::Ask, and Unavailable if the system has ended. The ask keeps its order among the
  // messages that the thread tells the actor. A future that is dropped before it is ready ends the
  // ask.
  template <class R, class M, class Explain = actor_internal::AsItIs>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, Explain explain = {}) {
    EnvelopePtr envelope = MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message));
    auto* const source = new actor_internal::AskSource<R, actor_internal::AskedBy::kSystem, Explain>(
        envelope->type(), timeout, nullptr, std::move(explain));
    Future<R> answer = Future<R>::FromSource(*source);
    AskFor(to, std::move(envelope), *source);
    return answer;
  }
  // Asks and waits: blocks the thread, or pumps the toolbox if that has no threads. Further error:
  // FailedPrecondition on a worker, unless it is that of a pinned actor.
  template <class R, class M, class Explain = actor_internal::AsItIs>
  absl::StatusOr<R> AskAndWait(ActorRef to, M&& message, absl::Duration timeout, Explain explain = {}) {
    CheckWaitsForAMessage<R>();
    return AskAndBlock<R>(to, std::forward<M>(message), timeout, std::move(explain));
  }
  // The same for a message that declares the type of its reply: `using Reply = ...`.
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& message, absl::Duration timeout) {
    actor_internal::CheckDeclaresReply<Q>();
    return Ask<ReplyOf<Q>>(to, std::forward<Q>(message), timeout);
  }
  template <int&... kDeduced, class Q>
  absl::StatusOr<ReplyOf<Q>> AskAndWait(ActorRef to, Q&& message, absl::Duration timeout) {
    actor_internal::CheckDeclaresReply<Q>();
    return AskAndBlock<ReplyOf<Q>>(to, std::forward<Q>(message), timeout);
  }

  // The same for typed references. The message declares the type of its reply, or the caller names
  // it.
  template <int&... kDeduced, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<ReplyOf<Q>> Ask(const Ref& to, Q&& message, absl::Duration timeout) {
    Ref::template Check<Q>();
    actor_internal::CheckDeclaresReply<Q>();
    return Ask<ReplyOf<Q>>(to.untyped(), std::forward<Q>(message), timeout);
  }
  template <class R, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<R> Ask(const Ref& to, Q&& message, absl::Duration timeout) {
    Ref::template Check<Q>();
    return Ask<R>(to.untyped(), std::forward<Q>(message), timeout);
  }
  template <int&... kDeduced, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<ReplyOf<Q>> AskAndWait(const Ref& to, Q&& message, absl::Duration timeout) {
    Ref::template Check<Q>();
    actor_internal::CheckDeclaresReply<Q>();
    return AskAndBlock<ReplyOf<Q>>(to.untyped(), std::forward<Q>(message), timeout);
  }
  template <class R, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  absl::StatusOr<R> AskAndWait(const Ref& to, Q&& message, absl::Duration timeout) {
    Ref::template Check<Q>();
    CheckWaitsForAMessage<R>();
    return AskAndBlock<R>(to.untyped(), std::forward<Q>(message), timeout);
  }

  // Asks as above. A requested stop ends the ask, and the future is Cancelled
  // (utils/future/with_stop.h). Any thread may request the stop.
  template <class R, class M>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<M>(message), timeout), std::move(stop));
  }
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(message), timeout), std::move(stop));
  }
  template <class R, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<R> Ask(const Ref& to, Q&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<Q>(message), timeout), std::move(stop));
  }
  template <int&... kDeduced, class Ref, class Q>
  requires requires(const Ref& ref) { ref.untyped(); }
  Future<ReplyOf<Q>> Ask(const Ref& to, Q&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(message), timeout), std::move(stop));
  }

  // Runs a coroutine in turns of /temp. Its error is logged.
  void Run(Task<void> task);

  // The living actor of a path ("pekko://shop/user/cart" or "/user/cart"), with or without its uid.
  // Errors: those of ActorPathParser for an invalid text; kUidReserved if the uid is that of an
  // actor of this path that has ended within ActorSystemConfig::uid_reservation; otherwise
  // kPidUnknown. With a RemoteProvider, a path of another system gives a reference: the actor that
  // has the path when a message arrives receives the message.
  absl::StatusOr<ActorRef> Resolve(std::string_view path) const;
  // The path of an actor, "pekko://shop/user/cart", or of the promise of an ask,
  // "pekko://shop/temp/cart$a". The system remembers the path of a named actor after its end, for
  // ActorSystemConfig::uid_reservation. If the path is not known: a text with the slot and
  // generation.
  std::string PathOf(ActorRef actor) const;
  // The path with the uid, "pekko://shop/user/cart#5320": two incarnations of one path differ in
  // it. "" if the actor has ended and its path is not remembered. If only the uid of an actor of
  // another node is known, "pekko://shop@10.0.0.7:2552/?#5320". If only its path is known, the
  // path.
  std::string CanonicalPathOf(ActorRef actor) const;
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  std::string PathOf(const Ref& actor) const { return PathOf(actor.untyped()); }
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  std::string CanonicalPathOf(const Ref& actor) const { return CanonicalPathOf(actor.untyped()); }

  // Runs the coordinated shutdown, which ends all actors in order: see above. Later calls do
  // nothing.
  void Terminate();
  // The phases and tasks of Terminate.
  CoordinatedShutdown& coordinated_shutdown();
  // Ready when the root has ended. OK after an orderly end. If a failure was escalated to /user or
  // /system, and has ended the system, its error, which names the actor. Before that, remoting
  // waits until other nodes have confirmed their messages, for RemoteOptions::shutdown_flush (1 s)
  // at most. Unconfirmed messages are lost if the process then calls _exit.
  Future<void> WhenTerminated();
  bool IsTerminated() const;
  // Terminates, and waits for the end up to `timeout`. Then it waits for running handlers, and ends
  // the remaining actors without their hooks. A handler that never returns blocks it for ever; the
  // log names its actor. No worker runs afterwards. A second call does nothing. On a worker, as in
  // a handler, it logs an error, does what Terminate does, and reports the actors that live now.
  ShutdownReport Shutdown(absl::Duration timeout);
  // The actors that have not ended, as Shutdown would report them now. Actors that start or end
  // meanwhile may be missing.
  ShutdownReport NotStopped() const;
  // Adds a callback for the end of the root. The latest one is called first. An exception is
  // logged, and the others are called all the same. FailedPrecondition if the root has ended.
  absl::Status OnTermination(std::function<void()> callback);

  // The parts of the system.
  ActorRef root_guardian() const;
  ActorRef user_guardian() const;
  ActorRef system_guardian() const;
  // Must not be called while the system boots.
  const actor_internal::RunningSystemState& state() const;
  EventStream& events();
  DeadLetters& dead_letters();
  const Logger& log() const;
  Logger& log();
  RuntimeToolbox& toolbox();
  ObservabilityHub& hub();
  actor_internal::ActorTree& tree();
  actor_internal::ActorNames& names();
  actor_internal::ReadyQueueScheduler& scheduler();
  const ActorSystemOptions& options() const;

  // Null if there is none.
  actor_internal::RemoteProvider* remote_provider() const;
  // Called once, before the system resolves paths of other systems.
  void SetRemoteProvider(actor_internal::RemoteProvider* provider);
  // Whether a path belongs to another system, which the RemoteProvider resolves.
  bool IsElsewhere(const ActorPath& path) const;

  // The one T of this system. The first call makes it, by T(ActorSystem&). Other threads that call
  // it meanwhile wait. It ends with the system, after all actors; the latest one ends first. The
  // constructor of T must not call Extension<T>(), also not through another extension: the process
  // aborts. It must not wait for an actor, because the actor may wait for this T.
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
    static_assert(
        !std::is_same_v<R, absl::Status>,
        "AskAndWait<R> returns a StatusOr<R>: R must be a message, and no Status; let the recipient reply with Done");
  }
  template <class R, class M, class Explain = actor_internal::AsItIs>
  absl::StatusOr<R> AskAndBlock(ActorRef to, M&& message, absl::Duration timeout, Explain explain = {}) {
    if (absl::Status may = MayWait(); !may.ok()) return may;
    Future<R> answer = Ask<R>(to, std::forward<M>(message), timeout, std::move(explain));
    AwaitReady(answer.node());
    return answer.Take();
  }
  void AskFor(ActorRef to, EnvelopePtr envelope, actor_internal::AskCompletion& completion);
  absl::Status MayWait() const;
  // Whether this process was forked from the process that has the threads of the system.
  bool IsLeftBehind() const;
  absl::Status Ended() const;
  // The result of a spawn, or Ended() if it failed because the system has ended.
  absl::StatusOr<ActorRef> OrEnded(absl::StatusOr<ActorRef> spawned) const;
  void AwaitReady(FutureNode& node);
  void* FindOrMakeExtension(const void* key, std::shared_ptr<void> (*make)(ActorSystem& system));

  std::unique_ptr<SystemParts> parts_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_H_
