// The diagnosis of an ask that has timed out: the error text says what its target is doing.
//
// When an ask times out, its promise ends at once: later replies are dead letters. Before the asker
// gets the error, the runtime asks the target for a status report, in the turn of the asker and by
// a system message (StatusRequest). The target reports how many messages wait in its mailbox and
// what it waits for itself, also while it is suspended or one of its handlers waits. A target that
// is in the middle of a handler cannot report. After kReportGrace the error says what other threads
// can see of it.
//
// A round consists of the asks that time out together, in one turn of the asker or in several. Its
// asks to one target share a status request, and fail after the round. Each ask that fails counts
// as one message of the turn's budget; if the budget does not last, the others fail in the next
// turns.
//
// Called by: ask_deadlines.cc, and the invoker for the system messages. Thread: the turn of the
// asker; SendStatusReport: the turn of the target.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_ASK_DIAGNOSIS_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_ASK_DIAGNOSIS_H_

#include <cstdint>

#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0::actor_internal {

// How long a timed-out ask waits for its target to report what it is doing.
inline constexpr absl::Duration kReportGrace = absl::Milliseconds(20);

// The number that the next status request of an asker gets.
inline uint64_t NextStatusRequest(const SlotExtension& extension) {
  return extension.ask_extras == nullptr ? 1 : extension.ask_extras->status_requests + 1;
}

// Fails an ask that has timed out, as soon as its target has reported its status. The promise has
// been released before; `asked` is its target. `first_request` is the NextStatusRequest from the
// beginning of the round.
void FailTimedOutAsk(Turn turn, ActorRef ask, const PromiseSlot::Target& asked, AskCompletion* completion,
                     uint64_t first_request);

// The next three fail asks that have waited for a report. Asks to one target fail in the order in
// which they have timed out, as long as the budget of the turn lasts, but at least one of them.
// `used` messages of the budget are used already. The functions return the number of messages that
// the call counts as.

// The target has sent its report.
uint32_t ReceiveStatusReport(Turn turn, const StatusReport& report, uint32_t used);

// The target has sent no report within kReportGrace.
uint32_t GiveUpStatusReport(Turn turn, uint64_t request, uint32_t used);

// The asker has sent itself MoreLateAsks.
uint32_t FailMoreLateAsks(Turn turn, uint32_t used);

// A round is over. The asks whose targets have reported meanwhile fail in a later turn.
void EndRound(Turn turn);

// In the target's turn: reports what the actor is doing.
void SendStatusReport(Turn turn, const StatusRequest& request);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_ASK_DIAGNOSIS_H_
