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
#ifndef FRAKTOR_ACTOR_CONTEXT_ACTOR_INSTANCE_H_
#define FRAKTOR_ACTOR_CONTEXT_ACTOR_INSTANCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

class ActorContext;
class SupervisorStrategy;
enum class SupervisionDirective : uint8_t;
struct Failure;

class ActorInstance {
 public:
  virtual ~ActorInstance() = default;

  // `message` is a user message; it ends after the call. Its payload may be moved out.
  virtual absl::Status Receive(ActorContext& context, Envelope& message) = 0;

  // Before the first message. An error is an initialization error, for which the usual strategy stops the actor.
  virtual absl::Status PreStart(ActorContext& context);

  // After the last message, when all children have ended. Its handlers that waited have been
  // cancelled, and its timers; its stash is still there. An exception is logged and goes no
  // further.
  virtual void PostStop(ActorContext& context);

  // Called for the old instance, before a new one takes its place because of `reason`. Handlers
  // that waited and timers are cancelled before, as for PostStop. `message` is the one that it
  // failed on; null if there was none. The usual one stops all children, and calls PostStop:
  // `context.StopChildren(); PostStop(context);`. One that does not stop the children has them
  // restarted with it, under the names that they have. An exception, or
  // an error that it returns, is logged.
  virtual absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message);

  // Of the new instance. The usual one calls PreStart. An error is a new failure.
  virtual absl::Status PostRestart(ActorContext& context, const absl::Status& reason);

  // How this actor supervises its children. The strategy must live as long as the actor.
  virtual const SupervisorStrategy& supervision() const;

  // What becomes of a child that has failed; the sender is the child. The usual one asks the strategy. What it throws
  // is a failure of this actor.
  virtual SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure);

  // The answer to a question of ActorContext::AskOnReply, by which it is named; or why there is none: DeadlineExceeded.
  // The envelope ends after the call.
  virtual absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer);

  // Whether a PoisonPill comes to Receive now, as other messages do, and the actor ends by itself when it is done
  // (ActorContext::Stop). The usual one ends at once: all that was sent before has been handled. An actor that is not done
  // with a message when its handler returns, as one that waits for a store, says yes as long as it is not.
  virtual bool TakesPoisonPill() const { return false; }

  // The object of a class, which is named by the address of something that only it has, if this is the instance of such
  // an actor; null otherwise.
  virtual void* ObjectOf(const void* /*type*/) { return nullptr; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_ACTOR_INSTANCE_H_
