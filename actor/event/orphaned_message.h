// OrphanedMessage: a question for an actor of this system that has ended before it has handled it: it was in the
// mailbox, or came too late. Before it becomes a dead letter somebody who knows another one that can answer may take
// it.
//
//   EventSubscription orphans = system.events().Listen<OrphanedMessage>([](const OrphanedMessage& orphan) {
//     if (orphan.recipient == former) Send(successor, std::move(orphan.message));
//   });
//
// One that was taken is no dead letter, and who asked by it is told nothing. Other messages than questions, as those
// that an actor has sent itself by a timer, end with it. So do those for an actor of which it is known why it has ended
// (end_cause.h): who asks it hears that.
//
// Thread safety: for the thread that publishes it, while it does.
#ifndef FRAKTOR_ACTOR_EVENT_ORPHANED_MESSAGE_H_
#define FRAKTOR_ACTOR_EVENT_ORPHANED_MESSAGE_H_

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

struct OrphanedMessage {
  static constexpr EventInfo<OrphanedMessage> kEvent{"OrphanedMessage"};

  ActorRef recipient;
  // Null when somebody has taken it.
  EnvelopePtr& message;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_ORPHANED_MESSAGE_H_
