#include "fraktor/actor/await/internal/room_wait.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {
namespace {

MailboxLimits& LimitsOf(ActorSlot& slot) { return *slot.limits.load(std::memory_order_acquire); }

// The running actor has got its first message into the line of `to`: suspends the actor.
void Suspend(ActorWorker& worker, ActorRef to, absl::Duration push_timeout) {
  TurnState& state = worker.turn_state;
  SlotExtension& extension = SlotExtension::Of(*state.running());
  state.Set(Gate::kBackpressure);
  const uint64_t wait = extension.waits++;
  const auto tell = [self = state.self(), to, wait] {
    TellSystem(self, MakeEnvelope<RoomTimedOut>(ActorRef(), to.slot(), wait));
  };
  TimerId timer;
  if (push_timeout < absl::InfiniteDuration()) {
    absl::StatusOr<TimerId> armed = worker.toolbox == nullptr ? absl::FailedPreconditionError("no timers")
                                                              : worker.toolbox->ScheduleAfter(push_timeout, tell);
    if (armed.ok()) {
      timer = *armed;
    } else {
      tell();  // Without a timer, the wait ends at once.
    }
  }
  extension.full_targets.push_back({.target = to, .wait = wait, .timer = timer});
}

// Runs before main, when no actor runs yet.
[[maybe_unused]] const bool installs_suspension = (InstallSuspension(&Suspend), true);

void Forget(ActorWorker& worker, SlotExtension& extension, SlotExtension::FullTarget* target) {
  if (worker.toolbox != nullptr) worker.toolbox->CancelTimer(target->timer);
  extension.full_targets.erase(target);
  if (extension.full_targets.empty()) worker.turn_state.Clear(Gate::kBackpressure);
}

}  // namespace

void ForgetFullTargets(Turn turn) {
  SlotExtension* const extension = turn.slot.extension;
  if (extension == nullptr) return;
  while (!extension->full_targets.empty()) Forget(turn.worker, *extension, &extension->full_targets.back());
}

void GoOnAfterRoom(Turn turn, const RoomFound& found) {
  SlotExtension* const extension = turn.slot.extension;
  if (extension == nullptr) return;
  auto& targets = extension->full_targets;
  const auto at = std::find_if(targets.begin(), targets.end(), [&](const SlotExtension::FullTarget& target) {
    return target.target.slot() == found.target;
  });
  if (at != targets.end()) Forget(turn.worker, *extension, &*at);
}

void GiveUpRoom(Turn turn, const RoomTimedOut& late) {
  SlotExtension* const extension = turn.slot.extension;
  if (extension == nullptr) return;
  auto& targets = extension->full_targets;
  const auto at = std::find_if(targets.begin(), targets.end(), [&](const SlotExtension::FullTarget& target) {
    return target.wait == late.wait && target.target.slot() == late.target;
  });
  if (at == targets.end()) return;
  EnvelopeList lost = LimitsOf(*late.target).TimeOut(turn.state().self());
  if (lost.empty()) return;  // The mailbox took the messages meanwhile: RoomFound is on its way.
  while (Envelope* const envelope = lost.PopFront()) {
    turn.worker.DeadLetter(envelope, late.target, DeadLetterReason::kPushTimedOut);
  }
  Forget(turn.worker, *extension, &*at);
}

}  // namespace fraktor::inline v0::actor_internal
