// What runs in an ActorSlot: the object that gets the messages.
//
//   class Counter final : public ActorInstance {
//     absl::Status Receive(ActorContext& context, Envelope& message) override {
//       if (message.Is<Add>()) sum_ += message.As<Add>().n;
//       return absl::OkStatus();
//     }
//     int64_t sum_ = 0;
//   };
//
// This is the lowest form of an actor, without types: the runtime's own. Its methods run in one thread at a time, and
// what they wrote is visible to the next run, wherever that is. An error that they return, and anything that they
// throw, is the actor's failure: it goes to supervision and never further.
#ifndef FRAKTOR_ACTOR_TURN_ACTOR_INSTANCE_H_
#define FRAKTOR_ACTOR_TURN_ACTOR_INSTANCE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

class ActorContext;

class ActorInstance {
 public:
  virtual ~ActorInstance() = default;

  // Before the first message.
  virtual absl::Status PreStart(ActorContext& context);

  // After the last message, when all children have ended. What it throws goes no further.
  virtual void PostStop(ActorContext& context);

  // `message` is a user message; it ends after the call. Its payload may be moved out.
  virtual absl::Status Receive(ActorContext& context, Envelope& message) = 0;

  // The answer to a question of ActorContext::Ask, by which it is named; or why there is none: DeadlineExceeded. The
  // envelope ends after the call.
  virtual absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_ACTOR_INSTANCE_H_
