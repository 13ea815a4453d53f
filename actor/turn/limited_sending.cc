#include "fraktor/actor/turn/limited_sending.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_limits.h"
#include "fraktor/actor/turn/actor_lifecycle.h"
#include "fraktor/actor/turn/dispatcher_table.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/message_invoker.h"
#include "fraktor/actor/turn/slot_extension.h"
#include "fraktor/actor/turn/system_core.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// Rings for messages that the limits keep.
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

absl::Status Full(ActorWorker* worker, ActorRef to, const Envelope& envelope) {
  return absl::ResourceExhaustedError(absl::StrCat(FullMailbox(worker, to), ": ", ToAbsl(envelope.type()->name()),
                                                   " was not accepted; send less, or raise MailboxOptions.capacity"));
}

absl::Status NoRoom(ActorRef to, const Envelope& envelope) {
  return absl::DeadlineExceededError(
      absl::StrCat(FullMailbox(nullptr, to), ", and there was no room for ", ToAbsl(envelope.type()->name()),
                   " within MailboxOptions.push_timeout; send less, or raise MailboxOptions.capacity"));
}

void Mark(Envelope& envelope) { envelope.set_target_word(envelope.target_word() | kCountedMark); }

// A dead letter of a sender.
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

// The sender has a message in the line of `to`, for the first time.
void Suspend(ActorWorker& worker, ActorRef to, absl::Duration push_timeout) {
  Turn& turn = worker.turn;
  SlotExtension& extension = SlotExtension::Of(*turn.running());
  turn.Set(Gate::kBackpressure);
  const uint64_t wait = extension.waits++;
  const auto tell = [self = turn.self(), to, wait] {
    TellSystem(self, MakeEnvelope<RoomTimedOut>(ActorRef(), to.slot(), wait));
  };
  TimerId timer;
  if (push_timeout < absl::InfiniteDuration()) {
    absl::StatusOr<TimerId> armed = worker.toolbox == nullptr ? absl::FailedPreconditionError("no timers")
                                                              : worker.toolbox->ScheduleAfter(push_timeout, tell);
    if (armed.ok()) {
      timer = *armed;
    } else {
      tell();  // Without a timer there is no waiting.
    }
  }
  extension.full_targets.push_back({.target = to, .wait = wait, .timer = timer});
}

// A message goes into the mailbox of a slot, or leaves it unhandled.
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

void Forget(ActorWorker& worker, SlotExtension& extension, SlotExtension::FullTarget* target) {
  if (worker.toolbox != nullptr) worker.toolbox->CancelTimer(target->timer);
  extension.full_targets.erase(target);
  if (extension.full_targets.empty()) worker.turn.Clear(Gate::kBackpressure);
}

// Lets in those that wait for room in a mailbox that the caller holds, as many as fit. `worker` is the one that this
// thread is, or null.
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

absl::Status Admitted(ActorWorker* worker, ActorRef to, Envelope* envelope, const Admission& admission) {
  switch (admission.kind) {
    case AdmissionKind::kPush:
      CountIn(worker, *to.slot());
      Mark(*envelope);
      Post(worker, *to.slot(), envelope);
      break;
    case AdmissionKind::kPass:
      CountIn(worker, *to.slot());
      Post(worker, *to.slot(), envelope);
      break;
    case AdmissionKind::kDropped:
    case AdmissionKind::kDeadLetter:
      Lose(worker, to, envelope, DeadLetterReason::kMailboxFull);
      break;
    case AdmissionKind::kRejected: {
      absl::Status full = Full(worker, to, *envelope);
      Lose(worker, to, envelope, DeadLetterReason::kMailboxFull);
      return full;
    }
    case AdmissionKind::kTimedOut: {
      absl::Status late = worker == nullptr ? NoRoom(to, *envelope) : absl::OkStatus();
      Lose(worker, to, envelope, DeadLetterReason::kPushTimedOut);
      return late;
    }
    case AdmissionKind::kEnded:
    case AdmissionKind::kWouldBlock:
      Lose(worker, to, envelope, DeadLetterReason::kStopped);
      break;
    case AdmissionKind::kKept:
      CountIn(worker, *to.slot());
      if (admission.victim != nullptr) {
        CountOut(worker, *to.slot());
        Lose(worker, to, admission.victim, DeadLetterReason::kMailboxFull);
      }
      if (admission.ring) Ring(worker, to);
      break;
    case AdmissionKind::kHeld:
      if (admission.first) Suspend(*worker, to, admission.push_timeout);
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SendLimited(ActorWorker& worker, ActorRef to, Envelope* envelope) {
  const ActorRef self = worker.turn.self();
  const Producer producer = to == self ? Producer::kSelf : Producer::kActor;
  EnvelopePtr owned(envelope);  // Admit may throw.
  const Admission admission = LimitsOf(*to.slot()).Admit(envelope, self, producer);
  return Admitted(&worker, to, owned.release(), admission);
}

absl::Status SendLimitedForeign(ActorRef to, EnvelopePtr envelope) {
  MailboxLimits& limits = LimitsOf(*to.slot());
  Admission admission = limits.Admit(envelope.get(), ActorRef(), Producer::kForeignThread);
  if (admission.kind == AdmissionKind::kWouldBlock) {
    const bool may_wait = SystemCore::MayBlockFor(*to.slot());
    const absl::Status room = limits.AwaitRoom(*envelope, may_wait ? admission.push_timeout : absl::ZeroDuration());
    admission.kind = room.ok()                   ? AdmissionKind::kPush
                     : absl::IsUnavailable(room) ? AdmissionKind::kEnded
                                                 : AdmissionKind::kTimedOut;
  }
  return Admitted(nullptr, to, envelope.release(), admission);
}

Envelope* TakeLimited(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  MailboxLimits& limits = LimitsOf(slot);
  const uint64_t word = envelope->target_word();
  if ((word & kCountedMark) != 0) {
    envelope->set_target_word(word & ~kCountedMark);
    if (limits.TakenOut()) LetIn(&worker, slot);
    return envelope;
  }
  if (!IsMailboxBell(*envelope)) return envelope;
  // A bell of an actor that was here before rings for nothing.
  bool more = false;
  Envelope* const kept =
      static_cast<uint32_t>(word) == static_cast<uint32_t>(worker.turn.word) ? limits.TakeKept(&more) : nullptr;
  if (more) {
    worker.turn.lists.user.PushBack(envelope);
  } else {
    EndEnvelope(worker.cache(), envelope);
  }
  return kept;
}

EnvelopeList Readmitted(ActorWorker& worker, ActorSlot& slot, EnvelopeList messages) {
  MailboxLimits& limits = LimitsOf(slot);
  if (limits.strategy() == OverflowStrategy::kDropOldest) return messages;
  EnvelopeList readmitted;
  while (Envelope* const envelope = messages.PopFront()) {
    envelope->set_target_word(worker.turn.word);
    if (limits.Admit(envelope, worker.turn.self(), Producer::kSelf).kind == AdmissionKind::kPush) {
      Mark(*envelope);
      readmitted.PushBack(envelope);
    } else {
      worker.DeadLetter(envelope, &slot, DeadLetterReason::kMailboxFull);
    }
  }
  return readmitted;
}

void UncountLimited(TableSlot* slot, Envelope& envelope) {
  const uint64_t word = envelope.target_word();
  // The bits of a word for another node are no marks.
  if (envelope.is_system() || (word & (kCountedMark | ActorRef::kRemote)) != kCountedMark) return;
  envelope.set_target_word(word & ~kCountedMark);
  // Only messages to actors are counted.
  auto& actor = static_cast<ActorSlot&>(*slot);
  if (LimitsOf(actor).TakenOut()) LetIn(ActorWorker::Current(), actor);
}

void CloseLimits(ActorWorker& worker, ActorSlot& slot) {
  Leftovers left = LimitsOf(slot).Close();
  worker.turn.dropped += static_cast<uint32_t>(left.kept);
  while (Envelope* const envelope = left.dead_letters.PopFront()) {
    worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
  }
  for (const ActorRef sender : left.resume) {
    TellSystem(sender, MakeEnvelope<RoomFound>(worker.cache(), ActorRef(), &slot));
  }
}

bool IsMailboxBell(const Envelope& envelope) { return envelope.Is<MailboxBell>(); }

void ForgetFullTargets(ActorWorker& worker, ActorSlot& slot) {
  SlotExtension* const extension = slot.extension;
  if (extension == nullptr) return;
  while (!extension->full_targets.empty()) Forget(worker, *extension, &extension->full_targets.back());
}

void GoOnAfterRoom(ActorWorker& worker, ActorSlot& slot, const RoomFound& found) {
  SlotExtension* const extension = slot.extension;
  if (extension == nullptr) return;
  auto& targets = extension->full_targets;
  const auto at = std::find_if(targets.begin(), targets.end(), [&](const SlotExtension::FullTarget& target) {
    return target.target.slot() == found.target;
  });
  if (at != targets.end()) Forget(worker, *extension, &*at);
}

void GiveUpRoom(ActorWorker& worker, ActorSlot& slot, const RoomTimedOut& late) {
  SlotExtension* const extension = slot.extension;
  if (extension == nullptr) return;
  auto& targets = extension->full_targets;
  const auto at = std::find_if(targets.begin(), targets.end(), [&](const SlotExtension::FullTarget& target) {
    return target.wait == late.wait && target.target.slot() == late.target;
  });
  if (at == targets.end()) return;
  EnvelopeList lost = LimitsOf(*late.target).TimeOut(worker.turn.self());
  if (lost.empty()) return;  // It was let in meanwhile: RoomFound is on its way.
  while (Envelope* const envelope = lost.PopFront()) {
    worker.DeadLetter(envelope, late.target, DeadLetterReason::kPushTimedOut);
  }
  Forget(worker, *extension, &*at);
}

}  // namespace fraktor::inline v0
