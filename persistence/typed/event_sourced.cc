#include "fraktor/persistence/typed/event_sourced.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/delivery/at_least_once_delivery.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::MessageInvoker;

namespace {

// The same error, with the event that it is about.
absl::Status Naming(const absl::Status& cause, std::string_view id, uint64_t sequence_nr) {
  if (ErrorDetailNumberOf<JournalErrorKind>(cause, "nr").has_value()) return cause;
  absl::Status named(cause.code(), absl::StrCat("event ", sequence_nr, " of \"", ToAbsl(id), "\": ", cause.message()));
  cause.ForEachPayload([&named](auto url, const auto& payload) { named.SetPayload(url, payload); });
  return named;
}

}  // namespace

absl::Status EventSourcedActor::OnRecovered(ActorContext&) { return absl::OkStatus(); }

absl::Status EventSourcedActor::ReceiveCommand(ActorContext& context, Envelope& command) {
  AtLeastOnceDelivery* const deliveries = delivery();
  if (deliveries != nullptr && deliveries->Receive(context, command)) return absl::OkStatus();
  if (const auto* const saved = command.TryAs<SaveSnapshotSuccess>()) {
    OnSaved(saved->metadata);
    return absl::OkStatus();
  }
  if (command.Is<DeleteMessagesSuccess>() || command.Is<DeleteSnapshotsSuccess>()) return absl::OkStatus();
  return OnCommand(context, command);
}

absl::Status EventSourcedActor::ReceiveRecover(ActorContext&, Envelope& event) {
  return Guarded([&] { return ApplyEvent(event); });
}

absl::Status EventSourcedActor::OnRecoveryCompleted(ActorContext& context) {
  if (const Retention keep = retention(); keep.snapshot_every > 0 && keep.keep_snapshots == 0 && keep.delete_events) {
    return absl::InvalidArgumentError(
        "its retention() says delete_events, and keep_snapshots = 0, which keeps all: events are deleted with the "
        "snapshots that are older, so say how many snapshots to keep, or leave delete_events out");
  }
  if (AtLeastOnceDelivery* const deliveries = delivery()) deliveries->OnRecoveryCompleted(context);
  return OnRecovered(context);
}

void EventSourcedActor::OnPersistRejected(const absl::Status& cause, Envelope& event, uint64_t sequence_nr) {
  PersistentActor::OnPersistRejected(cause, event, sequence_nr);
  AnswerError(Naming(cause, persistence_id(), sequence_nr), event.sender());
}

void EventSourcedActor::OnPersistFailure(const absl::Status& cause, Envelope& event, uint64_t sequence_nr) {
  PersistentActor::OnPersistFailure(cause, event, sequence_nr);
  AnswerError(Naming(cause, persistence_id(), sequence_nr), event.sender());
}

void EventSourcedActor::AnswerError(const absl::Status& cause, ActorRef sender) {
  if (!std::exchange(is_answered_, true) && !sender.IsNoOne()) context().Tell(sender, ErrorReply{cause});
}

absl::Status EventSourcedActor::Guarded(absl::FunctionRef<absl::Status()> apply) {
  return MessageInvoker::Call("Apply", apply);
}

void EventSourcedActor::Refuse(const absl::Status& cause, const Envelope& event, ActorRef sender) {
  const absl::Status named =
      Annotate(cause, absl::StrCat("\"", persistence_id(), "\" cannot apply a ", ToAbsl(event.type()->name()),
                                   " that a command leads to, and stores nothing of it"));
  Log(context(), LogLevel::kError, ToStd(named.message()));
  if (!sender.IsNoOne()) context().Tell(sender, ErrorReply{named});
}

absl::Status EventSourcedActor::ApplyStored(Envelope& event) {
  // The handler returns the error.
  absl::Status applied = MessageInvoker::Call(
      "Apply", [&] { return ApplyEvent(event); }, &ActorContext::worker().turn_state.cause);
  if (applied.ok()) return applied;
  applied = Annotate(
      std::move(applied),
      absl::StrCat("event ", last_sequence_nr(), " of \"", persistence_id(), "\", a ", ToAbsl(event.type()->name()),
                   ", is stored, but Apply fails on it, and so will each recovery until Apply is mended"));
  AnswerError(applied, event.sender());
  // It has its answer.
  event.set_sender(ActorRef());
  return applied;
}

void EventSourcedActor::PersistAndApply(std::vector<EnvelopePtr> events, Applied applied,
                                        absl::AnyInvocable<absl::Status(ActorContext&)> then) {
  if (const size_t most = options().max_pending_events; events.size() > most) {
    const absl::Status refused =
        MakeError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge,
                  absl::StrCat("\"", persistence_id(), "\": a command leads to ", events.size(),
                               " events; the limit, "
                               "PersistentActorOptions::max_pending_events, is ",
                               most, ". Nothing is stored. Spread them over several commands"));
    Log(context(), LogLevel::kError, ToStd(refused.message()));
    if (!context().sender().IsNoOne()) context().Reply(ErrorReply{refused});
    return;
  }
  is_answered_ = false;
  size_t left = events.size();
  uint64_t first = 0;
  PersistEvents(
      std::move(events), [this, applied, left, first, then = std::move(then)](Envelope& event) mutable -> absl::Status {
        if (first == 0) first = last_sequence_nr();
        --left;
        if (applied == Applied::kWhenStored) FRAKTOR_RETURN_IF_ERROR(ApplyStored(event));
        if (left > 0) return absl::OkStatus();
        absl::Status status = MessageInvoker::Call(
            "it", [&] { return then(context()); }, &ActorContext::worker().turn_state.cause);
        SaveIfDue(first);
        if (status.ok()) return status;
        const std::string which = first == last_sequence_nr()
                                      ? absl::StrCat("event ", first)
                                      : absl::StrCat("events ", first, "..", last_sequence_nr());
        return Annotate(std::move(status),
                        absl::StrCat("what follows ", which, " of \"", persistence_id(),
                                     "\" (ThenRun, ThenReply) fails; that is stored, so the command must not be sent "
                                     "again"));
      });
}

// `first` is the number of the first event that was stored now.
void EventSourcedActor::SaveIfDue(uint64_t first) {
  const uint64_t every = retention().snapshot_every;
  if (every == 0 || (first - 1) / every == last_sequence_nr() / every) return;
  absl::StatusOr<EnvelopePtr> state = CopyState();
  if (!state.ok()) {
    Log(context(), LogLevel::kError,
        absl::StrCat("no snapshot of \"", persistence_id(), "\" is saved: ", state.status().message()));
    return;
  }
  SaveState(*std::move(state));
}

void EventSourcedActor::OnSaved(const SnapshotMetadata& saved) {
  NoteSnapshot(saved.sequence_nr);
  const Retention keep = retention();
  // One that is saved by hand is the user's to delete.
  if (keep.snapshot_every == 0 || keep.keep_snapshots == 0) return;
  const uint64_t newest = snapshots_.back();
  if (keep.keep_snapshots > newest / keep.snapshot_every) return;
  // What was saved in former lives is not known: spans tell how old it is. What is known is counted: snapshots may be
  // further apart than a span, and a single one would be all that is left.
  const uint64_t upper =
      std::min(newest - keep.snapshot_every * keep.keep_snapshots, std::max<uint64_t>(1, snapshots_.front()) - 1);
  if (upper == 0) return;
  if (keep.delete_events) DeleteMessages(upper);
  DeleteSnapshots({.max_sequence_nr = upper});
}

void EventSourcedActor::NoteSnapshot(uint64_t sequence_nr) {
  const uint64_t keep = std::max<uint64_t>(1, retention().keep_snapshots);
  const auto at = std::lower_bound(snapshots_.begin(), snapshots_.end(), sequence_nr);
  if (at == snapshots_.end() || *at != sequence_nr) snapshots_.insert(at, sequence_nr);
  if (snapshots_.size() > keep) snapshots_.erase(snapshots_.begin());
}

absl::Status EventSourcedActor::UnknownEvent(const Envelope& event, std::string_view actor) {
  return absl::FailedPreconditionError(absl::StrCat(ToAbsl(actor), " has stored a ", ToAbsl(event.type()->name()),
                                                    ", which is neither its state nor in its list Events<...>: add it, "
                                                    "or adapt it with an EventAdapter"));
}

absl::Status EventSourcedActor::UnknownState(const Envelope& saved, const SnapshotMetadata& metadata,
                                             std::string_view state) {
  return absl::FailedPreconditionError(
      absl::StrCat("snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id, "\" is a ",
                   ToAbsl(saved.type()->name()), ", and the State of the actor is ", ToAbsl(state),
                   ": let its codec read what is stored, or delete the snapshot if no events are deleted"));
}

absl::Status EventSourcedActor::NoPlaceForDeliveries(std::string_view state) {
  return absl::FailedPreconditionError(
      absl::StrCat(ToAbsl(state),
                   " has no place for what is unconfirmed: give it a member `DeliverySnapshot deliveries`, "
                   "and put it into its codec"));
}

absl::Status EventSourcedActor::NotCopyable(std::string_view state) {
  return absl::FailedPreconditionError(
      absl::StrCat(ToAbsl(state), " cannot be copied, which a snapshot needs: give it a copy constructor"));
}

}  // namespace fraktor::inline v0
