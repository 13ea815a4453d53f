// Messages that an actor puts aside until it can handle them.
//
//   class Store : public Actor<Store, Connected, Query> {
//    public:
//     Deferred<Row> On(Context& context, const Query&) { return Stash(context); }      // Not yet.
//     void On(Context& context, const Connected&) {
//       UnstashAll(context);
//       context.Become<Open>();
//     }
//
//    private:
//     struct Open {
//       Row On(Context&, const Query& query) { return {query.id}; }
//       void On(Context&, const Connected&) {}
//     };
//   };
//
// Any user message can be put aside, with its sender, also a Terminated and what comes instead of it: it is received
// once more later. Every kind of mailbox allows it.
// - A restart brings back the stashed messages, before the messages that wait, after PreRestart.
// - When the actor ends, the stashed messages become dead letters, after PostStop. So hooks
//   still find them.
// - What has been put aside has left the mailbox, and makes room there. What comes back counts again: where the mailbox
//   is full by then and does not block its senders, the newest that have no room are dead letters (mailbox_full). A
//   mailbox of OverflowStrategy::kDropOldest takes all back and does not count them.
//
// Costs: nothing but the messages themselves, which are linked.
//
// Thread safety: in the actor's turns.
#ifndef FRAKTOR_ACTOR_PATTERN_STASH_H_
#define FRAKTOR_ACTOR_PATTERN_STASH_H_

#include <cstddef>

#include "absl/status/status.h"

#include "fraktor/actor/turn/actor_context.h"

namespace fraktor::inline v0 {

// So many messages an actor may put aside, unless SetStashCapacity says otherwise.
inline constexpr size_t kDefaultStashCapacity = 10'000;

// Puts the message that is being handled aside. The handler must not touch it afterwards, and has no sender any more.
// If there is no room, the message becomes a dead letter (stash_full), and the answer is ResourceExhausted,
// kStashOverflow; as the handler's own answer that is a failure of the actor. Ask StashIsFull first to do otherwise.
// FailedPrecondition if no user message is being handled, or it was put aside or forwarded before.
absl::Status Stash(ActorContext& context);

// All that was put aside comes next, in the order in which it was put aside, before all other messages.
void UnstashAll(ActorContext& context);
// The oldest of them does. False if there is none.
bool UnstashOne(ActorContext& context);

size_t StashSize(ActorContext& context);
bool StashIsFull(ActorContext& context);

// For this actor, until it ends. What is put aside already stays.
void SetStashCapacity(ActorContext& context, size_t capacity);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_STASH_H_
