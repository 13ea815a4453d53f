// OrphanedMessage: an ask for an actor of this system that has ended before it handled the ask. The
// ask was in the mailbox, or it came too late. Before it becomes a dead letter, a listener that
// knows another actor for it may take it.
//
//   EventSubscription orphans = system.events().Listen<OrphanedMessage>([&](const OrphanedMessage& orphan) {
//     if (orphan.recipient == former) for_successor.push_back(std::move(orphan.message));
//   });
//
// A taken message is no dead letter, and its asker gets no error. Messages without an asker, such
// as an actor's own timer messages, are not published. Neither are asks for an actor whose reason
// for ending is known (end_cause.h): their askers receive that reason.
//
// Thread safety: only for the publishing thread, during the publication.
#ifndef FRAKTOR_ACTOR_EVENT_ORPHANED_MESSAGE_H_
#define FRAKTOR_ACTOR_EVENT_ORPHANED_MESSAGE_H_

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

struct OrphanedMessage {
  static constexpr EventInfo<OrphanedMessage> kEvent{"OrphanedMessage"};

  ActorRef recipient;
  // Null after a listener has taken it.
  EnvelopePtr& message;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_ORPHANED_MESSAGE_H_
