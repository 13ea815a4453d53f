#include "fraktor/actor/ask/internal/ask_deadlines.h"

#include <utility>

#include "absl/container/inlined_vector.h"

#include "fraktor/actor/ask/internal/ask_diagnosis.h"
#include "fraktor/actor/ask/internal/promise_watch.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0::actor_internal {

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

void ExpireAsks(Turn turn, Instant deadline) {
  SlotExtension& extension = *turn.slot.extension;
  // Another timer was armed after this one had fired.
  if (deadline != extension.ask_timer) return;
  extension.ask_timer = Instant::InfiniteFuture();
  const Instant now = turn.worker.toolbox->Now();
  const uint64_t first_request = NextStatusRequest(extension);
  // Collects all asks that are due before the first one fails: the asker's code may ask again then.
  absl::InlinedVector<ActorRef, 8> due;
  PromiseSlot* promise = extension.open_asks.Earliest();
  for (; promise != nullptr && promise->deadline_ns() <= now.nanoseconds(); promise = extension.open_asks.Earliest()) {
    const ActorRef ask(promise, promise->generation() | ActorRef::kPromise);
    if (promise->generation() % 2 == 1 && ClaimPromise(ask)) {
      extension.open_asks.Remove(*promise);
      due.push_back(ask);
    } else {
      // The reply is in the mailbox already, or a thread is about to push it.
      extension.open_asks.SetOverdue(*promise);
    }
  }
  for (const ActorRef ask : due) {
    PromiseSlot& over = *ask.promise_slot();
    AskCompletion* const completion = std::exchange(over.completion, nullptr);
    const PromiseSlot::Target asked = over.target();
    turn.worker.promises().Release(&over);
    TellPromiseWatchers(turn.worker, extension, ask);
    FailTimedOutAsk(turn, ask, asked, completion, first_request);
  }
  promise = extension.open_asks.Earliest();
  if (promise == nullptr || promise->deadline_ns() == kNoDeadline) return;
  // If there is no timer left, the next ask of the actor arms one, or fails.
  ArmAskTimer(turn.worker, extension, Instant::FromNanoseconds(promise->deadline_ns())).IgnoreError();
}

}  // namespace fraktor::inline v0::actor_internal
