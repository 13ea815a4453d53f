// UndeliveredMessage: a message to another node that has not left this node and will not. Before it
// becomes a dead letter, its sender may take it back and send it again or elsewhere.
//
//   EventSubscription losses = system.events().Listen<UndeliveredMessage>([&](const UndeliveredMessage& lost) {
//     if (lost.letter.message.type != MessageTypeOf<Parcel>()) return;
//     parcels.push_back(lost.TakeBack().Take<Parcel>());
//   });
//
// A message that was taken back is no dead letter: it is not counted, published or logged as one,
// and its asker gets no error. The listener that took it must complete the ask. Later listeners may
// find a moved-from message, so each listener must check the type and touch only its own messages.
//
// Thread safety: only for the publishing thread, during the publication.
#ifndef FRAKTOR_ACTOR_EVENT_UNDELIVERED_MESSAGE_H_
#define FRAKTOR_ACTOR_EVENT_UNDELIVERED_MESSAGE_H_

#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_type.h"

namespace fraktor::inline v0 {

class Envelope;

struct UndeliveredMessage {
  static constexpr EventInfo<UndeliveredMessage> kEvent{"UndeliveredMessage"};

  // The dead letter that it becomes if no listener takes it. Without sender and recipient, whose
  // names are expensive.
  const AllDeadLetters& letter;
  Envelope& message;
  bool& is_taken_back;
  // The error that the asker receives. OK if the dead-letter reason already says everything.
  const absl::Status& why;

  // Returns the message. The caller may move its content.
  Envelope& TakeBack() const {
    is_taken_back = true;
    return message;
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_UNDELIVERED_MESSAGE_H_
