// The messages that the runtime itself handles or sends.
//
//   context.Tell(child, PoisonPill{});          // the child ends after the messages before it
//   context.Watch(child).IgnoreError();         // a Terminated comes when the child has ended
//   context.Tell(child, Identify{.id = 7});     // an ActorIdentity comes back
#ifndef FRAKTOR_ACTOR_CELL_LIFECYCLE_MESSAGES_H_
#define FRAKTOR_ACTOR_CELL_LIFECYCLE_MESSAGES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The recipient handles the messages before the pill to their end, and then ends: a handler that
// waits in co_await finishes first. A handler that lets other messages in meanwhile
// (InterleavingTask) and a task of its own are cancelled, as by Stop. A full mailbox accepts it.
struct PoisonPill {};
template <>
inline constexpr bool kIsInterceptedMessage<PoisonPill> = true;
template <>
inline constexpr bool kPassesMailboxLimits<PoisonPill> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<PoisonPill> = true;

// The recipient fails with ActorErrorKind::kKilled when it receives this message: the default
// strategy stops it. A full mailbox accepts it.
struct Kill {};
template <>
inline constexpr bool kIsInterceptedMessage<Kill> = true;
template <>
inline constexpr bool kPassesMailboxLimits<Kill> = true;

// To a watcher: the watched actor has ended. A full mailbox accepts it.
struct Terminated {
  ActorRef actor;
  // False if it is not known whether the actor ever existed.
  bool existence_confirmed = true;
  // The node of the actor is gone.
  bool address_terminated = false;
  // The path that the actor had. A text with its slot if it ended before the watch began.
  std::string path = {};
};
template <>
inline constexpr bool kIsInterceptedMessage<Terminated> = true;
template <>
inline constexpr bool kPassesMailboxLimits<Terminated> = true;
// A watcher may end before its Terminated arrives, as a router does that stops with its routees.
template <>
inline constexpr bool kIsSuppressedDeadLetter<Terminated> = true;

// Asks whether the recipient lives. The runtime replies for every actor with an ActorIdentity.
struct Identify {
  uint64_t id = 0;
};
template <>
inline constexpr bool kIsInterceptedMessage<Identify> = true;
template <>
inline constexpr bool kLeavesReceiveTimeout<Identify> = true;

// The reply to Identify. `ref` is no one if there is no such actor.
struct ActorIdentity {
  uint64_t id = 0;
  ActorRef ref;
};

// No message has come for the receive timeout of the actor: see receive_timeout.h.
struct ReceiveTimeout {
  absl::Duration after;
};
template <>
inline constexpr bool kLeavesReceiveTimeout<ReceiveTimeout> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_LIFECYCLE_MESSAGES_H_
