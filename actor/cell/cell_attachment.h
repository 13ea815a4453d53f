// What a facility attaches to an actor that uses it: timers, a stash, a receive timeout. The actor's tree tells it what
// happens to the actor.
//
//   class Stash final : public CellAttachment { ... };
//   Stash& stash = AttachmentOf<Stash>(context);       // made at the first use; in the actor's turn
//
// It ends with the actor. All is called in the actor's turn.
#ifndef FRAKTOR_ACTOR_CELL_CELL_ATTACHMENT_H_
#define FRAKTOR_ACTOR_CELL_CELL_ATTACHMENT_H_

#include <memory>

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

class CellAttachment {
 public:
  virtual ~CellAttachment() = default;

  // Called before PreRestart of the old instance.
  virtual void BeforeRestart(ActorContext& /*context*/) {}
  // Called after PreRestart, before the new instance is made.
  virtual void OnRestart(ActorContext& /*context*/) {}
  // Called before PostStop of an actor that ends.
  virtual void BeforeStop(ActorContext& /*context*/) {}
  // Called after PostStop. Messages can still be sent.
  virtual void OnStop(ActorContext& /*context*/) {}
  // A system message that nobody else knows: true if it was meant for this.
  virtual bool OnSystemMessage(ActorContext& /*context*/, Envelope& /*message*/) { return false; }
  // A marked message (see kIsInterceptedMessage). True if it was meant for this, which then has
  // taken it over and left what the actor is to receive instead, perhaps null. What still has its
  // mark goes on to the actor's tree.
  virtual bool OnMarkedMessage(ActorContext& /*context*/, Envelope*& /*envelope*/) { return false; }
  // A message has been handled, if this asked for it: see WatchActivity.
  virtual void OnActivity(ActorContext& /*context*/) {}
};

// Whether OnActivity is called from now on, for messages without kLeavesReceiveTimeout.
void WatchActivity(ActorContext& context, bool on);

// Puts a message behind all others in the actor's own mailbox, past any limit. It has a mark: OnMarkedMessage sees it.
void EnqueueMarked(ActorContext& context, EnvelopePtr message);

namespace cell_internal {

// One address for each type.
template <class T>
inline constexpr char kAttachmentKey = 0;

CellAttachment* FindAttachment(ActorContext& context, const void* key);
CellAttachment& AddAttachment(ActorContext& context, const void* key, std::unique_ptr<CellAttachment> attachment);

}  // namespace cell_internal

// The attachment, or null if there is none yet.
template <class T>
T* FindAttachment(ActorContext& context) {
  return static_cast<T*>(cell_internal::FindAttachment(context, &cell_internal::kAttachmentKey<T>));
}

template <class T>
T& AttachmentOf(ActorContext& context) {
  if (T* const found = FindAttachment<T>(context)) return *found;
  return static_cast<T&>(
      cell_internal::AddAttachment(context, &cell_internal::kAttachmentKey<T>, std::make_unique<T>()));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_CELL_ATTACHMENT_H_
