#include "fraktor/persistence/actor/persistent_actor.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/stop_because.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/internal/pooled_memory.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/fencing_token.h"
#include "fraktor/persistence/actor/event_codec.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/actor/recovery_permitter.h"
#include "fraktor/persistence/actor/replay_filter.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::AllocatePooled;
using actor_internal::BehaviorStack;
using actor_internal::FreePooled;
using actor_internal::HandlerOwner;
using actor_internal::MessageInvoker;
using actor_internal::OwnerScope;
using actor_internal::TurnState;

namespace persistent_actor_internal {

// From an instance to itself, later.
struct Tick {
  enum class Kind : uint8_t { kWrite, kRecovery, kMisuse };
  Kind kind;
  uint64_t instance_id;
};

}  // namespace persistent_actor_internal

template <>
inline constexpr bool kLeavesReceiveTimeout<persistent_actor_internal::Tick> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<persistent_actor_internal::Tick> = true;

using persistent_actor_internal::Tick;

namespace {

// The events of the first page of a replay; the next one may have so many times more if the first
// one is not slow.
constexpr size_t kFirstPageEvents = 128;
constexpr int kPageGrowth = 8;
// A page should take at most this part of the time after which the recovery fails.
constexpr int kPagesPerTimeout = 4;

// As it is shown in texts: an id may be too long to be one.
std::string Shown(const std::string& persistence_id) {
  constexpr size_t kMost = 256;
  if (persistence_id.size() <= kMost) return absl::StrCat("\"", persistence_id, "\"");
  return absl::StrCat("\"", persistence_id.substr(0, 64), "...\" (", persistence_id.size(), " bytes)");
}

// The error of a recovery, for those who wait for it. An id that it begins with is said once.
absl::Status NotRecovered(const std::string& persistence_id, const absl::Status& cause) {
  const std::string what = absl::StrCat(Shown(persistence_id), " could not be recovered");
  const std::string prefix = absl::StrCat("\"", persistence_id, "\": ");
  if (!absl::StartsWith(cause.message(), prefix)) return Annotate(cause, what);
  absl::Status once(cause.code(), absl::StrCat(what, ": ", absl::StripPrefix(cause.message(), prefix)));
  cause.ForEachPayload([&once](auto url, const auto& payload) { once.SetPayload(url, payload); });
  return once;
}

// What an atomic write takes on its way to another node, at most.
size_t MessageBytesOf(const AtomicWrite& write) {
  constexpr size_t kOverheadBytes = 96;
  return write.ByteSize() + write.events().size() * (write.persistence_id().size() + kOverheadBytes);
}

// Whether it can be sent to a journal on another node.
absl::Status CheckFits(const AtomicWrite& write, size_t max_bytes) {
  const size_t bytes = MessageBytesOf(write);
  if (bytes <= max_bytes) return absl::OkStatus();
  return EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, write.persistence_id(),
                    write.lowest_sequence_nr(),
                    absl::StrCat("what is stored together takes ", bytes, " bytes; ", max_bytes,
                                 " may be sent to the journal, which is on another node: split it, or raise "
                                 "JournalSetup::max_message_bytes and the limits of the transport"));
}

// The cause of the failure that the handler is about to return.
FailureCause& CauseOfTurn() { return ActorContext::worker().turn_state.cause; }

}  // namespace

struct PersistentActor::Invocation {
  static void* operator new(size_t size) { return AllocatePooled(size); }
  static void operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

  bool is_stashing() const { return kind == Kind::kStashing || kind == Kind::kStashingDeferred; }

  Invocation* next = nullptr;
  EnvelopePtr event;  // Its sender is that of the command.
  EventHandler handler;
  uint64_t sequence_nr = 0;  // 0: deferred.
  uint64_t token = 0;        // Of an entry that the journal does not store; 0 for others.
  // Of the first event of an atomic write: what was sent, and is sent again. None for the others.
  AtomicWrite write;
  // Why the event cannot be stored, or why the journal has rejected an event of the same atomic
  // write. Null for most.
  std::unique_ptr<absl::Status> rejection;
  // Of the first of those that are stored together: how many they are. 0 for the others.
  uint32_t together = 1;
  Kind kind = Kind::kStashing;
};

struct PersistentActor::RecoveryProgress {
  // The answer that the recovery waits for. Others came twice or too late.
  enum class Step : uint8_t { kOpening, kLoading, kReplaying, kFailed };

  explicit RecoveryProgress(const ReplayFilterOptions& filter_options) : filter(filter_options) {}

  // Whether all events of the page come before those that were asked for.
  bool HasTaken(const ReplayedMessages& page) const {
    return !page.events.empty() && page.events.back().sequence_nr < next_sequence_nr;
  }

  Step step = Step::kOpening;
  Recovery from;
  ReplayFilter filter;
  uint64_t highest_sequence_nr = 0;
  uint64_t deleted_to = 0;
  // The newest snapshot that the codec cannot read, and why. OK if there is none.
  uint64_t unread_snapshot_nr = 0;
  absl::Status unread_snapshot;
  // How many events a page may have. It follows the speed of the journal, so that a slow one gives
  // a page before the recovery times out.
  size_t page_events = kFirstPageEvents;
  Instant page_asked_at;
  // What has not been asked for.
  uint64_t next_sequence_nr = 1;
  uint64_t events_left = 0;
  uint64_t events_seen = 0;
  // The number of the last event that has arrived, also if the filter discards it.
  uint64_t last_arrived_nr = 0;
  bool HasSeenMax() const { return events_seen >= from.replay_max; }
  Instant last_progress;
  TimerId timer;
  bool has_timer = false;
};

struct PersistentActor::OwnedHandler final : HandlerOwner {
  explicit OwnedHandler(CommandHandler its_function) : function(std::move(its_function)) {}
  const CommandHandler function;
};

PersistentActor::PersistentActor() : fencing_token_(CurrentFencingToken()) {}

PersistentActor::~PersistentActor() {
  // Of an instance that has seen no last hook.
  if (!permitter_.IsNoOne()) Tell(permitter_, ReturnRecoveryPermit{instance_id_});
  while (first_ != nullptr) PopFront();
}

// Hooks that do what is usual.

const PersistentActorOptions& PersistentActor::options() const { return extension_->actor_options(); }

absl::Status PersistentActor::ReceiveSnapshot(ActorContext& /*context*/, const SnapshotMetadata& metadata,
                                              Envelope& state) {
  return absl::UnimplementedError(
      absl::StrCat("there is a snapshot of \"", metadata.persistence_id, "\", number ", metadata.sequence_nr, ", a ",
                   ToAbsl(state.type()->name()),
                   ", but the actor does not override ReceiveSnapshot: do so, or let RecoverFrom "
                   "say SnapshotSelectionCriteria::None()"));
}

absl::Status PersistentActor::OnRecoveryCompleted(ActorContext& /*context*/) { return absl::OkStatus(); }
absl::Status PersistentActor::OnStart(ActorContext& /*context*/) { return absl::OkStatus(); }
void PersistentActor::OnStop(ActorContext& /*context*/) {}
void PersistentActor::OnSnapshotFailure(const absl::Status& /*cause*/) {}
void PersistentActor::AddTags(const Envelope& /*event*/, std::vector<std::string>& /*tags*/) const {}

absl::Status PersistentActor::OnRestart(ActorContext& context, const absl::Status& /*reason*/, Envelope* /*message*/) {
  for (const ActorRef child : context.Children()) {
    context.Unwatch(child);
    context.Stop(child);
  }
  OnStop(context);
  return absl::OkStatus();
}

void PersistentActor::OnPersistFailure(const absl::Status& cause, Envelope& event, uint64_t sequence_nr) {
  fraktor::Log(*context_, LogLevel::kError,
               absl::StrCat("event ", sequence_nr, " of \"", persistence_id_, "\", a ", ToAbsl(event.type()->name()),
                            ", could not be stored; the actor stops: ", cause.message()));
}

void PersistentActor::OnPersistRejected(const absl::Status& cause, Envelope& event, uint64_t sequence_nr) {
  if (rejected_together_ == 0) return;  // Said with the first of them.
  const bool is_one = rejected_together_ == 1;
  fraktor::Log(*context_, LogLevel::kError,
               absl::StrCat(is_one ? "event " : "events ", sequence_nr,
                            is_one ? std::string() : absl::StrCat("..", sequence_nr + rejected_together_ - 1), " of \"",
                            persistence_id_, is_one ? "\", a " : "\", the first a ", ToAbsl(event.type()->name()),
                            is_one ? ", was rejected and is not stored: " : ", were rejected and are not stored: ",
                            cause.message()));
}

void PersistentActor::OnRecoveryFailure(const absl::Status& cause, Envelope* /*event*/) {
  fraktor::Log(*context_, LogLevel::kError,
               absl::StrCat("the actor stops: ", NotRecovered(persistence_id_, cause).message()));
}

// The runtime's calls.

absl::Status PersistentActor::PreStart(ActorContext& context) { return Begin(context); }

absl::Status PersistentActor::PostRestart(ActorContext& context, const absl::Status& /*reason*/) {
  return Begin(context);
}

absl::Status PersistentActor::PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) {
  SendRest(context);
  LetGo();
  stash_.GiveBack(context);
  // The journal's answers are none of the actor's business.
  const bool is_internal = message != nullptr && (message->Is<RecoverySuccess>() || message->Is<WriterIsOpen>() ||
                                                  message->Is<WriteMessageRejected>() ||
                                                  message->Is<LoopMessageSuccess>() || message->Is<Tick>());
  return OnRestart(context, reason, is_internal ? nullptr : message);
}

void PersistentActor::PostStop(ActorContext& context) {
  SendRest(context);
  LetGo();
  // Now they are dead letters.
  stash_.GiveBack(context);
  OnStop(context);
}

absl::Status PersistentActor::Receive(ActorContext& context, Envelope& message) {
  spent_.reset();
  stash_.GoOn();
  in_receive_ = true;
  absl::Status status = Handle(context, message);
  in_receive_ = false;
  return status;
}

absl::Status PersistentActor::Handle(ActorContext& context, Envelope& message) {
  if (const auto* const written = message.TryAs<WriteMessageSuccess>()) {
    return written->instance_id == instance_id_ ? OnEventStored(context, written->sequence_nr) : absl::OkStatus();
  }
  if (message.type() == usual_command_ && !is_recovering_) return OnCommand(context, message);
  // The events' own answers say it all.
  if (message.Is<WriteMessagesSuccessful>() || message.Is<WriteMessagesFailed>()) return absl::OkStatus();
  if (const auto* const looped = message.TryAs<LoopMessageSuccess>()) {
    return looped->instance_id == instance_id_ ? OnLooped(context, looped->token) : absl::OkStatus();
  }
  if (const auto* const rejected = message.TryAs<WriteMessageRejected>()) {
    if (rejected->instance_id != instance_id_) return absl::OkStatus();
    return OnRejected(context, rejected->sequence_nr, absl::Status(rejected->cause));
  }
  if (const auto* const failed = message.TryAs<WriteMessageFailure>()) {
    if (failed->instance_id != instance_id_) return absl::OkStatus();
    return OnWriteFailed(context, failed->sequence_nr, absl::Status(failed->cause));
  }
  if (const auto* const tick = message.TryAs<Tick>()) {
    if (tick->instance_id != instance_id_) return absl::OkStatus();
    switch (tick->kind) {
      case Tick::Kind::kWrite:
        return OnWriteTick(context);
      case Tick::Kind::kRecovery:
        return OnRecoveryTick(context);
      case Tick::Kind::kMisuse:
        return WithMisuse(absl::OkStatus());
    }
  }
  if (is_recovering_) return HandleRecovery(context, message);
  return OnCommand(context, message);
}

// Commands.

// Answers of stores that come as commands; those to a former self do not.
bool PersistentActor::IsStale(const Envelope& message) {
  bool is_answer = false;
  const auto is_stale = [&](const auto* answer) {
    is_answer = is_answer || answer != nullptr;
    return answer != nullptr && answer->instance_id != instance_id_;
  };
  if (is_stale(message.TryAs<SaveSnapshotSuccess>()) || is_stale(message.TryAs<SaveSnapshotFailure>()) ||
      is_stale(message.TryAs<DeleteMessagesSuccess>()) || is_stale(message.TryAs<DeleteMessagesFailure>()) ||
      is_stale(message.TryAs<DeleteSnapshotSuccess>()) || is_stale(message.TryAs<DeleteSnapshotFailure>()) ||
      is_stale(message.TryAs<DeleteSnapshotsSuccess>()) || is_stale(message.TryAs<DeleteSnapshotsFailure>()) ||
      message.Is<RecoveryPermitGranted>() || message.Is<WriterIsOpen>() || message.Is<OpenWriterFailure>() ||
      message.Is<LoadSnapshotResult>() || message.Is<LoadSnapshotFailed>() || message.Is<ReplayedMessages>() ||
      message.Is<RecoverySuccess>() || message.Is<ReplayMessagesFailure>()) {
    return true;
  }
  if (!is_answer) usual_command_ = message.type();
  return false;
}

absl::Status PersistentActor::OnCommand(ActorContext& context, Envelope& message) {
  const bool has_waited = stash_.TookBack(message);
  if (message.type() != usual_command_ && IsStale(message)) {
    // It may be one that has waited.
    if (state_ == PersistentActorState::kProcessingCommands) stash_.ReturnNext(*context_);
    return absl::OkStatus();
  }
  const bool is_end = message.Is<PoisonPill>();
  if (state_ == PersistentActorState::kPersistingEvents) {
    if (is_end && stash_.waiting() >= options_->stash_capacity) {
      context.Stop();
      return absl::OkStatus();
    }
    if (!has_waited) return StashInternally(context, message);
    // A coroutine has persisted something meanwhile. It goes before those that it went before.
    stash_.WaitAgain(context);
    return absl::OkStatus();
  }
  if (is_end) {
    EndAfterEvents(context);
    return absl::OkStatus();
  }
  const auto handle = [&] {
    if (message.type() == usual_command_) {
      // The usual case.
    } else if (const auto* const save = message.TryAs<SaveSnapshotFailure>()) {
      OnSnapshotFailure(save->cause);
    } else if (const auto* const one = message.TryAs<DeleteSnapshotFailure>()) {
      OnSnapshotFailure(one->cause);
    } else if (const auto* const some = message.TryAs<DeleteSnapshotsFailure>()) {
      OnSnapshotFailure(some->cause);
    }
    if (behaviors_ == nullptr) return ReceiveCommand(context, message);
    auto* const top = static_cast<OwnedHandler*>(behaviors_->top());
    if (top == nullptr) return ReceiveCommand(context, message);
    const OwnerScope scope(*top);
    return top->function(context, message);
  };
  absl::Status status = WithMisuse(MessageInvoker::Call(message.type()->name(), handle, &CauseOfTurn()));
  AfterCommand();
  return WithMisuse(std::move(status));
}

void PersistentActor::AfterCommand() {
  Flush();
  if (pending_stashing_ > 0) {
    SetState(PersistentActorState::kPersistingEvents);
  } else {
    stash_.ReturnNext(*context_);
  }
}

absl::Status PersistentActor::StashInternally(ActorContext& context, Envelope& message) {
  if (stash_.waiting() < options_->stash_capacity) {
    stash_.Wait(context);
    return absl::OkStatus();
  }
  switch (options_->stash_overflow.answer()) {
    case StashOverflow::Answer::kReply:
      if (!message.sender().IsNoOne()) {
        ActorContext::worker().Send(message.sender(), options_->stash_overflow.MakeReply(context.self()).release());
        return absl::OkStatus();
      }
      [[fallthrough]];
    case StashOverflow::Answer::kDiscard:
      if (EnvelopePtr discarded = context.Stash()) {
        ActorContext::worker().DeadLetter(discarded.release(), &context.slot(), DeadLetterReason::kStashFull);
      }
      return absl::OkStatus();
    case StashOverflow::Answer::kFail:
      break;
  }
  stash_.NoRoom();
  return MakeError(absl::StatusCode::kResourceExhausted, ActorErrorKind::kStashOverflow,
                   absl::StrCat(context.Path(), " has no room for ", ToAbsl(message.type()->name()), ": ",
                                stash_.waiting(), " commands wait in state ", ToAbsl(NameOf(state_)),
                                "; send slower, raise PersistentActorOptions::stash_capacity, or choose another "
                                "stash_overflow"));
}

void PersistentActor::EndAfterEvents(ActorContext& context) {
  if (first_ == nullptr) {
    context.Stop();
    return;
  }
  // Commands that come later wait behind it, for whoever comes next.
  AppendLoop(Append(Kind::kStashingDeferred, MakeEnvelope<PoisonPill>(ActorRef()), [this](Envelope&) {
    context_->Stop();
    return absl::OkStatus();
  }));
  AfterCommand();
}

absl::Status PersistentActor::Stash() {
  if (in_handler_ || is_recovering_) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", persistence_id_,
                     "\" has no command to stash: ", is_recovering_ ? "it recovers" : "this is the handler of an event",
                     "; only a command that is being handled can be put aside"));
  }
  if (stash_.put_aside() >= options_->user_stash_capacity) {
    return MakeError(absl::StatusCode::kResourceExhausted, ActorErrorKind::kStashOverflow,
                     absl::StrCat(context_->Path(), " has stashed ", stash_.put_aside(),
                                  " commands already; unstash earlier, or raise "
                                  "PersistentActorOptions::user_stash_capacity"));
  }
  if (stash_.PutAside(*context_)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(context_->Path(), " has no command to stash: only the one that is being handled can be, and once"));
}

void PersistentActor::UnstashAll() {
  if (stash_.put_aside() == 0) return;
  stash_.TakeBack();
  if (!in_receive_ && state_ == PersistentActorState::kProcessingCommands) stash_.ReturnNext(*context_);
}

void PersistentActor::Become(CommandHandler handler) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  behaviors_->Replace(std::make_unique<OwnedHandler>(std::move(handler)));
}

void PersistentActor::BecomeStacked(CommandHandler handler) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  absl::Status stacked = behaviors_->Push(std::make_unique<OwnedHandler>(std::move(handler)));
  if (!stacked.ok()) Misuse(std::move(stacked));
}

bool PersistentActor::Unbecome() { return behaviors_ != nullptr && behaviors_->Pop(); }

absl::Status PersistentActor::Unhandled(Envelope& command) {
  const auto warn = [this](const auto&... what) {
    fraktor::Log(*context_, LogLevel::kWarning, absl::StrCat(what...));
    return absl::OkStatus();
  };
  if (const auto* const save = command.TryAs<SaveSnapshotFailure>()) {
    return warn("no snapshot of \"", persistence_id_, "\" at ", save->metadata.sequence_nr,
                " is saved: ", save->cause.message());
  }
  if (const auto* const messages = command.TryAs<DeleteMessagesFailure>()) {
    return warn("the events of \"", persistence_id_, "\" up to ", messages->to_sequence_nr,
                " are not deleted: ", messages->cause.message());
  }
  if (const auto* const one = command.TryAs<DeleteSnapshotFailure>()) {
    return warn("snapshot ", one->metadata.sequence_nr, " of \"", persistence_id_,
                "\" is not deleted: ", one->cause.message());
  }
  if (const auto* const some = command.TryAs<DeleteSnapshotsFailure>()) {
    return warn("snapshots of \"", persistence_id_, "\" are not deleted: ", some->cause.message());
  }
  return context_->Unhandled(command);
}

void PersistentActor::SetState(PersistentActorState to) {
  if (state_ == to) return;
  // Between commands and events it goes all the time.
  const bool is_usual =
      state_ >= PersistentActorState::kProcessingCommands && to >= PersistentActorState::kProcessingCommands;
  if (is_usual) {
    state_ = to;
    return;
  }
  if (absl::Status legal = CheckTransition(state_, to); !legal.ok()) Misuse(std::move(legal));
  state_ = to;
}

void PersistentActor::Misuse(absl::Status error, FailureCause cause) {
  if (misuse_.ok()) {
    misuse_ = std::move(error);
    cause_of_misuse_ = cause;
  }
  // In a coroutine there is nobody to return it to.
  if (!in_receive_) Tell(self_, Tick{Tick::Kind::kMisuse, instance_id_});
}

absl::Status PersistentActor::WithMisuse(absl::Status status) {
  if (misuse_.ok()) return status;
  absl::Status misuse = std::exchange(misuse_, absl::OkStatus());
  if (!status.ok()) return status;
  CauseOfTurn() = cause_of_misuse_;
  return misuse;
}

// Persisting.

bool PersistentActor::MayPersist(std::string_view what, size_t events) {
  if (is_recovering_) {
    Misuse(absl::FailedPreconditionError(absl::StrCat("\"", persistence_id_, "\" calls ", ToAbsl(what),
                                                      " while it recovers: events of the past are only to be applied; "
                                                      "what is to be persisted afterwards belongs into "
                                                      "OnRecoveryCompleted")));
    return false;
  }
  if (events > options_->max_pending_events) {
    Misuse(absl::ResourceExhaustedError(absl::StrCat(
        "\"", persistence_id_, "\" calls ", ToAbsl(what), " for ", events, " events; at most ",
        options_->max_pending_events,
        " may wait to be stored: persist them in several commands, or raise PersistentActorOptions::max_pending_events "
        "(and JournalLimits::max_atomic_write_events, for those that are stored together)")));
    return false;
  }
  if (events > options_->max_pending_events - std::min(pending_, options_->max_pending_events)) {
    Misuse(absl::ResourceExhaustedError(absl::StrCat("\"", persistence_id_, "\" has ", pending_,
                                                     " events that wait to be stored, and calls ", ToAbsl(what),
                                                     " for ", events,
                                                     " more; send slower, use Persist instead of PersistAsync, or "
                                                     "raise PersistentActorOptions::max_pending_events")));
    return false;
  }
  return true;
}

PersistentActor::Invocation& PersistentActor::Append(Kind kind, EnvelopePtr event, EventHandler handler) {
  auto* const invocation = new Invocation;  // NOLINT(cppcoreguidelines-owning-memory): PopFront takes it over.
  event->set_sender(context_->sender());
  invocation->event = std::move(event);
  invocation->handler = std::move(handler);
  invocation->kind = kind;
  if (first_ == nullptr) {
    first_ = invocation;
  } else {
    last_->next = invocation;
  }
  last_ = invocation;
  ++pending_;
  if (invocation->is_stashing()) ++pending_stashing_;
  return *invocation;
}

std::unique_ptr<PersistentActor::Invocation> PersistentActor::PopFront() {
  std::unique_ptr<Invocation> front(first_);
  first_ = front->next;
  if (last_sent_ == front.get()) last_sent_ = nullptr;
  --pending_;
  if (front->is_stashing()) --pending_stashing_;
  return front;
}

void PersistentActor::Enqueue(Kind kind, EnvelopePtr event, EventHandler handler) {
  if (!MayPersist("Persist", 1)) return;
  Invocation& invocation = Append(kind, std::move(event), std::move(handler));
  invocation.sequence_nr = ++sequence_nr_;
  AppendWrite(invocation, 1);
  AfterEnqueue();
}

void PersistentActor::EnqueueAll(Kind kind, std::vector<EnvelopePtr> events, EventHandler handler) {
  if (events.empty() || !MayPersist("PersistAll", events.size())) return;
  const auto shared = std::make_shared<EventHandler>(std::move(handler));
  Invocation* first = nullptr;
  for (EnvelopePtr& event : events) {
    Invocation& invocation = Append(kind, std::move(event), [shared](Envelope& stored) { return (*shared)(stored); });
    invocation.sequence_nr = ++sequence_nr_;
    invocation.together = 0;
    if (first == nullptr) first = &invocation;
  }
  first->together = static_cast<uint32_t>(events.size());
  AppendWrite(*first, events.size());
  AfterEnqueue();
}

void PersistentActor::EnqueueDeferred(Kind kind, EnvelopePtr event, EventHandler handler) {
  if (!MayPersist("Defer", 1)) return;
  if (first_ == nullptr) {
    // Nothing to wait for.
    const bool outer = std::exchange(in_handler_, true);
    FailureCause cause = FailureCause::kReturned;
    absl::Status status = MessageInvoker::Call(
        event->type()->name(), [&] { return handler(*event); }, &cause);
    in_handler_ = outer;
    if (!status.ok()) Misuse(std::move(status), cause);
    return;
  }
  AppendLoop(Append(kind, std::move(event), std::move(handler)));
  AfterEnqueue();
}

void PersistentActor::AppendLoop(Invocation& invocation) {
  invocation.token = ++last_token_;
  batch_deferred_.push_back({.position = batch_.size(), .token = invocation.token});
}

absl::StatusOr<AtomicWrite> PersistentActor::Encode(const Invocation& first, size_t count) const {
  const absl::Time now = ActorContext::worker().toolbox->WallNowRoughly();
  const Invocation* at = &first;
  return AtomicWrite::Fill(count, [&](size_t, PersistentRepr& repr) {
    const Invocation& invocation = *std::exchange(at, at->next);
    repr.persistence_id = persistence_id_;
    repr.sequence_nr = invocation.sequence_nr;
    repr.writer = writer_;
    repr.epoch = epoch_;
    repr.timestamp = now;
    return MessageInvoker::Call("the codec of an event", [&] {
      absl::Status encoded = codec_->Encode(*invocation.event, repr);
      if (encoded.ok()) AddTags(*invocation.event, repr.tags);
      return encoded;
    });
  });
}

void PersistentActor::AppendWrite(Invocation& first, size_t count) {
  absl::StatusOr<AtomicWrite> write = Encode(first, count);
  absl::Status status = write.status();
  if (status.ok() && max_journal_message_bytes_ != 0) status = CheckFits(*write, max_journal_message_bytes_);
  if (status.ok()) {
    first.write = *write;
    batch_.push_back(*std::move(write));
    return;
  }
  // The journal will not see them, but they have their place among the others.
  for (Invocation* at = &first; at != nullptr; at = at->next) {
    at->rejection = std::make_unique<absl::Status>(status);
    AppendLoop(*at);
  }
}

void PersistentActor::AfterEnqueue() {
  // A command is followed by its writes; a coroutine that goes on by itself is not.
  if (in_receive_) return;
  Flush();
  if (pending_stashing_ > 0) SetState(PersistentActorState::kPersistingEvents);
}

void PersistentActor::Flush() {
  if (last_sent_ != nullptr || (batch_.empty() && batch_deferred_.empty())) return;
  resends_ = 0;
  if (const size_t count = CountThatFit(); count == batch_.size()) {
    last_sent_ = last_;
    SendWrites(std::move(batch_), std::exchange(batch_deferred_, {}));
    batch_.clear();
  } else {
    AtomicWrites writes;
    std::vector<DeferredEntry> deferred;
    const auto end = batch_.begin() + static_cast<std::ptrdiff_t>(count);
    writes.assign(std::make_move_iterator(batch_.begin()), std::make_move_iterator(end));
    batch_.erase(batch_.begin(), end);
    const auto later = std::find_if(batch_deferred_.begin(), batch_deferred_.end(),
                                    [count](const DeferredEntry& entry) { return entry.position > count; });
    deferred.assign(batch_deferred_.begin(), later);
    batch_deferred_.erase(batch_deferred_.begin(), later);
    for (DeferredEntry& entry : batch_deferred_) entry.position -= count;
    size_t parts_left = writes.size() + deferred.size();
    for (Invocation* at = first_;; at = at->next) {
      const bool begins_a_part = at->token != 0 || !at->write.is_none();
      if (begins_a_part && parts_left-- == 0) break;
      last_sent_ = at;
    }
    SendWrites(std::move(writes), std::move(deferred));
  }
}

void PersistentActor::TellJournal(AtomicWrites&& writes, std::vector<DeferredEntry>&& deferred) {
  for (AtomicWrite& write : writes) write.set_known_stored(known_stored_nr_);
  context_->Tell(journal_, WriteMessages{.writes = std::move(writes),
                                         .deferred = std::move(deferred),
                                         .client = self_,
                                         .instance_id = instance_id_,
                                         .batch = batch_nr_,
                                         .only_events_are_answered = !journal_.IsRemote()});
}

void PersistentActor::SendWrites(AtomicWrites&& writes, std::vector<DeferredEntry>&& deferred) {
  ++batch_nr_;
  TellJournal(std::move(writes), std::move(deferred));
  if (!has_write_timer_) {
    ticked_batch_ = batch_nr_;
    ArmWriteTimer();
  }
}

// One timer for many writes: it looks whether the write that was under way when it was armed still
// is.
void PersistentActor::ArmWriteTimer() {
  const absl::StatusOr<TimerId> armed = ActorContext::worker().toolbox->ScheduleAfter(
      options_->write_timeout, [self = self_, instance_id = instance_id_] {
        Tell(self, Tick{Tick::Kind::kWrite, instance_id});
      });
  has_write_timer_ = armed.ok();
  if (armed.ok()) write_timer_ = *armed;
}

absl::Status PersistentActor::OnWriteTick(ActorContext& context) {
  has_write_timer_ = false;
  if (last_sent_ == nullptr) return absl::OkStatus();
  if (ticked_batch_ != batch_nr_) {
    ticked_batch_ = batch_nr_;
    ArmWriteTimer();
    return absl::OkStatus();
  }
  if (IsAnsweredInPart()) {
    AnswerRest();
  } else if (resends_ >= options_->max_write_resends) {
    return FailFront(
        context,
        EventError(absl::StatusCode::kDeadlineExceeded, JournalErrorKind::kIo, persistence_id_, first_->sequence_nr,
                   absl::StrCat("the journal has not answered for ", absl::FormatDuration(options_->write_timeout),
                                ", ", resends_ + 1, " times; whether it is stored is not known")));
  }
  // The same again: what is stored already is a success.
  AtomicWrites writes;
  std::vector<DeferredEntry> deferred;
  GatherSent(writes, deferred);
  if (resends_ < options_->max_write_resends && !(writes.empty() && deferred.empty())) {
    ++resends_;
    // It may be another actor by now.
    absl::StatusOr<ActorRef> journal = extension_->Journal(JournalPluginId(), persistence_id_);
    if (journal.ok()) journal_ = *journal;
    TellJournal(std::move(writes), std::move(deferred));
  }
  ArmWriteTimer();
  return absl::OkStatus();
}

bool PersistentActor::IsAnsweredInPart() const { return first_->token == 0 && first_->write.is_none(); }

// An atomic write is stored or rejected as a whole, so one answer tells the others.
void PersistentActor::AnswerRest() {
  for (const Invocation* at = first_; at != nullptr && at->token == 0 && at->write.is_none(); at = at->next) {
    if (at->rejection == nullptr) {
      Tell(self_, WriteMessageSuccess{at->sequence_nr, instance_id_, batch_nr_});
    } else {
      Tell(self_, WriteMessageRejected{at->sequence_nr, *at->rejection, instance_id_, batch_nr_});
    }
    if (at == last_sent_) return;
  }
}

void PersistentActor::GatherSent(AtomicWrites& writes, std::vector<DeferredEntry>& deferred) const {
  if (last_sent_ == nullptr) return;
  for (const Invocation* at = first_;; at = at->next) {
    if (at->token != 0) {
      deferred.push_back({.position = writes.size(), .token = at->token});
    } else if (!at->write.is_none()) {
      writes.push_back(at->write);
    }
    if (at == last_sent_) return;
  }
}

size_t PersistentActor::CountThatFit() const {
  if (max_journal_message_bytes_ == 0) return batch_.size();
  size_t count = 0;
  // Each of them fits by itself.
  for (size_t bytes = 0; count < batch_.size(); ++count) {
    bytes += MessageBytesOf(batch_[count]);
    if (bytes > max_journal_message_bytes_ && count > 0) break;
  }
  return count;
}

void PersistentActor::SendRest(ActorContext& context) {
  if (batch_.empty()) return;
  // What is under way goes along: if that write fails, nothing must be stored behind the gap.
  AtomicWrites writes;
  std::vector<DeferredEntry> deferred;
  GatherSent(writes, deferred);
  const size_t sent = writes.size();
  batch_.insert(batch_.begin(), std::make_move_iterator(writes.begin()), std::make_move_iterator(writes.end()));
  writes = std::exchange(batch_, {});
  // And in one message, for the same reason.
  size_t count = writes.size();
  if (max_journal_message_bytes_ != 0) {
    size_t bytes = 0;
    count = 0;
    while (count < writes.size() && (bytes += MessageBytesOf(writes[count])) <= max_journal_message_bytes_) ++count;
  }
  if (count < writes.size()) {
    fraktor::Log(
        context, LogLevel::kError,
        absl::StrCat("\"", persistence_id_, "\" ends, and ", writes.size() - std::max(count, sent),
                     " writes from event ", writes[std::max(count, sent)].lowest_sequence_nr(),
                     " on are not stored: they do not fit into one message to the journal, which is on another "
                     "node"));
    writes.resize(count);
  }
  if (count <= sent) return;
  // Nobody waits for the answers. At once, so that it goes before the opening of whoever comes
  // next.
  ++batch_nr_;
  TellJournal(std::move(writes), {});
  context.Flush();
}

// Answers come in the order of the invocations. One that is not for the first of them is the second
// answer to a write that was sent twice.

absl::Status PersistentActor::OnEventStored(ActorContext& context, uint64_t sequence_nr) {
  if (last_sent_ == nullptr || first_->token != 0 || first_->sequence_nr != sequence_nr) return absl::OkStatus();
  known_stored_nr_ = sequence_nr;
  return RunFront(context);
}

absl::Status PersistentActor::OnLooped(ActorContext& context, uint64_t token) {
  if (last_sent_ == nullptr || first_->token != token) return absl::OkStatus();
  if (first_->rejection != nullptr) return RejectFront(context, *first_->rejection);
  return RunFront(context);
}

absl::Status PersistentActor::OnRejected(ActorContext& context, uint64_t sequence_nr, const absl::Status& cause) {
  if (last_sent_ == nullptr || first_->token != 0 || first_->sequence_nr != sequence_nr) return absl::OkStatus();
  return RejectFront(context, cause);
}

absl::Status PersistentActor::OnWriteFailed(ActorContext& context, uint64_t sequence_nr, const absl::Status& cause) {
  if (last_sent_ == nullptr || first_->token != 0 || first_->sequence_nr != sequence_nr) return absl::OkStatus();
  return FailFront(context, cause);
}

absl::Status PersistentActor::RunFront(ActorContext& /*context*/) {
  TurnState& state = ActorContext::worker().turn_state;
  Invocation& front = *first_;
  if (front.sequence_nr != 0) last_sequence_nr_ = stored_sequence_nr_ = front.sequence_nr;
  // While its handler runs, the event is the message: with the sender of the command, and for
  // whoever restarts the actor. As a system message, since it cannot be put aside.
  Envelope* const event = front.event.get();
  event->set_target_word(state.word);
  event->MarkAsSystem();
  Envelope* const answer = std::exchange(state.current, event);
  in_handler_ = true;
  absl::Status status = WithMisuse(MessageInvoker::Call(
      event->type()->name(), [&] { return front.handler(*event); }, &CauseOfTurn()));
  in_handler_ = false;
  event->UnmarkAsSystem();
  std::unique_ptr<Invocation> done = PopFront();
  if (status.ok()) {
    state.current = answer;
  } else {
    state.current = done->event.release();
    spent_.reset(answer);
  }
  AfterHandler();
  return WithMisuse(std::move(status));
}

absl::Status PersistentActor::RejectFront(ActorContext& /*context*/, const absl::Status& cause) {
  const std::unique_ptr<Invocation> rejected = PopFront();
  if (rejected->token == 0 && first_ != nullptr && IsAnsweredInPart()) {
    first_->rejection = std::make_unique<absl::Status>(rejected->rejection != nullptr ? *rejected->rejection : cause);
  }
  const absl::Status why = AboutEvent(rejected->rejection != nullptr ? *rejected->rejection : cause,
                                      JournalErrorKind::kInvalid, persistence_id_, rejected->sequence_nr);
  last_sequence_nr_ = rejected->sequence_nr;
  rejected_together_ = rejected->together;
  ActorContext::worker().turn_state.current->set_sender(rejected->event->sender());
  const auto reject = [&] {
    OnPersistRejected(why, *rejected->event, rejected->sequence_nr);
    return absl::OkStatus();
  };
  absl::Status status = WithMisuse(MessageInvoker::Call("OnPersistRejected", reject, &CauseOfTurn()));
  AfterHandler();
  return WithMisuse(std::move(status));
}

absl::Status PersistentActor::FailFront(ActorContext& context, const absl::Status& why) {
  const std::unique_ptr<Invocation> failed = PopFront();
  const absl::Status cause = AboutEvent(why, JournalErrorKind::kIo, persistence_id_, failed->sequence_nr);
  ActorContext::worker().turn_state.current->set_sender(failed->event->sender());
  const absl::Status told = MessageInvoker::Call("OnPersistFailure", [&] {
    OnPersistFailure(cause, *failed->event, failed->sequence_nr);
    return absl::OkStatus();
  });
  if (!told.ok()) fraktor::Log(context, LogLevel::kError, ToStd(told.message()));
  stash_.Refuse(context,
                Annotate(cause, absl::StrCat("\"", persistence_id_,
                                             "\" stops before it comes to this, as an event of a command before "
                                             "it could not be stored")));
  // Nothing is stored behind an event that may be missing.
  batch_.clear();
  StopBecause(context, Annotate(cause, "it could not store an event"));
  return absl::OkStatus();
}

void PersistentActor::AfterHandler() {
  // The journal has answered.
  resends_ = 0;
  Flush();
  if (pending_stashing_ > 0) {
    SetState(PersistentActorState::kPersistingEvents);
  } else {
    SetState(PersistentActorState::kProcessingCommands);
    stash_.ReturnNext(*context_);
  }
}

// Snapshots and deletions.

void PersistentActor::SaveState(EnvelopePtr state) {
  // While it recovers, the number does not say what the state has seen.
  if (!MayPersist("SaveSnapshot", 0)) return;
  Snapshot snapshot;
  snapshot.metadata.persistence_id = persistence_id_;
  snapshot.metadata.sequence_nr = stored_sequence_nr_;
  if (is_partial_) {
    absl::Status refused = absl::FailedPreconditionError(absl::StrCat(
        "snapshot ", stored_sequence_nr_, " of \"", persistence_id_,
        "\" is not saved: RecoverFrom() has left out events before it, which would be lost with it; recover from all"));
    Tell(self_, SaveSnapshotFailure{std::move(snapshot.metadata), std::move(refused), instance_id_});
    return;
  }
  absl::Status encoded =
      MessageInvoker::Call("the codec of a state", [&] { return codec_->EncodeState(*state, snapshot); });
  if (!encoded.ok()) {
    Tell(self_, SaveSnapshotFailure{std::move(snapshot.metadata), std::move(encoded), instance_id_});
    return;
  }
  Tell(snapshots_, fraktor::SaveSnapshot{std::move(snapshot), self_, instance_id_, epoch_});
}

void PersistentActor::DeleteMessages(uint64_t to_sequence_nr) {
  if (to_sequence_nr == std::numeric_limits<uint64_t>::max()) to_sequence_nr = last_sequence_nr_;
  if (to_sequence_nr > last_sequence_nr_) {
    Tell(self_, DeleteMessagesFailure{
                    EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, persistence_id_,
                               to_sequence_nr, absl::StrCat("cannot be deleted: the last one is ", last_sequence_nr_)),
                    to_sequence_nr, instance_id_});
    return;
  }
  Tell(journal_, DeleteMessagesTo{persistence_id_, to_sequence_nr, self_, instance_id_, epoch_});
}

void PersistentActor::DeleteSnapshot(uint64_t sequence_nr) {
  SnapshotMetadata metadata;
  metadata.persistence_id = persistence_id_;
  metadata.sequence_nr = sequence_nr;
  Tell(snapshots_, fraktor::DeleteSnapshot{std::move(metadata), self_, instance_id_, epoch_});
}

void PersistentActor::DeleteSnapshots(const SnapshotSelectionCriteria& criteria) {
  Tell(snapshots_, fraktor::DeleteSnapshots{persistence_id_, criteria, self_, instance_id_, epoch_});
}

// Recovery.

absl::Status PersistentActor::Begin(ActorContext& context) {
  context_ = &context;
  self_ = context.self().Plain();
  persistence_id_ = PersistenceId();
  if (absl::StripAsciiWhitespace(persistence_id_).empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid,
                     absl::StrCat(context.Path(), " has the persistence id \"", persistence_id_,
                                  "\": PersistenceId() must say a name that is not blank"));
  }
  extension_ = &context.system().Extension<PersistenceExtension>();
  options_ = &options();
  FRAKTOR_RETURN_IF_ERROR(options_->Validate());
  FRAKTOR_ASSIGN_OR_RETURN(journal_, extension_->Journal(JournalPluginId(), persistence_id_));
  FRAKTOR_ASSIGN_OR_RETURN(codec_, extension_->CodecOf(JournalPluginId()));
  FRAKTOR_ASSIGN_OR_RETURN(snapshots_, extension_->SnapshotStore(SnapshotPluginId()));
  if (journal_.IsRemote()) max_journal_message_bytes_ = extension_->JournalMessageBytes(JournalPluginId());
  instance_id_ = extension_->NextInstance();
  writer_ = extension_->WriterOf(instance_id_);
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef permitter, extension_->RecoveryPermitter());
  FRAKTOR_RETURN_IF_ERROR(OnStart(context));
  // Nothing fails from here on: the permit is returned by the last hook.
  permitter_ = permitter;
  context.Tell(permitter_, RequestRecoveryPermit{self_, instance_id_});
  return absl::OkStatus();
}

absl::Status PersistentActor::HandleRecovery(ActorContext& context, Envelope& message) {
  using Step = RecoveryProgress::Step;
  // An answer to a former incarnation, or one that came before, changes nothing.
  const auto is_due = [&](const auto& answer, Step step) {
    if (answer.instance_id != instance_id_ || recovery_ == nullptr || recovery_->step != step) return false;
    recovery_->last_progress = ActorContext::worker().toolbox->Now();
    return true;
  };
  if (const auto* const granted = message.TryAs<RecoveryPermitGranted>()) {
    return granted->instance_id == instance_id_ && recovery_ == nullptr ? OnPermit(context) : absl::OkStatus();
  }
  if (const auto* const opened = message.TryAs<WriterIsOpen>()) {
    if (!is_due(*opened, Step::kOpening)) return absl::OkStatus();
    epoch_ = opened->epoch;
    recovery_->highest_sequence_nr = opened->highest_sequence_nr;
    recovery_->deleted_to = opened->deleted_to;
    if (recovery_->from.is_none()) return CompleteRecovery(context, message, opened->highest_sequence_nr);
    AskForSnapshot(context, recovery_->from.from_snapshot);
    return absl::OkStatus();
  }
  if (const auto* const not_opened = message.TryAs<OpenWriterFailure>()) {
    if (!is_due(*not_opened, Step::kOpening)) return absl::OkStatus();
    return FailRecovery(context, NotRead(not_opened->cause), nullptr);
  }
  if (auto* const loaded = message.TryAs<LoadSnapshotResult>()) {
    return is_due(*loaded, Step::kLoading) ? OnSnapshot(context, *loaded) : absl::OkStatus();
  }
  if (const auto* const not_loaded = message.TryAs<LoadSnapshotFailed>()) {
    if (!is_due(*not_loaded, Step::kLoading)) return absl::OkStatus();
    return OnNoSnapshot(context, NotRead(not_loaded->cause));
  }
  if (auto* const page = message.TryAs<ReplayedMessages>()) {
    if (!is_due(*page, Step::kReplaying) || recovery_->HasTaken(*page)) return absl::OkStatus();
    message.set_sender(ActorRef());
    return OnPage(context, *page);
  }
  if (const auto* const success = message.TryAs<RecoverySuccess>()) {
    if (!is_due(*success, Step::kReplaying)) return absl::OkStatus();
    const absl::Status arrived = CheckLastEventArrived(*success);
    if (!arrived.ok()) return FailRecovery(context, arrived, nullptr);
    return CompleteRecovery(context, message, success->highest_sequence_nr);
  }
  if (const auto* const failure = message.TryAs<ReplayMessagesFailure>()) {
    if (!is_due(*failure, Step::kReplaying)) return absl::OkStatus();
    return FailRecovery(context, NotRead(failure->cause), nullptr);
  }
  return StashInternally(context, message);
}

absl::Status PersistentActor::NotRead(const absl::Status& cause) const {
  return AboutId(cause, JournalErrorKind::kIo, persistence_id_);
}

absl::Status PersistentActor::OnPermit(ActorContext& context) {
  SetState(PersistentActorState::kRecoveryStarted);
  recovery_ = std::make_unique<RecoveryProgress>(options_->replay_filter);
  recovery_->last_progress = ActorContext::worker().toolbox->Now();
  uint64_t token = 0;
  const absl::Status asked = MessageInvoker::Call("RecoverFrom", [&] {
    recovery_->from = RecoverFrom();
    token = FencingToken();
    return absl::OkStatus();
  });
  if (!asked.ok()) return FailRecovery(context, asked, nullptr);
  ArmRecoveryTimer();
  context.Tell(journal_, OpenWriter{persistence_id_, token, self_, instance_id_});
  return absl::OkStatus();
}

absl::Status PersistentActor::OnSnapshot(ActorContext& context, LoadSnapshotResult& result) {
  if (!result.found) return BeginReplay(context);
  absl::StatusOr<EnvelopePtr> state = absl::UnknownError("");
  const absl::Status decoded = MessageInvoker::Call("the codec of a state", [&] {
    state = codec_->DecodeState(result.snapshot);
    return state.status();
  });
  if (!decoded.ok()) return PassOverSnapshot(context, result.snapshot.metadata.sequence_nr, decoded);
  last_sequence_nr_ = result.snapshot.metadata.sequence_nr;
  const absl::Status taken = WithMisuse(MessageInvoker::Call(
      "ReceiveSnapshot", [&] { return ReceiveSnapshot(context, result.snapshot.metadata, **state); }));
  if (!taken.ok()) return FailRecovery(context, taken, nullptr);
  WarnIfEventsAreLost(context);
  return BeginReplay(context);
}

void PersistentActor::WarnIfEventsAreLost(ActorContext& context) const {
  const uint64_t highest = recovery_->highest_sequence_nr;
  if (last_sequence_nr_ <= highest) return;
  fraktor::Log(context, LogLevel::kWarning,
               absl::StrCat("the snapshot of ", Shown(persistence_id_), " is of event ", last_sequence_nr_,
                            ", and the highest number in the journal is ", highest, ": events ", highest + 1, "..",
                            last_sequence_nr_,
                            " were lost from the journal. The state comes from the snapshot and has them; queries, and "
                            "a recovery without this snapshot, have not. Look for a backup of the journal, and keep "
                            "the snapshot"));
}

absl::Status PersistentActor::OnNoSnapshot(ActorContext& context, const absl::Status& cause) {
  if (!options_->snapshot_is_optional) return FailRecovery(context, cause, nullptr);
  fraktor::Log(context, LogLevel::kWarning,
               absl::StrCat("\"", persistence_id_,
                            "\" is recovered from its events alone, as its snapshot could not be "
                            "loaded: ",
                            cause.message()));
  return BeginReplay(context);
}

absl::Status PersistentActor::PassOverSnapshot(ActorContext& context, uint64_t sequence_nr, const absl::Status& cause) {
  const Recovery& from = recovery_->from;
  // The bound counts the events since this snapshot. There are more since an older one.
  if (from.replay_max != std::numeric_limits<uint64_t>::max()) return OnNoSnapshot(context, cause);
  fraktor::Log(context, LogLevel::kWarning,
               absl::StrCat("snapshot ", sequence_nr, " of ", Shown(persistence_id_),
                            " cannot be read and is passed over; an older one and the events since take its place, if "
                            "they are there: ",
                            cause.message()));
  if (recovery_->unread_snapshot.ok()) {
    recovery_->unread_snapshot_nr = sequence_nr;
    recovery_->unread_snapshot = cause;
  }
  if (sequence_nr == 0) return BeginReplay(context);
  AskForSnapshot(context, from.from_snapshot.Limit(sequence_nr - 1));
  return absl::OkStatus();
}

void PersistentActor::AskForSnapshot(ActorContext& context, const SnapshotSelectionCriteria& criteria) {
  recovery_->step = RecoveryProgress::Step::kLoading;
  context.Tell(snapshots_, LoadSnapshot{.persistence_id = persistence_id_,
                                        .criteria = criteria,
                                        .to_sequence_nr = recovery_->from.to_sequence_nr,
                                        .client = self_,
                                        .instance_id = instance_id_,
                                        .epoch = epoch_});
}

absl::Status PersistentActor::CheckEventsReplaceSnapshots() const {
  const uint64_t first = last_sequence_nr_ + 1;
  const uint64_t last = recovery_->unread_snapshot_nr;
  const uint64_t deleted_to = std::min(recovery_->deleted_to, recovery_->from.to_sequence_nr);
  const uint64_t highest = recovery_->highest_sequence_nr;
  if (first > last || (deleted_to < first && highest >= last)) return absl::OkStatus();
  const std::string missing = deleted_to >= first ? absl::StrCat("events ", first, "..", deleted_to, " are deleted")
                                                  : absl::StrCat("the highest number in the journal is ", highest,
                                                                 ": events ", highest + 1, "..", last, " are lost");
  const bool has_older = last_sequence_nr_ > 0;
  return IdError(
      absl::StatusCode::kDataLoss, deleted_to >= first ? JournalErrorKind::kDeleted : JournalErrorKind::kEventsLost,
      persistence_id_,
      absl::StrCat("snapshot ", last, " cannot be read (", recovery_->unread_snapshot.message(), "), and ",
                   has_older ? absl::StrCat("the older snapshot ", last_sequence_nr_) : std::string("events alone"),
                   " cannot take its place: ", missing,
                   ". Start a program whose codecs read the snapshot, or restore the events from a backup"));
}

absl::Status PersistentActor::CheckNothingIsMissing() const {
  if (!recovery_->unread_snapshot.ok()) FRAKTOR_RETURN_IF_ERROR(CheckEventsReplaceSnapshots());
  const Recovery& from = recovery_->from;
  const uint64_t last_missing = std::min(recovery_->deleted_to, from.to_sequence_nr);
  if (last_missing <= last_sequence_nr_ || from.replay_max == 0 || from.allow_deleted_events) return absl::OkStatus();
  return IdError(
      absl::StatusCode::kDataLoss, JournalErrorKind::kDeleted, persistence_id_,
      absl::StrCat("events ", last_sequence_nr_ + 1, "..", last_missing,
                   " are deleted and there is no snapshot that covers them",
                   last_sequence_nr_ == 0 ? std::string()
                                          : absl::StrCat(" (the newest that was found is ", last_sequence_nr_, ")"),
                   ": add the snapshot store that has them to the PersistenceExtension, restore it from a backup, or "
                   "widen the bounds of RecoverFrom(). If they are to be missing, let RecoverFrom() say "
                   ".allow_deleted_events = true"));
}

absl::Status PersistentActor::BeginReplay(ActorContext& context) {
  if (const absl::Status whole = CheckNothingIsMissing(); !whole.ok()) return FailRecovery(context, whole, nullptr);
  SetState(PersistentActorState::kRecovering);
  recovery_->step = RecoveryProgress::Step::kReplaying;
  recovery_->next_sequence_nr = last_sequence_nr_ + 1;
  recovery_->filter.StartAfter(last_sequence_nr_);
  recovery_->events_left = recovery_->from.replay_max;
  AskForPage(context);
  return WithMisuse(absl::OkStatus());
}

void PersistentActor::AskForPage(ActorContext& context) {
  PageLimits limits = options_->replay_page;
  limits.max_events = std::min(limits.max_events, recovery_->page_events);
  recovery_->page_asked_at = ActorContext::worker().toolbox->Now();
  // A page may be more by one event.
  if (max_journal_message_bytes_ != 0) limits.max_bytes = std::min(limits.max_bytes, max_journal_message_bytes_ / 2);
  context.Tell(journal_, ReplayMessages{.persistence_id = persistence_id_,
                                        .from_sequence_nr = recovery_->next_sequence_nr,
                                        .to_sequence_nr = recovery_->from.to_sequence_nr,
                                        .max_events = recovery_->events_left,
                                        .limits = limits,
                                        .knows_highest = true,
                                        .highest_sequence_nr = recovery_->highest_sequence_nr,
                                        .client = self_,
                                        .instance_id = instance_id_,
                                        .asks_for_last_sent = true});
}

void PersistentActor::AdaptPage() {
  const absl::Duration wanted = options_->recovery_event_timeout / kPagesPerTimeout;
  const absl::Duration took = ActorContext::worker().toolbox->Now() - recovery_->page_asked_at;
  const double factor = took <= wanted / kPageGrowth ? kPageGrowth : absl::FDivDuration(wanted, took);
  const size_t most = options_->replay_page.max_events;
  size_t& events = recovery_->page_events;
  const double next = static_cast<double>(std::min(events, most)) * factor;
  events = next >= static_cast<double>(most) ? most : std::max<size_t>(1, static_cast<size_t>(next));
}

absl::Status PersistentActor::OnPage(ActorContext& context, ReplayedMessages& page) {
  if (!page.is_last) {
    AdaptPage();
    // The next one is read while this one is applied.
    recovery_->next_sequence_nr = page.events.resume_at();
    recovery_->events_left -= std::min<uint64_t>(recovery_->events_left, page.events.size());
    AskForPage(context);
    context.Flush();
  } else if (!page.events.empty()) {
    recovery_->next_sequence_nr = page.events.back().sequence_nr + 1;
  }
  EnvelopePtr current;
  absl::Status applied = MessageInvoker::Call("the codec of an event", [&]() -> absl::Status {
    const auto apply = [&](EnvelopePtr event) -> absl::Status {
      current = std::move(event);
      FRAKTOR_RETURN_IF_ERROR(
          MessageInvoker::Call("ReceiveRecover", [&] { return WithMisuse(ReceiveRecover(context, *current)); }));
      current.reset();
      return absl::OkStatus();
    };
    recovery_->events_seen += page.events.size();
    if (!page.events.empty()) recovery_->last_arrived_nr = page.events.back().sequence_nr;
    for (const StoredEvent& stored : page.events) {
      const ReplayFilter::Verdict verdict = recovery_->filter.Judge(stored);
      last_sequence_nr_ = recovery_->filter.last_sequence_nr();
      switch (verdict) {
        case ReplayFilter::Verdict::kPass:
          break;
        case ReplayFilter::Verdict::kPassWithWarning:
          fraktor::Log(context, LogLevel::kWarning, recovery_->filter.Describe(stored));
          break;
        case ReplayFilter::Verdict::kDiscard:
          fraktor::Log(context, LogLevel::kWarning,
                       absl::StrCat(recovery_->filter.Describe(stored), "; it is left out"));
          continue;
        case ReplayFilter::Verdict::kFail:
          return recovery_->filter.ErrorOf(stored);
      }
      FRAKTOR_RETURN_IF_ERROR(codec_->Decode(stored, apply));
    }
    return absl::OkStatus();
  });
  // To apply a page may take long, and meanwhile nothing was awaited.
  recovery_->last_progress = ActorContext::worker().toolbox->Now();
  if (applied.ok()) return absl::OkStatus();
  if (current != nullptr) {
    applied = Annotate(std::move(applied),
                       absl::StrCat("event ", last_sequence_nr_, " of ", Shown(persistence_id_), ", a ",
                                    ToAbsl(current->type()->name()),
                                    ", could not be applied (it is stored: mend the actor, or adapt the event with an "
                                    "EventAdapter)"));
  } else if (!ErrorKindOf<JournalErrorKind>(applied).has_value()) {
    // Of an adapter, or of a codec that is not the registry's: what is wrong only they know.
    applied = Annotate(std::move(applied), absl::StrCat("event ", last_sequence_nr_, " of ", Shown(persistence_id_)));
  }
  return FailRecovery(context, applied, current.get());
}

absl::Status PersistentActor::CheckLastEventArrived(const RecoverySuccess& success) const {
  const Recovery& from = recovery_->from;
  uint64_t last = success.last_sent_nr.value_or(0);
  if (!success.last_sent_nr.has_value()) {
    // The journal is on a node of an older version. The highest number is that of an event, unless
    // events are deleted up to it. The last event of a bounded recovery is not known.
    last = success.highest_sequence_nr;
    if (recovery_->deleted_to >= last || from.to_sequence_nr < last || recovery_->HasSeenMax()) {
      return absl::OkStatus();
    }
  }
  if (!journal_.IsRemote() || std::max(recovery_->last_arrived_nr, last_sequence_nr_) >= last) return absl::OkStatus();
  return EventError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo, persistence_id_, last,
                    "has not arrived, although the journal, which is on another node, says that the replay is "
                    "complete. Either the message was lost: recover again. Or the event is too large for a message to "
                    "this node: raise the limits of the transport (WireLimits) on both nodes");
}

absl::Status PersistentActor::CompleteRecovery(ActorContext& context, Envelope& message, uint64_t highest_sequence_nr) {
  const Recovery& from = recovery_->from;
  is_partial_ = last_sequence_nr_ < highest_sequence_nr &&
                (from.is_none() || from.to_sequence_nr < highest_sequence_nr || recovery_->HasSeenMax());
  known_stored_nr_ = highest_sequence_nr;
  sequence_nr_ = std::max(highest_sequence_nr, last_sequence_nr_);
  last_sequence_nr_ = stored_sequence_nr_ = sequence_nr_;
  is_recovering_ = false;
  if (recovery_->has_timer) ActorContext::worker().toolbox->CancelTimer(recovery_->timer);
  recovery_.reset();
  message.set_sender(ActorRef());
  const absl::Status completed =
      WithMisuse(MessageInvoker::Call("OnRecoveryCompleted", [&] { return OnRecoveryCompleted(context); }));
  Flush();
  if (pending_stashing_ > 0) {
    SetState(PersistentActorState::kPersistingEvents);
  } else {
    SetState(PersistentActorState::kProcessingCommands);
    stash_.ReturnNext(*context_);
  }
  ReturnPermit();
  if (completed.ok()) return WithMisuse(absl::OkStatus());
  CauseOfTurn() = FailureCause::kInitialization;
  return MakeError(completed.code(), ActorErrorKind::kInitialization,
                   absl::StrCat("\"", persistence_id_, "\" has been recovered, but: ", completed.message()));
}

absl::Status PersistentActor::FailRecovery(ActorContext& context, const absl::Status& cause, Envelope* event) {
  if (recovery_ != nullptr) recovery_->step = RecoveryProgress::Step::kFailed;
  const absl::Status told = MessageInvoker::Call("OnRecoveryFailure", [&] {
    OnRecoveryFailure(cause, event);
    return absl::OkStatus();
  });
  if (!told.ok()) fraktor::Log(context, LogLevel::kError, ToStd(told.message()));
  const absl::Status why = NotRecovered(persistence_id_, cause);
  stash_.Refuse(context, why);
  StopBecause(context, why);
  return absl::OkStatus();
}

void PersistentActor::ArmRecoveryTimer() {
  const absl::StatusOr<TimerId> armed = ActorContext::worker().toolbox->ScheduleAt(
      recovery_->last_progress + options_->recovery_event_timeout, [self = self_, instance_id = instance_id_] {
        Tell(self, Tick{Tick::Kind::kRecovery, instance_id});
      });
  recovery_->has_timer = armed.ok();
  if (armed.ok()) recovery_->timer = *armed;
}

absl::Status PersistentActor::OnRecoveryTick(ActorContext& context) {
  if (recovery_ == nullptr) return absl::OkStatus();
  const absl::Duration waited = ActorContext::worker().toolbox->Now() - recovery_->last_progress;
  if (waited < options_->recovery_event_timeout) {
    ArmRecoveryTimer();
    return absl::OkStatus();
  }
  recovery_->has_timer = false;
  return FailRecovery(
      context,
      absl::DeadlineExceededError(absl::StrCat(
          "the recovery of \"", persistence_id_, "\" timed out: nothing has come for ", absl::FormatDuration(waited),
          " after event ", last_sequence_nr_, ", in state ", ToAbsl(NameOf(state_)),
          "; look at the journal and the snapshot store, or raise "
          "PersistentActorOptions::recovery_event_timeout")),
      nullptr);
}

void PersistentActor::ReturnPermit() {
  if (permitter_.IsNoOne()) return;
  Tell(std::exchange(permitter_, ActorRef()), ReturnRecoveryPermit{instance_id_});
}

void PersistentActor::LetGo() {
  RuntimeToolbox* const toolbox = ActorContext::worker().toolbox;
  if (std::exchange(has_write_timer_, false)) toolbox->CancelTimer(write_timer_);
  if (recovery_ != nullptr && std::exchange(recovery_->has_timer, false)) toolbox->CancelTimer(recovery_->timer);
  ReturnPermit();
}

}  // namespace fraktor::inline v0
