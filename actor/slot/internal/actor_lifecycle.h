// ActorLifecycle: the interface between the scheduler and the actor system. It covers all that
// happens to actors besides messages, and all that they can do besides sending.
//
// The invoker calls the first group, ActorContext the second. Calls come in the turn of the actor
// that the slot or context belongs to, unless a function says otherwise. A scheduler without an
// actor system has a lifecycle with the first group only. ActorTree implements both.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_ACTOR_LIFECYCLE_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_ACTOR_LIFECYCLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0 {

class ActorContext;
class ActorProps;
class ActorSystem;
enum class FailureCause : uint8_t;

namespace actor_internal {

class NodeCache;

class ActorLifecycle {
 public:
  virtual ~ActorLifecycle() = default;

  // Called before anything else reaches an actor that has Gate::kStarting. An error is a failure of
  // the actor.
  virtual absl::Status OnStart(ActorSlot& slot) = 0;

  // Handles a system message. It may suspend, resume or stop the actor through the turn.
  virtual void OnSystemMessage(Turn turn, Envelope& message) = 0;

  // Sees a user message that has the flag kIntercepted (mailing.h) before the actor does. Takes the
  // envelope over. Returns the envelope that the actor receives: the same or another; null if the
  // actor receives nothing.
  virtual Envelope* OnInterceptedMessage(Turn turn, Envelope* envelope);

  // Called after each message that counts as activity, for actors with
  // SlotExtension::watches_activity.
  virtual void OnActivity(ActorSlot& slot);

  // A handler failed on `message`, or, if that is null, the start of the actor or a task. The actor
  // is suspended. `error` may have come from another actor or node: only `cause` tells how this
  // actor failed.
  virtual void OnFailure(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) = 0;

  // Called in each turn of a stopping actor, after its system messages. Tells its children to stop,
  // the first time. Returns true if no child is left: then the actor ends.
  virtual bool StopChildrenFirst(ActorSlot& slot) = 0;

  // The actor ends: runs its last hooks, and makes its references stale.
  virtual void OnEnding(Turn turn) = 0;

  // The mailbox is empty and idle. The lifecycle owns the slot, and releases it.
  virtual void OnEnded(Turn turn) = 0;

  // Publishes a message that is about to become a dead letter as an OrphanedMessage, if it is an
  // ask that its recipient has not handled. Returns true if a subscriber has taken the message. Any
  // thread.
  virtual bool PublishOrphan(utils_internal::TableSlot* /*slot*/, EnvelopePtr& /*envelope*/,
                             DeadLetterReason /*reason*/) {
    return false;
  }
  // A message that reached no actor. Takes the envelope over. Any thread. The envelope's target
  // word tells the type of the slot, which is null if the message was for no one.
  virtual void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, utils_internal::TableSlot* slot,
                            DeadLetterReason reason) = 0;

  // The second group, for contexts.

  virtual absl::StatusOr<ActorRef> Spawn(ActorContext& parent, const ActorProps& props, std::string_view name);
  virtual void Stop(ActorContext& context, ActorRef actor);
  // `message` comes instead of Terminated, unless it is null. `same` compares two payloads of its
  // type; null if they cannot be compared.
  using SameMessage = bool (*)(const void* a, const void* b);
  virtual absl::Status Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, SameMessage same);
  virtual void Unwatch(ActorContext& context, ActorRef actor);
  // Any thread. No one, or an empty list, if the actor has ended.
  virtual ActorRef ParentOf(ActorRef actor) const;
  virtual ActorRef ChildOf(ActorRef actor, std::string_view name) const;
  virtual std::vector<ActorRef> ChildrenOf(ActorRef actor) const;
  // Any thread. The path, or a text with what is known about the actor.
  virtual std::string PathOf(ActorRef actor) const;
  // The actor has no handler for a message. An error is a failure of the actor.
  virtual absl::Status OnUnhandled(ActorContext& context, Envelope& message);
  // Any thread. Describes an actor that has not sent a StatusReport in time, by what other threads
  // can see of it.
  virtual std::string DescribeFromOutside(ActorRef actor) const;
  // A promise has ended that `watcher` watches. In the turn of the asker.
  virtual void OnPromiseEnded(ActorRef promise, ActorRef watcher);
  // Null without an actor system.
  virtual ActorSystem* system() const { return nullptr; }

  // Code of the program threw where that is no failure of the actor: logs the error.
  virtual void OnThrown(ActorRef actor, const absl::Status& error);
};

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_ACTOR_LIFECYCLE_H_
