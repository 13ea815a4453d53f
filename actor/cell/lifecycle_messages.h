// Messages that the runtime itself understands or sends, whatever an actor's own messages are.
//
//   context.Tell(child, PoisonPill{});          // it ends after what has been sent before
//   context.Watch(child);                       // brings a Terminated
//   context.Tell(child, Identify{.id = 7});     // brings an ActorIdentity
#ifndef FRAKTOR_ACTOR_CELL_LIFECYCLE_MESSAGES_H_
#define FRAKTOR_ACTOR_CELL_LIFECYCLE_MESSAGES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The receiver ends after the messages before it, which it handles to their end: a handler that
// waits in co_await finishes first, unless it lets other messages in meanwhile (InterleavingTask, a
// task of its own). Then it is cancelled, as by Stop. A full mailbox takes the pill, too.
struct PoisonPill {};
template <>
inline constexpr bool kIsInterceptedMessage<PoisonPill> = true;
template <>
inline constexpr bool kPassesMailboxLimits<PoisonPill> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<PoisonPill> = true;

// The receiver fails with ActorErrorKind::kKilled when its turn comes: the usual strategy stops it. A full mailbox takes
// it too.
struct Kill {};
template <>
inline constexpr bool kIsInterceptedMessage<Kill> = true;
template <>
inline constexpr bool kPassesMailboxLimits<Kill> = true;

// An actor that this one has watched has ended.
struct Terminated {
  ActorRef actor;
  // False if nobody knows whether there ever was such an actor.
  bool existence_confirmed = true;
  // The node that it lived on is gone.
  bool address_terminated = false;
  // What its path was. If it had ended before it was watched, it may be that only its number is known.
  std::string path = {};
};
template <>
inline constexpr bool kIsInterceptedMessage<Terminated> = true;
// Who has watched may end before it hears of it: a router that stops with its routees mostly does.
template <>
inline constexpr bool kIsSuppressedDeadLetter<Terminated> = true;

// Asks whether somebody is there, who answers by itself, also if its handlers know nothing of it.
struct Identify {
  uint64_t id = 0;
};
template <>
inline constexpr bool kIsInterceptedMessage<Identify> = true;
template <>
inline constexpr bool kLeavesReceiveTimeout<Identify> = true;

// The answer: no one, if there is nobody.
struct ActorIdentity {
  uint64_t id = 0;
  ActorRef ref;
};

// Nothing has come for as long as the receiver said: see receive_timeout.h.
struct ReceiveTimeout {
  absl::Duration after;
};
template <>
inline constexpr bool kLeavesReceiveTimeout<ReceiveTimeout> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_LIFECYCLE_MESSAGES_H_
