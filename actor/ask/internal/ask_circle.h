// Detects a circle of asks: an actor asks another one that can reply only after this very turn.
//
// A handler that is a coroutine and lets no other message in waits for the replies to its asks. Its
// own asker waits for it. A promise remembers which ask its asker has to reply to first
// (PromiseSlot::answering), so the chain of waiting actors can be followed from promise to promise.
//
// Called by: reply_promise.cc, for each ask. Thread: the asker's turn.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_ASK_CIRCLE_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_ASK_CIRCLE_H_

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/promise_slot.h"

namespace fraktor::inline v0::actor_internal {

// The promise that the coroutine of this turn has to reply to. No one if no coroutine runs, if its
// message is no ask, or if it has forwarded the message.
[[gnu::always_inline]] inline ActorRef PromiseToReplyTo(const TurnState& state) {
  if (!state.in_task || state.current == nullptr || (state.current->target_word() & kForwarded) != 0) return {};
  const ActorRef sender = state.current->sender();
  return sender.IsPromise() ? sender : ActorRef();
}

// For PromiseSlot::Fill of an ask in this turn: the ask that the asker replies to only after it has
// got this reply.
[[gnu::always_inline]] inline PackedPromise WaitingForThisAsk(const TurnState& state) {
  if (!state.in_task || !state.takes_no_other) return {.slot = PromiseSlot::kFree, .generation = 0};
  const ActorRef promise = PromiseToReplyTo(state);
  return promise.IsNoOne() ? PackedPromise{}
                           : PackedPromise{PromiseSlotTable::IndexOf(promise.promise_slot()), promise.generation()};
}

// A quick check: false if an ask of `target` in this turn cannot close a circle.
[[gnu::always_inline]] inline bool MayBeCircle(const ActorWorker& worker, ActorRef target) {
  const TurnState& state = worker.turn_state;
  if (!state.in_task || target.IsNoOne()) return false;
  // Without an asker, only an actor that asks itself waits for this turn.
  return !PromiseToReplyTo(state).IsNoOne() || target.any_slot() == state.running();
}

// kAskCircle, with the paths of the circle, if `target` waits for this turn; otherwise OK. Follows
// at most 64 asks.
absl::Status FindAskCircle(const ActorWorker& worker, ActorRef target);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_ASK_CIRCLE_H_
