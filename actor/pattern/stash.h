// Stash: an actor keeps messages back until it can handle them.
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
// Any user message can be stashed, with its sender, also a Terminated or the message of WatchWith.
// The actor receives it again later. Every kind of mailbox allows it.
// - A restart brings back the stashed messages, before the messages in the mailbox, after
//   PreRestart.
// - When the actor ends, the stashed messages become dead letters, after PostStop. So hooks
//   still find them.
// - A stashed message has left the mailbox, and makes room there. An unstashed one counts again: if
//   the mailbox is full by then and does not block its senders, the newest messages without room
//   become dead letters (mailbox_full). A mailbox with OverflowStrategy::kDropOldest takes all back
//   and does not count them.
//
// Cost: only the messages themselves, which are linked.
//
// Thread safety: the turns of the actor.
#ifndef FRAKTOR_ACTOR_PATTERN_STASH_H_
#define FRAKTOR_ACTOR_PATTERN_STASH_H_

#include <cstddef>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"

namespace fraktor::inline v0 {

// The number of messages that an actor may stash, unless SetStashCapacity changes it.
inline constexpr size_t kDefaultStashCapacity = 10'000;

// Stashes the current message. The handler must not use it afterwards, and has no sender any more.
// If there is no room, the message becomes a dead letter (stash_full), and the result is
// ResourceExhausted with kStashOverflow; a handler that returns it makes the actor fail. Call
// StashIsFull first to avoid that. FailedPrecondition if no user message is being handled, or if it
// was stashed or forwarded before.
absl::Status Stash(ActorContext& context);

// The actor receives all stashed messages next, in the order in which they were stashed.
void UnstashAll(ActorContext& context);
// The actor receives the oldest stashed message next. False if there is none.
bool UnstashOne(ActorContext& context);

size_t StashSize(ActorContext& context);
bool StashIsFull(ActorContext& context);

// For this actor, until it ends. Messages that are stashed already stay.
void SetStashCapacity(ActorContext& context, size_t capacity);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_STASH_H_
