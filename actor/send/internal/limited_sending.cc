#include "fraktor/actor/send/internal/limited_sending.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/mailbox/overflow/overflow_answer.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::TableSlot;

namespace {

// Written before main, and never changed afterwards.
constinit SuspendFunction suspend_sender = nullptr;

// Schedules an actor whose messages the limits keep.
struct MailboxBell {};

MailboxLimits& LimitsOf(ActorSlot& slot) { return *slot.limits.load(std::memory_order_acquire); }

// "the mailbox of pekko://shop/user/cart is full (10 messages)", or "(10 messages, and 64 more for
// control messages)".
std::string FullMailbox(ActorWorker* worker, ActorRef to) {
  std::string path = worker != nullptr ? worker->lifecycle.PathOf(to) : SystemCore::PathOf(to);
  if (path.empty()) path = "an actor";
  const MailboxLimits& limits = LimitsOf(*to.slot());
  const size_t reserve = limits.control_reserve();
  return absl::StrCat("the mailbox of ", path, " is full (", limits.capacity(), " messages",
                      reserve == 0 ? std::string() : absl::StrCat(", and ", reserve, " more for control messages"),
                      ")");
}

// `why` is the reason that the policy gave; empty if it gave none.
absl::Status Full(ActorWorker* worker, ActorRef to, const Envelope& envelope, const std::string& why) {
  return absl::ResourceExhaustedError(
      absl::StrCat(FullMailbox(worker, to), ": ", ToAbsl(envelope.type()->name()), " was not accepted",
                   why.empty() ? std::string("; send less, or raise MailboxOptions.capacity") : ": " + why));
}

absl::Status NoRoom(ActorRef to, const Envelope& envelope) {
  return absl::DeadlineExceededError(
      absl::StrCat(FullMailbox(nullptr, to), ", and there was no room for ", ToAbsl(envelope.type()->name()),
                   " within MailboxOptions.push_timeout; send less, or raise MailboxOptions.capacity"));
}

void Mark(Envelope& envelope) { envelope.set_target_word(envelope.target_word() | kCountedMark); }

// Makes a message a dead letter on the side of the sender.
void Lose(ActorWorker* worker, ActorRef to, Envelope* envelope, DeadLetterReason reason) {
  if (worker != nullptr) {
    worker->DeadLetter(envelope, to.slot(), reason);
  } else {
    SystemCore::LoseForeign(to, EnvelopePtr(envelope), reason);
  }
}

void Post(ActorWorker* worker, ActorSlot& slot, Envelope* envelope) {
  if (!slot.mailbox.Post(envelope)) return;
  if (worker != nullptr) {
    worker->outbox.MakeReady(slot);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

void Ring(ActorWorker* worker, ActorRef to) {
  EnvelopePtr bell = MakeEnvelope<MailboxBell>(ActorRef());
  bell->set_target_word(to.word());
  Post(worker, *to.slot(), bell.release());
}

// Count a message that enters the mailbox of a slot, and one that leaves it unhandled.
void CountIn(ActorWorker* worker, const ActorSlot& slot) {
  const ObservedId type = slot.type.load(std::memory_order_relaxed);
  if (worker != nullptr) {
    if (worker->metrics != nullptr) worker->metrics->CountEnqueued(type, 1);
  } else if (const SystemCore* const core = SystemCore::Of(slot)) {
    if (ForeignMetrics* const metrics = core->metrics()) metrics->CountEnqueued(type);
  }
}
void CountOut(ActorWorker* worker, const ActorSlot& slot) {
  const ObservedId type = slot.type.load(std::memory_order_relaxed);
  if (worker != nullptr) {
    if (worker->metrics != nullptr) worker->metrics->CountHandled(type, 1);
  } else if (const SystemCore* const core = SystemCore::Of(slot)) {
    if (ForeignMetrics* const metrics = core->metrics()) metrics->CountHandled(type, 1);
  }
}

void CountOverflow(ActorWorker* worker, const ActorSlot& slot, OverflowAnswer answer) {
  const size_t counter = CounterOf(kMailboxOverflow) + static_cast<size_t>(answer);
  if (worker != nullptr) {
    if (worker->metrics != nullptr) worker->metrics->Count(counter);
  } else if (const SystemCore* const core = SystemCore::Of(slot)) {
    if (ForeignMetrics* const metrics = core->metrics()) metrics->Count(counter);
  }
}

// Moves messages that wait for room into a mailbox that the caller holds, as many as fit. `worker`
// is the worker of this thread, or null.
void LetIn(ActorWorker* worker, ActorSlot& slot) {
  const auto push = [&](EnvelopeList list) {
    while (Envelope* const held = list.PopFront()) {
      CountIn(worker, slot);
      Mark(*held);
      Post(worker, slot, held);
    }
  };
  for (const ActorRef sender : LimitsOf(slot).Readmit(push)) {
    TellSystem(sender, MakeEnvelope<RoomFound>(ActorRef(), &slot));
  }
}

absl::Status AskPolicy(ActorWorker* worker, ActorRef to, EnvelopePtr envelope);
absl::Status AwaitRoom(ActorRef to, EnvelopePtr envelope, absl::Duration push_timeout);

absl::Status Reject(ActorWorker* worker, ActorRef to, Envelope* envelope, const std::string& why) {
  CountOverflow(worker, *to.slot(), OverflowAnswer::kReject);
  absl::Status full = Full(worker, to, *envelope, why);
  Lose(worker, to, envelope, DeadLetterReason::kMailboxFull);
  return full;
}

// Pushes a message that the limits have counted.
void Push(ActorWorker* worker, ActorRef to, Envelope* envelope) {
  CountIn(worker, *to.slot());
  Mark(*envelope);
  Post(worker, *to.slot(), envelope);
}

// Acts on the decision of the limits. Takes the envelope over, unless the limits have it. Not
// inlined: messages that find room do not come here.
ABSL_ATTRIBUTE_NOINLINE absl::Status Admitted(ActorWorker* worker, ActorRef to, Envelope* envelope,
                                              const Admission& admission) {
  switch (admission.kind) {
    case AdmissionKind::kPush:
      Push(worker, to, envelope);
      break;
    case AdmissionKind::kPass:
      CountIn(worker, *to.slot());
      Post(worker, *to.slot(), envelope);
      break;
    case AdmissionKind::kDropped:
    case AdmissionKind::kDeadLetter:
      CountOverflow(
          worker, *to.slot(),
          admission.kind == AdmissionKind::kDropped ? OverflowAnswer::kDropNewest : OverflowAnswer::kDeadLetter);
      Lose(worker, to, envelope, DeadLetterReason::kMailboxFull);
      break;
    case AdmissionKind::kRejected:
      return Reject(worker, to, envelope, {});
    case AdmissionKind::kAskPolicy:
      return AskPolicy(worker, to, EnvelopePtr(envelope));
    case AdmissionKind::kTimedOut: {
      CountOverflow(worker, *to.slot(), OverflowAnswer::kHold);
      absl::Status late = worker == nullptr ? NoRoom(to, *envelope) : absl::OkStatus();
      Lose(worker, to, envelope, DeadLetterReason::kPushTimedOut);
      return late;
    }
    case AdmissionKind::kWouldBlock:
      return AwaitRoom(to, EnvelopePtr(envelope), admission.push_timeout);
    case AdmissionKind::kEnded:
      Lose(worker, to, envelope, DeadLetterReason::kStopped);
      break;
    case AdmissionKind::kKept:
      CountIn(worker, *to.slot());
      if (admission.victim != nullptr) {
        CountOut(worker, *to.slot());
        CountOverflow(worker, *to.slot(), OverflowAnswer::kDropOldest);
        Lose(worker, to, admission.victim, DeadLetterReason::kMailboxFull);
      }
      if (admission.ring) Ring(worker, to);
      break;
    case AdmissionKind::kHeld:
      // A message that passes limits has no timeout: no policy has decided about it.
      if (admission.push_timeout > absl::ZeroDuration()) CountOverflow(worker, *to.slot(), OverflowAnswer::kHold);
      if (admission.first) suspend_sender(*worker, to, admission.push_timeout);
      break;
  }
  return absl::OkStatus();
}

Producer ProducerOf(ActorRef self, ActorRef to) { return to == self ? Producer::kSelf : Producer::kActor; }

absl::Status AskPolicy(ActorWorker* worker, ActorRef to, EnvelopePtr envelope) {
  MailboxLimits& limits = LimitsOf(*to.slot());
  const ActorRef self = worker != nullptr ? worker->turn_state.self() : ActorRef();
  const Producer producer = worker != nullptr ? ProducerOf(self, to) : Producer::kForeignThread;
  const PolicyAnswer answer = limits.AskPolicy(envelope.get(), self, producer);
  if (answer.admission.kind == AdmissionKind::kRejected) return Reject(worker, to, envelope.release(), answer.why);
  return Admitted(worker, to, envelope.release(), answer.admission);
}

// A foreign thread waits for room.
absl::Status AwaitRoom(ActorRef to, EnvelopePtr envelope, absl::Duration push_timeout) {
  CountOverflow(nullptr, *to.slot(), OverflowAnswer::kHold);
  const bool may_wait = SystemCore::MayBlockFor(*to.slot());
  const absl::Status room = LimitsOf(*to.slot()).AwaitRoom(*envelope, may_wait ? push_timeout : absl::ZeroDuration());
  if (room.ok()) {
    Push(nullptr, to, envelope.release());
    return absl::OkStatus();
  }
  if (absl::IsUnavailable(room)) return Admitted(nullptr, to, envelope.release(), {.kind = AdmissionKind::kEnded});
  absl::Status late = NoRoom(to, *envelope);
  Lose(nullptr, to, envelope.release(), DeadLetterReason::kPushTimedOut);
  return late;
}

}  // namespace

absl::Status SendLimited(ActorWorker& worker, ActorRef to, Envelope* envelope) {
  const ActorRef self = worker.turn_state.self();
  EnvelopePtr owned(envelope);  // Admit may throw.
  const Admission admission = LimitsOf(*to.slot()).Admit(envelope, self, ProducerOf(self, to));
  if (admission.kind == AdmissionKind::kPush) [[likely]] {
    Push(&worker, to, owned.release());
    return absl::OkStatus();
  }
  return Admitted(&worker, to, owned.release(), admission);
}

absl::Status SendLimitedForeign(ActorRef to, EnvelopePtr envelope) {
  const Admission admission = LimitsOf(*to.slot()).Admit(envelope.get(), ActorRef(), Producer::kForeignThread);
  if (admission.kind == AdmissionKind::kPush) [[likely]] {
    Push(nullptr, to, envelope.release());
    return absl::OkStatus();
  }
  return Admitted(nullptr, to, envelope.release(), admission);
}

Envelope* TakeLimited(Turn turn, Envelope* envelope) {
  MailboxLimits& limits = LimitsOf(turn.slot);
  const uint64_t word = envelope->target_word();
  if ((word & kCountedMark) != 0) {
    envelope->set_target_word(word & ~kCountedMark);
    if (limits.TakenOut()) LetIn(&turn.worker, turn.slot);
    return envelope;
  }
  if (!IsMailboxBell(*envelope)) return envelope;
  // A bell for an earlier actor of the slot has no messages.
  bool more = false;
  Envelope* const kept =
      static_cast<uint32_t>(word) == static_cast<uint32_t>(turn.state().word) ? limits.TakeKept(&more) : nullptr;
  if (more) {
    turn.state().lists.user.PushBack(envelope);
  } else {
    EndEnvelope(turn.worker.cache(), envelope);
  }
  return kept;
}

void AppendBeyondLimits(Turn turn, Envelope* envelope) {
  EnvelopePtr owned(envelope);  // AdmitOwn may throw.
  const Admission admission = LimitsOf(turn.slot).AdmitOwn(envelope);
  Admitted(&turn.worker, turn.state().self(), owned.release(), admission).IgnoreError();
}

EnvelopeList Readmitted(Turn turn, EnvelopeList messages) {
  MailboxLimits& limits = LimitsOf(turn.slot);
  if (limits.needs() == OverflowNeeds::kQueue) return messages;
  EnvelopeList readmitted;
  while (Envelope* const envelope = messages.PopFront()) {
    envelope->set_target_word(turn.state().word);
    const AdmissionKind kind = limits.Admit(envelope, turn.state().self(), Producer::kSelf).kind;
    if (kind != AdmissionKind::kPush && kind != AdmissionKind::kPass) {
      turn.worker.DeadLetter(envelope, &turn.slot, DeadLetterReason::kMailboxFull);
      continue;
    }
    if (kind == AdmissionKind::kPush) Mark(*envelope);
    readmitted.PushBack(envelope);
  }
  return readmitted;
}

void UncountLimited(TableSlot* slot, Envelope& envelope) {
  const uint64_t word = envelope.target_word();
  // The target word of a message to another node has no flags.
  if (envelope.is_system() || (word & (kCountedMark | ActorRef::kRemote)) != kCountedMark) return;
  envelope.set_target_word(word & ~kCountedMark);
  // Only messages to actors are counted.
  auto& actor = static_cast<ActorSlot&>(*slot);
  if (LimitsOf(actor).TakenOut()) LetIn(ActorWorker::Current(), actor);
}

void CloseLimits(Turn turn) {
  Leftovers left = LimitsOf(turn.slot).Close();
  turn.state().dropped += static_cast<uint32_t>(left.kept);
  while (Envelope* const envelope = left.dead_letters.PopFront()) {
    turn.worker.DeadLetter(envelope, &turn.slot, DeadLetterReason::kStopped);
  }
  for (const ActorRef sender : left.resume) {
    TellSystem(sender, MakeEnvelope<RoomFound>(turn.worker.cache(), ActorRef(), &turn.slot));
  }
}

bool IsMailboxBell(const Envelope& envelope) { return envelope.Is<MailboxBell>(); }

void InstallSuspension(SuspendFunction suspend) { suspend_sender = suspend; }

}  // namespace fraktor::inline v0::actor_internal
