// UndeliveredMessage: a message to another node that has not left this one, and will not. Before it becomes a dead letter
// whoever has sent it may take it back, to send it again or elsewhere.
//
//   EventSubscription losses = system.events().Listen<UndeliveredMessage>([](const UndeliveredMessage& lost) {
//     if (!IsMine(lost.letter.message)) return;
//     SendAgainLater(lost.TakeBack().Take<Parcel>());
//   });
//
// One that was taken back is no dead letter: it is not counted, published or logged as one, and who asked by it is told
// nothing. Whoever took it says what became of it. Listeners behind him find it empty, if he has moved it away: each
// looks at the type, and touches only what is its own.
//
// Thread safety: for the thread that publishes it, while it does.
#ifndef FRAKTOR_ACTOR_EVENT_UNDELIVERED_MESSAGE_H_
#define FRAKTOR_ACTOR_EVENT_UNDELIVERED_MESSAGE_H_

#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_type.h"

namespace fraktor::inline v0 {

class Envelope;

struct UndeliveredMessage {
  static constexpr EventInfo<UndeliveredMessage> kEvent{"UndeliveredMessage"};

  // What it will be if nobody takes it. Without sender and recipient, which cost something to name.
  const AllDeadLetters& letter;
  Envelope& message;
  bool& is_taken_back;
  // What who has asked by it would hear; OK if there is nothing to say that the reason does not.
  const absl::Status& why;

  // The message, in which nobody else has an interest any more: what is in it may be moved out of it.
  Envelope& TakeBack() const {
    is_taken_back = true;
    return message;
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_UNDELIVERED_MESSAGE_H_
