// ActorInstance: the object that receives the messages of an actor.
//
//   class Counter final : public ActorInstance {
//     absl::Status Receive(ActorContext& context, Envelope& message) override {
//       if (message.Is<Add>()) sum_ += message.As<Add>().n;
//       return absl::OkStatus();
//     }
//     int64_t sum_ = 0;
//   };
//
// This is the untyped form of an actor, which the runtime uses. Programs usually write typed actors
// (actor/typed/typed_actor.h). The methods run on one thread at a time, and each sees what earlier
// ones have written, on whichever thread they ran. An error that a method returns, and an exception
// that it throws, is a failure of the actor: its supervisor decides what happens.
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

  // Handles a user message, which is destroyed after the call. The payload may be moved out.
  virtual absl::Status Receive(ActorContext& context, Envelope& message) = 0;

  // Called before the first message. An error is an initialization error, for which the default
  // strategy stops the actor.
  virtual absl::Status PreStart(ActorContext& context);

  // Called after the last message, when all children have ended. Waiting handlers and timers have
  // been cancelled before; the stash still has its messages. An exception is logged.
  virtual void PostStop(ActorContext& context);

  // Called for the old instance, before a new one replaces it because of `reason`. Waiting handlers
  // and timers have been cancelled before. `message` is the one that the instance failed on; null
  // if there was none. A hook may stash or forward the message, and must not use it afterwards. The
  // default stops all children and calls PostStop, as `UsualPreRestart(context);` does: an override
  // that only adds something ends with this call. Children that it does not stop are restarted with
  // the actor, and keep their names. An exception, or an error that it returns, is logged.
  virtual absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message);

  // Called for the new instance. The default calls PreStart. An error is a new failure.
  virtual absl::Status PostRestart(ActorContext& context, const absl::Status& reason);

  // How this actor supervises its children. The strategy must live as long as the actor.
  virtual const SupervisorStrategy& supervision() const;

  // Decides what happens to a child that has failed. context.sender() is the child. The default
  // asks the strategy. An exception is a failure of this actor. Not called for a child that this
  // actor has stopped, nor for a failure that a restart of all children covers (SupervisionScope).
  virtual SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure);

  // Receives the reply to an AskOnReply, or DeadlineExceeded if none arrived in time. `ask` is the
  // reference that AskOnReply has returned. The envelope is destroyed after the call.
  virtual absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer);

  // True if Receive gets a PoisonPill like other messages, and the actor stops itself when it is
  // done (ActorContext::Stop). By default the PoisonPill stops the actor: all earlier messages have
  // been handled. An actor that goes on working on a message after its handler has returned, as
  // while it waits for a store, returns true meanwhile.
  virtual bool TakesPoisonPill() const { return false; }

  // The object of the class that the address `type` stands for, if this instance holds one; null
  // otherwise. For typed actors and test kits.
  virtual void* ObjectOf(const void* /*type*/) { return nullptr; }

 protected:
  // The default PreRestart: stops all children, and calls PostStop.
  void UsualPreRestart(ActorContext& context);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_ACTOR_INSTANCE_H_
