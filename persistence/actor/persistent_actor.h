// PersistentActor: an actor whose state is made of events that are stored. When it is started
// again, after a crash or a restart, it gets them again and is what it was.
//
//   class Account final : public PersistentActor {
//     std::string PersistenceId() const override { return "account-7"; }
//
//     absl::Status ReceiveCommand(ActorContext& context, Envelope& command) override {
//       if (!command.Is<Deposit>()) return Unhandled(command);
//       Persist(Deposited{command.As<Deposit>().amount}, [this, &context](const Deposited& event) {
//         balance_ += event.amount;                         // it is stored: now the state may change
//         context.Reply(Balance{balance_});                 // to the sender of the command
//       });
//       return absl::OkStatus();
//     }
//     absl::Status ReceiveRecover(ActorContext&, Envelope& event) override {
//       if (event.Is<Deposited>()) balance_ += event.As<Deposited>().amount;
//       return absl::OkStatus();
//     }
//     int64_t balance_ = 0;
//   };
//
// Needs a PersistenceExtension with a journal (persistence_extension.h), and codecs for its events
// (fraktor/actor/serialization/codec.h).
//
// Recovery: the actor waits for a permit, opens its persistence id for writing, gets the newest
// snapshot and the events after it, and then OnRecoveryCompleted. Commands wait meanwhile, in
// order. Whatever fails on the way is OnRecoveryFailure, those who have asked meanwhile, or ask
// shortly after, hear the cause, and the actor stops: a restart would only fail again. So it is if
// events are deleted and no snapshot covers them (JournalErrorKind::kDeleted; see recovery.h).
//
// A snapshot that the codec cannot read (a newer program saved it, for example) is passed over with
// a warning: an older one takes its place if the journal has all events since, or all events do if
// there is no older one. If events are missing, or Recovery::replay_max is set, the recovery fails
// and says which snapshot cannot be read.
//
// Persisting: what a command persists is written when its handler is over, as one write; one write
// of an actor is under way at a time, and what comes meanwhile goes with the next. Handlers of
// events run in the order in which the events were persisted, each when its event is stored.
// - Persist: further commands wait until the handler has run. So a command sees all that commands before it have done.
// - PersistAsync: they do not wait.
// - Defer, DeferAsync: nothing is stored, but the handler runs in its place among the others; at once if there are none.
//
// What may go wrong:
// - A write fails: OnPersistFailure, those whose commands wait, or who ask shortly after, hear the cause, and the actor
//   stops. Whether the event is
//   stored nobody knows; a new one finds out. A BackoffSupervisor starts it, with BackoffTrigger::kOnStop and after a pause
//   (fraktor/actor/pattern/backoff_supervisor.h), as after a recovery that has failed because a store was away.
// - An event is rejected (it has no codec, or is too large): OnPersistRejected, and the actor goes on without it. Its
//   number is used up.
// - A command fails: what it has persisted is stored all the same. A handler of an event fails: with a verdict to resume
//   its effect is missing, with one to restart the event is replayed.
// - A command persists and calls Stop() of its context: what it has persisted is stored, but its handlers do not run, and
//   nobody is answered. Stop in the handler of the event instead.
// - Misuse (persisting or saving a snapshot while events are replayed, Stash in a handler of an event) is a failure of
//   the actor.
//
// Two actors must not have the same persistence id at the same time. If they have, the one that was
// started last wins: the other one's writes are refused (JournalErrorKind::kFenced), and it stops.
// Its deletions, and its saves and deletions of snapshots, are refused too.
//
// Answers to SaveSnapshot, DeleteMessages, DeleteSnapshot and DeleteSnapshots come as commands
// (snapshot_messages.h, journal_messages.h).
//
// Costs: about half a KiB above a plain actor while it is idle. An event costs its bytes, a handful
// of allocations, and two messages, to the journal and back.
//
// Thread safety: as any actor, in its turns.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_H_
#define FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/context/internal/behavior_stack.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/persistence/actor/command_stash.h"
#include "fraktor/persistence/actor/persistent_actor_options.h"
#include "fraktor/persistence/actor/persistent_actor_state.h"
#include "fraktor/persistence/actor/recovery.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

class EventCodec;
class PersistenceExtension;

class PersistentActor : public ActorInstance {
 public:
  // Called with an event that is stored, or deferred. An error is a failure of the actor.
  using EventHandler = absl::AnyInvocable<absl::Status(Envelope& event)>;

  PersistentActor();
  PersistentActor(const PersistentActor&) = delete;
  PersistentActor& operator=(const PersistentActor&) = delete;
  ~PersistentActor() override;

  // The runtime's. What an actor does at these moments it says by the hooks below.
  absl::Status Receive(ActorContext& context, Envelope& message) final;
  absl::Status PreStart(ActorContext& context) final;
  void PostStop(ActorContext& context) final;
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) final;
  absl::Status PostRestart(ActorContext& context, const absl::Status& reason) final;
  // While events are being stored: the commands that they are of are not done before their handlers
  // have run.
  bool TakesPoisonPill() const final { return !is_recovering_ && first_ != nullptr; }

 protected:
  // What an actor says of itself.

  // The name under which its events are stored: stable, not blank, and of no other actor. Asked for
  // at each start.
  virtual std::string PersistenceId() const = 0;
  // Which journal and snapshot store, of those that the extension has; empty for the first. One
  // that it has not is a failure at the start.
  virtual std::string_view JournalPluginId() const { return {}; }
  virtual std::string_view SnapshotPluginId() const { return {}; }
  virtual Recovery RecoverFrom() const { return {}; }
  // From whoever decides which of several owns the id: only grows, and not 0. 0: the journal counts
  // by itself. The usual one is that of its context (fraktor/actor/system/fencing_token.h), which a
  // grain has.
  virtual uint64_t FencingToken() const { return fencing_token_; }
  // Must live as long as the actor. The usual ones are those of the extension.
  virtual const PersistentActorOptions& options() const;
  // By which tags queries find an event (fraktor/persistence/query), beside those of event
  // adapters. They must follow from the event alone, and each is named once. The usual one adds
  // none.
  virtual void AddTags(const Envelope& event, std::vector<std::string>& tags) const;

  // What it does.

  virtual absl::Status ReceiveCommand(ActorContext& context, Envelope& command) = 0;
  // An event of the past. It must not be refused: an error ends the actor.
  virtual absl::Status ReceiveRecover(ActorContext& context, Envelope& event) = 0;
  // A state of the past, before the events after it. The usual one fails: an actor that saves
  // snapshots takes them.
  virtual absl::Status ReceiveSnapshot(ActorContext& context, const SnapshotMetadata& metadata, Envelope& state);
  // All events of the past have been seen, and persisting is allowed again. Commands that wait come
  // after what is persisted here. An error is an initialization error, for which the usual strategy
  // stops the actor.
  virtual absl::Status OnRecoveryCompleted(ActorContext& context);

  // Hooks.

  // Before the recovery, at a start and a restart.
  virtual absl::Status OnStart(ActorContext& context);
  // After the last message; also of an instance that a new one is about to replace.
  virtual void OnStop(ActorContext& context);
  // Of the old instance, before a new one takes its place. `message` is the command or the event
  // that it failed on; null if there was none. The usual one stops all children, and calls OnStop.
  virtual absl::Status OnRestart(ActorContext& context, const absl::Status& reason, Envelope* message);

  // The event may or may not be stored. The actor stops afterwards. The usual one logs.
  virtual void OnPersistFailure(const absl::Status& cause, Envelope& event, uint64_t sequence_nr);
  // The event is not stored. The actor goes on. The usual one logs, once for all that were to be
  // stored together.
  virtual void OnPersistRejected(const absl::Status& cause, Envelope& event, uint64_t sequence_nr);
  // `event` is the one that ReceiveRecover failed on; null if it was something else. The actor
  // stops afterwards. The usual one logs.
  virtual void OnRecoveryFailure(const absl::Status& cause, Envelope* event);
  // A snapshot could not be saved or deleted. The message itself comes to ReceiveCommand as well.
  virtual void OnSnapshotFailure(const absl::Status& cause);

  // What it can do. Persist and the like belong into ReceiveCommand, OnRecoveryCompleted, handlers
  // of events, and coroutines that ReceiveCommand has begun.

  // `handler(const E&)` returns void or absl::Status.
  template <class E, class Handler>
  void Persist(E event, Handler handler) {
    Enqueue(Kind::kStashing, MakeEvent(std::move(event)), Erase<E>(std::move(handler)));
  }
  template <class E, class Handler>
  void PersistAsync(E event, Handler handler) {
    Enqueue(Kind::kAsync, MakeEvent(std::move(event)), Erase<E>(std::move(handler)));
  }
  // Stored together or not at all. The handler runs for each. Of no events nothing happens.
  template <class E, class Handler>
  void PersistAll(std::vector<E> events, Handler handler) {
    EnqueueAll(Kind::kStashing, MakeEvents(std::move(events)), Erase<E>(std::move(handler)));
  }
  template <class E, class Handler>
  void PersistAllAsync(std::vector<E> events, Handler handler) {
    EnqueueAll(Kind::kAsync, MakeEvents(std::move(events)), Erase<E>(std::move(handler)));
  }
  // The same for events of several types: MakeEvent makes one.
  void PersistEvents(std::vector<EnvelopePtr> events, EventHandler handler) {
    EnqueueAll(Kind::kStashing, std::move(events), std::move(handler));
  }
  void PersistEventsAsync(std::vector<EnvelopePtr> events, EventHandler handler) {
    EnqueueAll(Kind::kAsync, std::move(events), std::move(handler));
  }
  // Not stored and not replayed.
  template <class E, class Handler>
  void Defer(E event, Handler handler) {
    EnqueueDeferred(Kind::kStashingDeferred, MakeEvent(std::move(event)), Erase<E>(std::move(handler)));
  }
  template <class E, class Handler>
  void DeferAsync(E event, Handler handler) {
    EnqueueDeferred(Kind::kAsyncDeferred, MakeEvent(std::move(event)), Erase<E>(std::move(handler)));
  }
  template <class E>
  static EnvelopePtr MakeEvent(E event) {
    return MakeEnvelope<E>(ActorRef(), std::move(event));
  }

  // Saves `state` as what the actor is after its event snapshot_sequence_nr(). Not while it
  // recovers; and it fails after a recovery that was bounded (recovery.h), since the state has not
  // seen all events up to that number. Answer: SaveSnapshotSuccess or SaveSnapshotFailure.
  template <class S>
  void SaveSnapshot(S state) {
    SaveState(MakeEnvelope<S>(ActorRef(), std::move(state)));
  }
  void SaveState(EnvelopePtr state);
  // Deletes events up to and including a number; UINT64_MAX for all. One above last_sequence_nr()
  // is a failure, and nothing is deleted. What no snapshot covers is missing for ever: a later
  // recovery fails, unless it is told not to (Recovery::allow_deleted_events). So delete up to the
  // number in a SaveSnapshotSuccess. Answer: DeleteMessagesSuccess or DeleteMessagesFailure.
  void DeleteMessages(uint64_t to_sequence_nr);
  // Answer: DeleteSnapshotSuccess or DeleteSnapshotFailure.
  void DeleteSnapshot(uint64_t sequence_nr);
  // Answer: DeleteSnapshotsSuccess or DeleteSnapshotsFailure.
  void DeleteSnapshots(const SnapshotSelectionCriteria& criteria);

  // Puts the command that is being handled aside, and takes all back: before the commands that
  // wait, in order. To be used instead of fraktor::Stash, which knows nothing of those. Errors as
  // there; FailedPrecondition in a handler of an event.
  absl::Status Stash();
  void UnstashAll();

  // From the next command on, `handler` gets the commands instead of ReceiveCommand. Become
  // replaces the one on top; BecomeStacked puts it above, and Unbecome goes back: false if there is
  // nothing to go back from. A restart forgets all. A handler that was replaced lives until the
  // last task that it began has ended (context.Run). BecomeStacked beyond
  // BehaviorStack::kMaxStacked (1000) is a failure of the actor: ResourceExhausted.
  using CommandHandler = std::function<absl::Status(ActorContext& context, Envelope& command)>;
  void Become(CommandHandler handler);
  void BecomeStacked(CommandHandler handler);
  bool Unbecome();

  // For commands that ReceiveCommand knows nothing of. Failures to save and delete are logged, and
  // that is all.
  absl::Status Unhandled(Envelope& command);

  const std::string& persistence_id() const { return persistence_id_; }
  // Of the last event that was handled or replayed; 0 before the first. When a recovery is over it
  // is the highest that the journal knows, also of a bounded one, which has not seen that event:
  // new ones are numbered behind it.
  uint64_t last_sequence_nr() const { return last_sequence_nr_; }
  // As it will be stored with a snapshot: of the last of them that is stored. A number that was
  // rejected may be given to another event after a restart.
  uint64_t snapshot_sequence_nr() const { return stored_sequence_nr_; }
  // Until OnRecoveryCompleted.
  bool is_recovering() const { return is_recovering_; }
  bool is_recovery_finished() const { return !is_recovering_; }
  PersistentActorState state() const { return state_; }
  // Who wrote the events of this incarnation.
  WriterId writer() const { return writer_; }
  // Good for as long as the actor lives. After the start.
  ActorContext& context() const { return *context_; }

 private:
  enum class Kind : uint8_t { kStashing, kAsync, kStashingDeferred, kAsyncDeferred };
  template <class E>
  static std::vector<EnvelopePtr> MakeEvents(std::vector<E> events) {
    std::vector<EnvelopePtr> made;
    made.reserve(events.size());
    for (E& event : events) made.push_back(MakeEvent(std::move(event)));
    return made;
  }
  template <class E, class Handler>
  static EventHandler Erase(Handler handler) {
    return [handler = std::move(handler)](Envelope& event) mutable -> absl::Status {
      if constexpr (std::is_void_v<std::invoke_result_t<Handler&, const E&>>) {
        handler(std::as_const(event).template As<E>());
        return absl::OkStatus();
      } else {
        return handler(std::as_const(event).template As<E>());
      }
    };
  }

  // One event or deferred entry whose handler has not run.
  struct Invocation;
  struct RecoveryProgress;
  struct OwnedHandler;

  // Persisting.
  void Enqueue(Kind kind, EnvelopePtr event, EventHandler handler);
  void EnqueueAll(Kind kind, std::vector<EnvelopePtr> events, EventHandler handler);
  void EnqueueDeferred(Kind kind, EnvelopePtr event, EventHandler handler);
  bool MayPersist(std::string_view what, size_t events);
  Invocation& Append(Kind kind, EnvelopePtr event, EventHandler handler);
  void AppendLoop(Invocation& invocation);
  // The bytes of `count` invocations from `first` on; an error rejects them.
  absl::StatusOr<AtomicWrite> Encode(const Invocation& first, size_t count) const;
  void AppendWrite(Invocation& first, size_t count);
  void AfterEnqueue();
  void Flush();
  // As batch_nr_ says: a new one, or what is under way once more.
  void TellJournal(AtomicWrites&& writes, std::vector<DeferredEntry>&& deferred);
  void SendWrites(AtomicWrites&& writes, std::vector<DeferredEntry>&& deferred);
  absl::Status OnEventStored(ActorContext& context, uint64_t sequence_nr);
  absl::Status OnLooped(ActorContext& context, uint64_t token);
  absl::Status OnRejected(ActorContext& context, uint64_t sequence_nr, const absl::Status& cause);
  absl::Status OnWriteFailed(ActorContext& context, uint64_t sequence_nr, const absl::Status& cause);
  absl::Status RunFront(ActorContext& context);
  absl::Status RejectFront(ActorContext& context, const absl::Status& cause);
  absl::Status FailFront(ActorContext& context, const absl::Status& cause);
  std::unique_ptr<Invocation> PopFront();
  void AfterHandler();
  // How many of the writes that wait fit into one message.
  size_t CountThatFit() const;
  // Adds all entries under way, as they were sent; but no atomic write that is answered in part,
  // since its outcome is known.
  void GatherSent(AtomicWrites& writes, std::vector<DeferredEntry>& deferred) const;
  // At the end of an instance: what waits for the write under way.
  void SendRest(ActorContext& context);
  // Whether the first event under way belongs to an atomic write of which the journal has answered
  // other events.
  bool IsAnsweredInPart() const;
  // Sends itself the answers to the other events of that atomic write.
  void AnswerRest();
  void ArmWriteTimer();
  absl::Status OnWriteTick(ActorContext& context);

  // Commands.
  bool IsStale(const Envelope& message);
  absl::Status OnCommand(ActorContext& context, Envelope& message);
  absl::Status Handle(ActorContext& context, Envelope& message);
  absl::Status HandleRecovery(ActorContext& context, Envelope& message);
  void AfterCommand();
  absl::Status StashInternally(ActorContext& context, Envelope& message);
  // It ends when the handlers of all events before have run.
  void EndAfterEvents(ActorContext& context);
  void SetState(PersistentActorState to);
  void Misuse(absl::Status error, FailureCause cause = FailureCause::kReturned);
  // `status`, or the misuse that happened meanwhile.
  absl::Status WithMisuse(absl::Status status);

  // Recovery.
  absl::Status Begin(ActorContext& context);
  // What a store has answered instead, as an error about the id.
  absl::Status NotRead(const absl::Status& cause) const;
  absl::Status OnPermit(ActorContext& context);
  absl::Status OnSnapshot(ActorContext& context, LoadSnapshotResult& result);
  void WarnIfEventsAreLost(ActorContext& context) const;
  absl::Status OnNoSnapshot(ActorContext& context, const absl::Status& cause);
  // The codec cannot read the snapshot: asks for an older one.
  absl::Status PassOverSnapshot(ActorContext& context, uint64_t sequence_nr, const absl::Status& cause);
  void AskForSnapshot(ActorContext& context, const SnapshotSelectionCriteria& criteria);
  // An error if the journal has deleted events that the recovery needs.
  absl::Status CheckNothingIsMissing() const;
  // An error unless the journal has all events that replace the snapshots that were passed over.
  absl::Status CheckEventsReplaceSnapshots() const;
  absl::Status BeginReplay(ActorContext& context);
  void AskForPage(ActorContext& context);
  // After a page has come: how many events the next one may have.
  void AdaptPage();
  absl::Status OnPage(ActorContext& context, ReplayedMessages& page);
  // Fails if the last event of a remote replay is missing.
  absl::Status CheckLastEventArrived(const RecoverySuccess& success) const;
  absl::Status CompleteRecovery(ActorContext& context, Envelope& message, uint64_t highest_sequence_nr);
  absl::Status FailRecovery(ActorContext& context, const absl::Status& cause, Envelope* event);
  absl::Status OnRecoveryTick(ActorContext& context);
  void ArmRecoveryTimer();
  void ReturnPermit();
  // Timers and the permit: whatever outlives the instance otherwise.
  void LetGo();

  const uint64_t fencing_token_;
  std::string persistence_id_;
  ActorContext* context_ = nullptr;
  PersistenceExtension* extension_ = nullptr;
  const PersistentActorOptions* options_ = nullptr;
  const EventCodec* codec_ = nullptr;
  ActorRef self_;  // Past any limit of the mailbox: a journal must not wait for room.
  ActorRef journal_;
  ActorRef snapshots_;
  ActorRef permitter_;  // No one, if the permit was not asked for or has been returned.
  // Of messages to stores on other nodes; 0: no limit.
  size_t max_journal_message_bytes_ = 0;

  WriterId writer_;
  uint64_t instance_id_ = 0;
  uint64_t epoch_ = 0;
  uint64_t last_sequence_nr_ = 0;    // Handled or rejected.
  uint64_t stored_sequence_nr_ = 0;  // Handled.
  // The highest that the journal has reported or acknowledged: it goes with each write
  // (AtomicWrite::known_stored). A snapshot may be above it.
  uint64_t known_stored_nr_ = 0;
  uint64_t sequence_nr_ = 0;  // Given to an event.

  // The type of the last message that no store has sent: what is not looked at again for being one
  // of theirs.
  const MessageType* usual_command_ = nullptr;

  // Invocations in the order of their calls. Those up to last_sent_ are with the journal.
  Invocation* first_ = nullptr;
  Invocation* last_ = nullptr;
  Invocation* last_sent_ = nullptr;
  size_t pending_ = 0;
  size_t pending_stashing_ = 0;
  // What goes with the next write.
  AtomicWrites batch_;
  std::vector<DeferredEntry> batch_deferred_;
  uint64_t batch_nr_ = 0;
  uint64_t last_token_ = 0;
  TimerId write_timer_;
  uint64_t ticked_batch_ = 0;  // That was under way at the last tick.

  CommandStash stash_;

  std::unique_ptr<RecoveryProgress> recovery_;
  std::unique_ptr<actor_internal::BehaviorStack> behaviors_;
  absl::Status misuse_;
  FailureCause cause_of_misuse_ = FailureCause::kReturned;
  // The journal's message whose event has failed: others may still look at it until the next
  // message.
  EnvelopePtr spent_;

  int resends_ = 0;
  uint32_t rejected_together_ = 1;  // Of the event that OnPersistRejected is about: see Invocation.
  PersistentActorState state_ = PersistentActorState::kWaitingRecoveryPermit;
  bool is_recovering_ = true;
  bool in_receive_ = false;
  bool in_handler_ = false;
  bool has_write_timer_ = false;
  // Its recovery was bounded: there are events that its state has not seen.
  bool is_partial_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_H_
