// The actors of a system as a tree: how they are spawned, stop, fail and start again.
//
//   ActorTree tree({.mailboxes = mailboxes, .dispatchers = dispatchers});
//   ActorRef greeter = tree.SpawnRoot(PropsOf<Greeter>()).value();        // from outside
//   ActorRef child = ActorTree::Of(context).Spawn(context, PropsOf<Child>()).value();   // in the parent's turn
//   ActorTree::Stop(greeter);                                             // from anywhere
//
// A parent lives longer than its children: an actor that stops stops its children first, and ends when the last of them
// has ended. An actor that fails is suspended with all its descendants, and its parent says what becomes of it. Nobody
// waits for anybody: all of that goes through system messages.
//
// Thread safety: any thread, except where a context is needed, which is only good in its actor's turn.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_TREE_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_TREE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_names.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/tree_observer.h"
#include "fraktor/actor/cell/tree_signals.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/mailbox_registry.h"
#include "fraktor/actor/dispatch/message_invoker.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct ActorTreeOptions {
  MailboxRegistry& mailboxes;
  Dispatchers& dispatchers;
  // Names types for metrics; null for none.
  ObservabilityHub* hub = nullptr;
  // Where messages go that reached nobody, with a clock; null: they are counted only.
  DeadLetters* dead_letters = nullptr;
  // Names and paths; null: actors have none.
  ActorNames* names = nullptr;
  // Null: nothing is logged.
  const Logger* log = nullptr;
  // What time it is where no worker is; null: none in particular.
  RuntimeToolbox* toolbox = nullptr;
  // Who subscribes actors to it says so by SubscribedToEvents; null: nobody does.
  EventStream* events = nullptr;
  // Must outlive the tree; null for none.
  TreeObserver* observer = nullptr;
  // What ActorContext::system() is.
  ActorSystem* system = nullptr;
  // Called in the last turn of a root, when all of its descendants have ended.
  std::function<void(ActorRef root)> on_root_ended = nullptr;
};

class CellState;

class ActorTree final : public ActorLifecycle {
 public:
  explicit ActorTree(const ActorTreeOptions& options);
  // No worker runs any more. Actors that are left end without their hooks.
  ~ActorTree() override;

  // The tree whose actor's turn this is.
  static ActorTree& Of(ActorContext& /*context*/) { return static_cast<ActorTree&>(ActorContext::worker().lifecycle); }

  // A child of the actor whose turn it is: see ActorContext::Spawn.
  absl::StatusOr<ActorRef> Spawn(ActorContext& parent, const ActorProps& props, std::string_view name = {}) override;
  // A child of an actor from any thread. Also Unavailable, and kTerminating, if that has ended. The actor must expect it.
  // `usual` is what DispatcherChoice::kAutomatic means.
  absl::StatusOr<ActorRef> SpawnChildOf(ActorRef parent, const ActorProps& props, std::string_view name = {},
                                        DispatcherChoice usual = DispatcherChoice::kAutomatic);
  // The same, and `watcher` watches it.
  absl::StatusOr<ActorRef> TrySpawnWatched(ActorRef parent, ActorRef watcher, const ActorProps& props,
                                           std::string_view name = {});
  // Before others than the actor itself give it children.
  static void ExpectForeignChildren(ActorRef parent);
  // An actor without a parent.
  absl::StatusOr<ActorRef> SpawnRoot(const ActorProps& props);

  // Ends the actor when the handler that runs, if any, has returned: see ActorContext::Stop. Any
  // thread.
  static void Stop(ActorRef actor);

  // Messages that reached nobody.
  uint64_t dead_letters() const { return dead_letter_count_.load(std::memory_order_relaxed); }

  // What a type number of a slot, or of a WorkerStall, means.
  std::string TypeName(uint16_t type) const;

  // Metrics of one actor alone: see ActorSystem::Observe.
  absl::Status Observe(ActorRef actor);
  static void StopObserving(ActorRef actor);

  // Of the ActorLifecycle, for contexts.
  void Stop(ActorContext& context, ActorRef actor) override;
  absl::Status Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, SameMessage same) override;
  void Unwatch(ActorContext& context, ActorRef actor) override;
  ActorRef ParentOf(ActorRef actor) const override;
  ActorRef ChildOf(ActorRef actor, std::string_view name) const override;
  std::vector<ActorRef> ChildrenOf(ActorRef actor) const override;
  std::string PathOf(ActorRef actor) const override;
  absl::Status OnUnhandled(ActorContext& context, Envelope& message) override;
  std::string DescribeFromOutside(ActorRef actor) const override;
  void OnPromiseEnded(ActorRef promise, ActorRef watcher) override;
  ActorSystem* system() const override { return options_.system; }

  // See ActorSystem::CanonicalPathOf. Any thread.
  std::string CanonicalPathOf(ActorRef actor) const;

  // The actors that live, up to `limit`, parents before their children. Any thread; a snapshot that is a little blurred.
  std::vector<ActorRef> Living(ActorRef root, size_t limit) const;

  // A line in the log about an actor, with its path and type. Any thread.
  void Log(LogLevel level, ActorRef actor, std::string_view text, LogSite site) const;

  const ActorTreeOptions& options() const { return options_; }

 private:
  // How a recipe became an actor, or did not.
  struct Made {
    ActorInstance* instance;
    absl::Status error;
  };

  absl::Status OnStart(ActorWorker& worker, ActorSlot& slot) override;
  void OnSystemMessage(ActorWorker& worker, ActorSlot& slot, Envelope& message) override;
  Envelope* OnMarkedMessage(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) override;
  void OnActivity(ActorWorker& worker, ActorSlot& slot) override;
  void OnFailure(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, FailureCause cause,
                 Envelope* message) override;
  bool MayEnd(ActorWorker& worker, ActorSlot& slot) override;
  void OnEnding(ActorWorker& worker, ActorSlot& slot) override;
  void OnEnded(ActorWorker& worker, ActorSlot& slot) override;
  bool IsAdopted(TableSlot* slot, EnvelopePtr& envelope, DeadLetterReason reason) override;
  void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, TableSlot* slot, DeadLetterReason reason) override;

  // Spawning.
  MailboxSpec SpecOf(const ActorProps& props, ActorInstance* instance, uint16_t dispatcher);
  template <class Register>
  absl::StatusOr<ActorSlot*> Put(const ActorProps& props, DispatcherChoice usual, Register register_slot);
  absl::StatusOr<ActorRef> SpawnSlowly(ActorRef parent, ActorWorker* worker, const ActorProps& props,
                                       std::string_view name, Made* made_before,
                                       DispatcherChoice usual = DispatcherChoice::kAutomatic);
  bool Adopt(NodeCache& cache, ActorSlot& parent, uint32_t generation, ActorSlot& child, bool is_named);
  static ActorRef Leave(ActorSlot& parent, ActorSlot& child);
  ActorRef Begin(ActorSlot& slot, bool must_run);
  void GiveUp(ActorSlot& slot, const ActorProps& props);
  static Made Make(NodeCache& cache, const ActorProps& props);
  static void Unmake(NodeCache& cache, ActorSlot& slot);
  uint16_t TypeOf(const ActorProps& props);
  uint16_t FindTypeOf(const ActorProps& props);
  // In the actor's turn: it is observed no longer.
  void ForgetObserved(ActorSlot& slot);

  // Failing.
  absl::Status NotStarted(const ActorSlot& slot, const absl::Status& why) const;
  // Suspends the children, except `culprit`, whose failure this one follows from, and tells the
  // parent.
  void Report(ActorWorker& worker, ActorSlot& slot, ChildFailed failed, const ActorSlot* culprit);
  void OnChildFailed(ActorWorker& worker, ActorSlot& slot, ActorRef child, const ChildFailed& failed);
  void Sentence(ActorWorker& worker, ActorSlot& parent, ActorRef child, const ChildFailed& failed);
  void RestartChildren(ActorWorker& worker, ActorSlot& parent, ActorRef failed, const absl::Status& error);
  void SendRestart(ActorWorker& worker, ActorRef child, const absl::Status& error, absl::Duration delay);
  void ForgetRestarts(ActorSlot& parent);
  void BeginRestart(ActorWorker& worker, ActorSlot& slot, const absl::Status& reason);
  void FinishRestart(ActorWorker& worker, ActorSlot& slot);
  void EndHandlers(ActorWorker& worker, ActorSlot& slot, const absl::Status& reason);
  void ResumeActorNow(ActorWorker& worker, ActorSlot& slot);
  // The verdict is there, and the hooks that might have answered the message it failed on are over.
  void EndFailedMessage(ActorSlot& slot);
  void FailAskOfFailed(const ActorSlot& slot, const CellState& state) const;
  // The same failure, as that of the parent. The error names the actor that failed at first.
  ChildFailed Escalated(ActorRef child, const ChildFailed& failed) const;
  void StopChild(ActorSlot& parent, ActorRef child);
  template <class M>
  static void TellChildren(ActorSlot& slot, const ActorSlot* except = nullptr);
  void StopChildren(ActorSlot& slot);

  // Watching.
  void OnWatchedEnded(ActorWorker& worker, ActorSlot& slot, const ActorEnded& ended);
  Envelope* TakeTerminated(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);

  RuntimeToolbox* Toolbox() const;
  Instant Now() const;
  // An actor holds a worker too long.
  void LogStall(std::string_view worker, const WorkerStall& stall) const;
  void LogOf(LogLevel level, ActorRef actor, const ActorSlot& slot, std::string_view text,
             LogSite site = LogSite::Here()) const;

  const ActorTreeOptions options_;
  const uint64_t serial_;  // Of this tree in the process.
  // A sum that orders nothing.
  std::atomic<uint64_t> dead_letter_count_{0};

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, uint16_t> types_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint16_t, std::string> type_names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_TREE_H_
