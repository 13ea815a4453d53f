// The deadlines of the asks of one actor.
//
// The asks of an actor share one timer. It is armed for the earliest deadline; when it fires, the
// asks that are due time out, and it is armed for the next deadline. A reply does not cancel it, so
// an ask that gets its reply in time touches no timer.
//
// Each ask that times out counts as one message of the turn's budget. If more asks are due, the
// actor sends itself the message of the timer again, and the others time out in its next turns.
//
// Called by: reply_promise.cc, and the invoker when the timer has fired. Thread: the asker's turn.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_ASK_DEADLINES_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_ASK_DEADLINES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

// PromiseSlot::deadline_ns of an ask that never times out.
inline constexpr int64_t kNoDeadline = Instant::InfiniteFuture().nanoseconds();

// The deadline of an ask that begins now. Any thread.
inline Instant DeadlineAfter(RuntimeToolbox& toolbox, absl::Duration timeout) {
  return timeout == absl::InfiniteDuration() ? Instant::InfiniteFuture() : toolbox.Now() + timeout;
}

// The same in the asker's turn. The asks of an actor mostly have the same timeout, so the extension
// keeps the last one in nanoseconds: the conversion costs as much as the rest of opening a promise.
[[gnu::always_inline]] inline Instant DeadlineAfter(ActorWorker& worker, SlotExtension& extension,
                                                    absl::Duration timeout) {
  if (timeout != extension.ask_timeout) [[unlikely]] {
    extension.ask_timeout = timeout;
    extension.ask_timeout_ns = (Instant() + timeout).nanoseconds();
  }
  int64_t deadline_ns;
  if (extension.ask_timeout_ns == kNoDeadline ||
      __builtin_add_overflow(worker.toolbox->Now().nanoseconds(), extension.ask_timeout_ns, &deadline_ns)) [[unlikely]]
    return Instant::InfiniteFuture();
  return Instant::FromNanoseconds(deadline_ns);
}

// Arms the timer for `deadline`, unless it fires earlier already. ResourceExhausted if the toolbox
// has no timer left; then nothing changes.
absl::Status ArmAskTimer(ActorWorker& worker, SlotExtension& extension, Instant deadline);

void DisarmAskTimer(ActorWorker& worker, SlotExtension& extension);

// The timer for `reached.deadline` has fired: the asks that are due time out, the earliest first,
// as long as the budget of the turn lasts, but at least one. `used` messages of the budget are used
// already. Returns the number of messages that the call counts as.
uint32_t ExpireAsks(Turn turn, const AskDeadlineReached& reached, uint32_t used);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_ASK_DEADLINES_H_
