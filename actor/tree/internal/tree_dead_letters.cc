#include "fraktor/actor/tree/internal/tree_dead_letters.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/end_cause.h"
#include "fraktor/actor/event/orphaned_message.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/internal/routed_sending.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::TableSlot;

namespace {

// The error of an ask that is a dead letter.
absl::Status NoReplyBecause(DeadLetterReason reason, const Envelope& asked, ActorRef actor,
                            const std::string& recipient) {
  const std::string what = absl::StrCat(ToAbsl(asked.type()->name()), " gets no reply: ");
  switch (reason) {
    case DeadLetterReason::kMailboxFull:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "the mailbox of ", recipient, " is full; ask less, or raise MailboxOptions.capacity"));
    case DeadLetterReason::kStashFull:
      return absl::ResourceExhaustedError(absl::StrCat(
          what, recipient, " stashed it, and its stash was full; unstash earlier there, or raise SetStashCapacity"));
    case DeadLetterReason::kShutdown:
      return absl::UnavailableError(absl::StrCat(what, "the actor system of ", recipient, " is shutting down"));
    case DeadLetterReason::kStopped:
      return NoReplyOfEnded(asked.type()->name(), actor, recipient);
    case DeadLetterReason::kNotSerializable:
      return absl::InvalidArgumentError(
          absl::StrCat(what, "it cannot be encoded for the node of ", recipient,
                       "; it needs a codec in ActorSystemOptions.codecs, and must fit into a frame"));
    case DeadLetterReason::kUnresolvedFull:
      return absl::ResourceExhaustedError(absl::StrCat(what, "too many messages wait for the node of ", recipient,
                                                       ", which is not connected; ask again when it is"));
    case DeadLetterReason::kQuarantined:
    case DeadLetterReason::kNewIncarnation:
      return absl::UnavailableError(
          absl::StrCat(what, "it was lost on its way to ", recipient, " (", ToAbsl(NameOf(reason)), ")"));
    default:
      return MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                       absl::StrCat(what, "it was lost on its way to ", recipient, " (", ToAbsl(NameOf(reason)), ")"));
  }
}

// Whether the sender is a promise that waits for this recipient alone.
bool IsAskOfOne(ActorRef sender) { return sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0; }

}  // namespace

bool TreeDeadLetters::PublishOrphan(TableSlot* slot, EnvelopePtr& envelope, DeadLetterReason reason) const {
  const bool is_for_remote = (envelope->target_word() & ActorRef::kRemote) != 0;
  if (reason != DeadLetterReason::kStopped || listeners_.events == nullptr || slot == nullptr || is_for_remote ||
      envelope->is_system() || envelope->type()->is_intercepted()) {
    return false;
  }
  const ActorRef sender = envelope->sender();
  const bool is_ask = sender.IsRemote() ? sender.remote_slot()->link->IsPromise(sender) : IsAskOfOne(sender);
  if (!is_ask) return false;
  const ActorRef recipient = ActorRef(slot, envelope->target_word()).Plain();
  if (HasEndCause(recipient)) return false;
  listeners_.events->PublishToAll(OrphanedMessage{recipient, envelope});
  return envelope == nullptr;
}

void TreeDeadLetters::OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, TableSlot* slot,
                                   DeadLetterReason reason) const {
  envelope = UnwrapRouted(std::move(envelope));
  const ActorRef sender = envelope->sender();
  const ActorRef recipient = slot == nullptr ? ActorRef() : ActorRef(slot, envelope->target_word()).Plain();
  if (listeners_.observer != nullptr) listeners_.observer->OnDeadLetter(recipient, *envelope, reason);
  if (listeners_.dead_letters != nullptr) {
    DeadLetters& letters = *listeners_.dead_letters;
    const MessageView message{
        .type_name = envelope->type()->name(), .type = envelope->type(), .message = envelope->payload()};
    const Instant now = clock_.Now();
    const std::string from = sender.IsNoOne() ? std::string() : paths_.PathOf(sender);
    const std::string to = paths_.PathOf(recipient);
    const AllDeadLetters letter{.reason = reason, .sender = from, .recipient = to, .message = message};
    // The error of an ask matters to its asker only.
    if (envelope->type()->is_suppressed() || envelope->Is<ErrorReply>()) {
      letters.Publish(SuppressedDeadLetter{letter}, now);
    } else if (reason == DeadLetterReason::kMailboxFull) {
      letters.Publish(Dropped{letter}, now);
    } else {
      letters.Publish(DeadLetter{letter}, now);
    }
  }
  if (reason == DeadLetterReason::kLateReply) return;
  const auto why = [&] { return NoReplyBecause(reason, *envelope, recipient, paths_.PathOf(recipient)); };
  if (sender.IsRemote()) {
    FailRemoteAsk(sender, why);
  } else if (IsAskOfOne(sender) && sender.IsCurrent()) {
    AnswerPromise(sender, MakeEnvelope<ErrorReply>(cache, ActorRef(), why()).release());
  }
}

void TreeDeadLetters::OnUnhandled(ActorContext& context, Envelope& message) const {
  FailAsk(message, [&] {
    return absl::UnimplementedError(
        absl::StrCat(paths_.PathOf(context.self()), " does not handle ", ToAbsl(message.type()->name())));
  });
  // The event has only the name of the type. The log has the error.
  if (const auto* const error = message.TryAs<ErrorReply>()) {
    log_.Log(LogLevel::kWarning, context.self(),
             ToStd(absl::StrCat("got an error, and has no handler of ErrorReply: ", error->status.ToString())));
  }
  if (ActorWorker* const worker = ActorWorker::Current(); worker != nullptr && worker->metrics != nullptr) {
    worker->metrics->CountDeadLetter(DeadLetterReason::kUnhandled);
  }
  if (listeners_.dead_letters == nullptr) return;
  const std::string from = message.sender().IsNoOne() ? std::string() : paths_.PathOf(message.sender());
  const std::string to = paths_.PathOf(context.self());
  listeners_.dead_letters->Publish(
      UnhandledMessage{
          .sender = from,
          .recipient = to,
          .message = {.type_name = message.type()->name(), .type = message.type(), .message = message.payload()}},
      clock_.Now());
}

}  // namespace fraktor::inline v0::actor_internal
