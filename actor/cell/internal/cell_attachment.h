// CellAttachment: the state of a facility that an actor uses: timers, a stash, a receive timeout.
// The tree tells the attachment of restarts, of the end, and of messages.
//
// A facility derives a class from CellAttachment, and finds its object by AttachmentOf<T>(context),
// which makes it at the first use. The attachment ends with the actor. ActorTree calls it in the
// actor's turn.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_CELL_ATTACHMENT_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_CELL_ATTACHMENT_H_

#include <memory>

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0::actor_internal {

class CellAttachment {
 public:
  virtual ~CellAttachment() = default;

  // Called before PreRestart of the old instance.
  virtual void BeforeRestart(ActorContext& /*context*/) {}
  // Called after PreRestart of the old instance, before the new one is made.
  virtual void OnRestart(ActorContext& /*context*/) {}
  // Called before PostStop of an actor that ends.
  virtual void BeforeStop(ActorContext& /*context*/) {}
  // Called after PostStop. Messages can still be sent.
  virtual void OnStop(ActorContext& /*context*/) {}
  // A system message that the tree does not know. Returns true if it was for this attachment.
  virtual bool OnSystemMessage(ActorContext& /*context*/, Envelope& /*message*/) { return false; }
  // A message with the flag kIntercepted (mailing.h). True if it belongs to this attachment, which
  // then has taken it over and left what the actor is to receive instead, perhaps null. A message
  // that still has the flag goes on to the actor's tree.
  virtual bool OnInterceptedMessage(ActorContext& /*context*/, Envelope*& /*envelope*/) { return false; }
  // A message has been handled, if this asked for it: see WatchActivity.
  virtual void OnActivity(ActorContext& /*context*/) {}
};

// Turns calls of OnActivity on or off, for messages without kLeavesReceiveTimeout.
void WatchActivity(ActorContext& context, bool on);

// Appends a message to the actor's own mailbox, past any limit, with the flag kIntercepted:
// OnInterceptedMessage sees it before the actor does. It stays behind the messages that were sent
// to the actor before, also those that wait for room.
void EnqueueIntercepted(ActorContext& context, EnvelopePtr message);

namespace cell_internal {

// One address for each type.
template <class T>
inline constexpr char kAttachmentKey = 0;

CellAttachment* FindAttachment(ActorContext& context, const void* key);
CellAttachment& AddAttachment(ActorContext& context, const void* key, std::unique_ptr<CellAttachment> attachment);

}  // namespace cell_internal

// The attachment, or null if the actor has none.
template <class T>
T* FindAttachment(ActorContext& context) {
  return static_cast<T*>(cell_internal::FindAttachment(context, &cell_internal::kAttachmentKey<T>));
}

// The attachment, made now if the actor has none.
template <class T>
T& AttachmentOf(ActorContext& context) {
  if (T* const found = FindAttachment<T>(context)) return *found;
  return static_cast<T&>(
      cell_internal::AddAttachment(context, &cell_internal::kAttachmentKey<T>, std::make_unique<T>()));
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_CELL_ATTACHMENT_H_
