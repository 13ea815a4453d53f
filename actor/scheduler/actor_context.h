// What an actor sees of the runtime while it handles a message.
//
//   absl::Status Receive(ActorContext& context, Envelope& message) override {
//     context.Tell(context.sender(), Pong{});
//     return absl::OkStatus();
//   }
//
// A context stays with its actor: it is the actor's slot in disguise, and finds the worker by the thread. So a
// reference to it is good for as long as the actor lives, but to be used in the actor's own turns only.
#ifndef FRAKTOR_ACTOR_SCHEDULER_ACTOR_CONTEXT_H_
#define FRAKTOR_ACTOR_SCHEDULER_ACTOR_CONTEXT_H_

#include <type_traits>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/actor_slot.h"
#include "fraktor/actor/scheduler/actor_worker.h"

namespace fraktor::inline v0 {

class ActorContext {
 public:
  ActorContext(const ActorContext&) = delete;
  ActorContext& operator=(const ActorContext&) = delete;

  static ActorContext& Of(ActorSlot& slot) { return reinterpret_cast<ActorContext&>(slot); }

  ActorRef self() const { return worker().turn.self(); }
  // Who sent the message that is being handled; no one if it came from outside.
  ActorRef sender() const { return worker().turn.current->sender(); }

  template <class M>
  void Tell(ActorRef to, M&& message) {
    ActorWorker& w = worker();
    w.Send(to, MakeEnvelope<std::decay_t<M>>(w.cache(), w.turn.self(), std::forward<M>(message)).release());
  }

  // Handles no further message after this one, and ends.
  void Stop() { worker().turn.gate |= static_cast<uint8_t>(Gate::kStopping); }

 private:
  static ActorWorker& worker() { return *ActorWorker::Current(); }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_ACTOR_CONTEXT_H_
