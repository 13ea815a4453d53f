#include "fraktor/actor/await/room_wait.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/mailbox/envelope_list.h"
#include "fraktor/actor/mailbox/mailbox_limits.h"
#include "fraktor/actor/send/limited_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

MailboxLimits& LimitsOf(ActorSlot& slot) { return *slot.limits.load(std::memory_order_acquire); }

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

// Before main: no actor runs yet.
[[maybe_unused]] const bool installs_suspension = (InstallSuspension(&Suspend), true);

void Forget(ActorWorker& worker, SlotExtension& extension, SlotExtension::FullTarget* target) {
  if (worker.toolbox != nullptr) worker.toolbox->CancelTimer(target->timer);
  extension.full_targets.erase(target);
  if (extension.full_targets.empty()) worker.turn.Clear(Gate::kBackpressure);
}

}  // namespace

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
