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
// This is the lowest form of an actor, without types: the runtime's own. Receive runs in one thread at a time, and what
// it wrote is visible to the next run, wherever that is. An error that it returns, and anything that it throws, is the
// actor's failure: it goes to supervision and never further.
#ifndef FRAKTOR_ACTOR_SCHEDULER_ACTOR_INSTANCE_H_
#define FRAKTOR_ACTOR_SCHEDULER_ACTOR_INSTANCE_H_

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

class ActorContext;

class ActorInstance {
 public:
  virtual ~ActorInstance() = default;

  // `message` is a user message; it ends after the call. Its payload may be moved out.
  virtual absl::Status Receive(ActorContext& context, Envelope& message) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_ACTOR_INSTANCE_H_
