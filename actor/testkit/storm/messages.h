// The messages of a storm.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_MESSAGES_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_MESSAGES_H_

#include <array>
#include <cstdint>
#include <string>

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/testkit/storm/ledger.h"

namespace fraktor::storm {

// The place of a message among those of its sender. A recipient with a FIFO mailbox sees the
// numbers of one sender grow.
struct Place {
  uint32_t sender : 24 = 0;  // 0: the order is not checked.
  uint32_t route : 8 = 0;    // The following is for the text of a violation: see PlaceOf in world.h.
  uint32_t number = 0;
  uint32_t target = 0;  // The number of the slot that it was sent to, which may be that of a router.
  uint16_t thread = 0;  // The thread that sent it (NumberOfThisThread).
  uint16_t turn = 0;    // Counts the turns of the sender.
};

// A message that only counts.
struct Letter {
  Token token;
  Place place;

  uint64_t RoutingKey() const { return place.number; }
};
// The same on the heap instead of in the node.
struct Bulky {
  Token token;
  Place place;
  std::array<char, 200> ballast = {};

  uint64_t RoutingKey() const { return place.number; }
};
// A message that typed actors do not handle, but adapt: it becomes a Letter.
struct Parcel {
  Token token;
  Place place;

  uint64_t RoutingKey() const { return place.number; }
};
// The same as a Letter, ahead of others in a control-first mailbox.
struct Urgent {
  Token token;
};

// The recipient performs one random operation, which follows from the seed.
struct Act {
  Token token;
  uint64_t seed = 0;

  uint64_t RoutingKey() const { return seed; }
};

struct Answer {
  Token token;
};
struct Question {
  using Reply = Answer;
  Token token;  // Not owed: an ask that cannot be sent fails, and its message ends.
  Place place;
  uint64_t seed = 0;  // Decides how the recipient replies.

  uint64_t RoutingKey() const { return seed; }
};

// A timer of the recipient's own.
struct Tick {
  Token token;
};
// In place of Terminated.
struct WatchNote {
  ActorRef watched;
};
// The result of a PipeTo.
struct Piped {
  Token token;
};

// The operations are over: the recipient unstashes its messages, and cancels its timers.
struct Calm {};
// The recipient checks that nothing it waits for has happened already.
struct Audited {};
struct Audit {
  using Reply = Audited;
};

// An event.
struct Gust {
  static constexpr EventInfo<Gust> kEvent{"Gust"};
  static constexpr bool kOwnsItsData = true;
  uint64_t force = 0;
};

// The token of an owed message in an envelope, also if it is wrapped for a router; null if there is
// none.
const Token* TokenIn(const MessageType* type, const void* message);

}  // namespace fraktor::storm

template <>
inline constexpr bool fraktor::kIsControlMessage<fraktor::storm::Urgent> = true;
// The end of the storm reaches actors whose mailboxes are full.
template <>
inline constexpr bool fraktor::kPassesMailboxLimits<fraktor::storm::Calm> = true;

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_MESSAGES_H_
