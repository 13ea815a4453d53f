#include "fraktor/actor/ask/internal/ask_deadlines.h"

#include <algorithm>
#include <utility>

#include "fraktor/actor/ask/internal/ask_diagnosis.h"
#include "fraktor/actor/ask/internal/promise_watch.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// The budget is used up: the other asks that are due time out in a later turn. Until then no timer
// is needed.
void ExpireLater(Turn turn, uint64_t first_request) {
  SlotExtension& extension = *turn.slot.extension;
  // An ask that was opened in place of one that has timed out may have armed it.
  DisarmAskTimer(turn.worker, extension);
  extension.ask_timer = Instant::InfinitePast();
  extension.ask_timer_id = {};
  TellSystem(turn.state().self(),
             MakeEnvelope<AskDeadlineReached>(turn.worker.cache(), ActorRef(), extension.ask_timer, first_request));
}

}  // namespace

void DisarmAskTimer(ActorWorker& worker, SlotExtension& extension) {
  if (extension.ask_timer == Instant::InfiniteFuture()) return;
  worker.toolbox->CancelTimer(extension.ask_timer_id);
  extension.ask_timer = Instant::InfiniteFuture();
}

absl::Status ArmAskTimer(ActorWorker& worker, SlotExtension& extension, Instant deadline) {
  if (extension.ask_timer <= deadline) return absl::OkStatus();
  FRAKTOR_ASSIGN_OR_RETURN(const TimerId timer,
                           worker.toolbox->ScheduleAt(deadline, [asker = worker.turn_state.self(), deadline] {
                             TellSystem(asker, MakeEnvelope<AskDeadlineReached>(ActorRef(), deadline));
                           }));
  DisarmAskTimer(worker, extension);
  extension.ask_timer = deadline;
  extension.ask_timer_id = timer;
  return absl::OkStatus();
}

uint32_t ExpireAsks(Turn turn, const AskDeadlineReached& reached, uint32_t used) {
  SlotExtension& extension = *turn.slot.extension;
  // Another timer was armed after this one had fired.
  if (reached.deadline != extension.ask_timer) return 1;
  extension.ask_timer = Instant::InfiniteFuture();
  const Instant now = turn.worker.toolbox->Now();
  const uint64_t first_request = reached.first_request != 0 ? reached.first_request : NextStatusRequest(extension);
  uint32_t count = 0;
  PromiseSlot* promise = extension.open_asks.Earliest();
  for (; promise != nullptr && promise->deadline_ns() <= now.nanoseconds(); promise = extension.open_asks.Earliest()) {
    if (count != 0 && used + count >= turn.worker.slice.messages()) {
      ExpireLater(turn, first_request);
      return count;
    }
    ++count;
    const ActorRef ask(promise, promise->generation() | ActorRef::kPromise);
    if (promise->generation() % 2 == 0 || !ClaimPromise(ask)) {
      // The reply is in the mailbox already, or a thread is about to push it.
      extension.open_asks.SetOverdue(*promise);
      continue;
    }
    extension.open_asks.Remove(*promise);
    AskCompletion* const completion = std::exchange(promise->completion, nullptr);
    const PromiseSlot::Target asked = promise->target();
    turn.worker.promises().Release(promise);
    TellPromiseWatchers(turn.worker, extension, ask);
    FailTimedOutAsk(turn, ask, asked, completion, first_request);
  }
  EndRound(turn);
  // If there is no timer left, the next ask of the actor arms one, or fails.
  if (promise != nullptr && promise->deadline_ns() != kNoDeadline) {
    ArmAskTimer(turn.worker, extension, Instant::FromNanoseconds(promise->deadline_ns())).IgnoreError();
  }
  return std::max<uint32_t>(count, 1);
}

}  // namespace fraktor::inline v0::actor_internal
