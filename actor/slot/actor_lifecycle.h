// What happens to actors besides messages, and what they can do besides sending: the actor system's part.
//
// The invoker calls the first group, ActorContext the second. All are called in the actor's own turn, unless they say
// otherwise. A scheduler can be run with a lifecycle that has only the first group.
#ifndef FRAKTOR_ACTOR_SLOT_ACTOR_LIFECYCLE_H_
#define FRAKTOR_ACTOR_SLOT_ACTOR_LIFECYCLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

class ActorContext;
class ActorProps;
class ActorSystem;
class ActorWorker;
class NodeCache;
enum class FailureCause : uint8_t;

class ActorLifecycle {
 public:
  virtual ~ActorLifecycle() = default;

  // The first turn of an actor that was put up with Gate::kStarting. An error is a failure of the actor.
  virtual absl::Status OnStart(ActorWorker& worker, ActorSlot& slot) = 0;

  // A system message. It may suspend, resume or stop the actor through the turn.
  virtual void OnSystemMessage(ActorWorker& worker, ActorSlot& slot, Envelope& message) = 0;

  // A user message that was sent as a marked one (see kMarked in mailing.h). What the actor is to receive: the same
  // envelope or another; null if nothing. Takes the envelope over.
  virtual Envelope* OnMarkedMessage(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);

  // A message has been handled by an actor whose extension asks for it (watches_activity), and counts as activity.
  virtual void OnActivity(ActorWorker& worker, ActorSlot& slot);

  // A handler failed on `message`, or the start, where it is null. The actor is suspended. `error`
  // may have come from another actor or node: only `cause` says what happened to this one.
  virtual void OnFailure(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, FailureCause cause,
                         Envelope* message) = 0;

  // The actor is to stop, and handles no further user message. True if nothing is left to wait for: then its end
  // follows. False as long as children live; the lifecycle is asked again after each system message.
  virtual bool MayEnd(ActorWorker& worker, ActorSlot& slot) = 0;

  // The actor is about to go: hooks run here, and its references are made stale.
  virtual void OnEnding(ActorWorker& worker, ActorSlot& slot) = 0;

  // The mailbox is empty and idle. The slot is the lifecycle's, to give back or keep.
  virtual void OnEnded(ActorWorker& worker, ActorSlot& slot) = 0;

  // Before a message is counted as a dead letter: true if somebody has taken it, and it is none (OrphanedMessage). Also
  // called outside of turns.
  virtual bool IsAdopted(TableSlot* /*slot*/, EnvelopePtr& /*envelope*/, DeadLetterReason /*reason*/) { return false; }
  // Takes the envelope over. Also called outside of turns. The envelope's target word says which kind of slot it is; null
  // if the message was for no one.
  virtual void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, TableSlot* slot, DeadLetterReason reason) = 0;

  // What a context forwards.

  virtual absl::StatusOr<ActorRef> Spawn(ActorContext& parent, const ActorProps& props, std::string_view name);
  virtual void Stop(ActorContext& context, ActorRef actor);
  // `message` comes instead of Terminated; null for that.
  // Whether two payloads of the type of `message` are the same is what `same` says; null if that cannot be said.
  using SameMessage = bool (*)(const void* a, const void* b);
  virtual absl::Status Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, SameMessage same);
  virtual void Unwatch(ActorContext& context, ActorRef actor);
  // Any thread. No one, and none, if the actor has ended.
  virtual ActorRef ParentOf(ActorRef actor) const;
  virtual ActorRef ChildOf(ActorRef actor, std::string_view name) const;
  virtual std::vector<ActorRef> ChildrenOf(ActorRef actor) const;
  // Any thread. A text that names the actor as well as is known.
  virtual std::string PathOf(ActorRef actor) const;
  // A message that the actor does not handle. An error is a failure of the actor.
  virtual absl::Status OnUnhandled(ActorContext& context, Envelope& message);
  // Any thread: what can be said from outside of an actor that does not say itself what it is at.
  virtual std::string DescribeFromOutside(ActorRef actor) const;
  // In the asker's turn: a promise of it is over, and `watcher` wanted to know.
  virtual void OnPromiseEnded(ActorRef promise, ActorRef watcher);
  // Null if there is none.
  virtual ActorSystem* system() const { return nullptr; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_ACTOR_LIFECYCLE_H_
