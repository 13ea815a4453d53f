// Messages that routers understand.
//
//   Tell(router, Broadcast(Reload{}));                       // to all of its routees, whatever its strategy
//   Tell(router, Keyed("alice", Deposit{10}));               // to the routee that is responsible for "alice"
//   Tell(router, AdjustPoolSize{.change = 2});
//   absl::StatusOr<Routees> now = system.AskAndWait<Routees>(router, GetRoutees{}, absl::Seconds(1));
//
// The messages that manage a router go through its mailbox, as PoisonPill, Kill and Identify do.
// All other messages go to routees.
//
// Thread safety: values. Any thread may send them.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_MESSAGES_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_MESSAGES_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The reply to GetRoutees: the present routees.
struct Routees {
  std::vector<ActorRef> refs;
};
struct GetRoutees {
  using Reply = Routees;
};

// Adds a routee. The router watches it, and removes it when it ends. Adding a routee again does
// nothing.
struct AddRoutee {
  ActorRef routee;
};
// Removes a routee. A child of the router gets a PoisonPill 100 ms later, so that messages on their
// way to it arrive first.
struct RemoveRoutee {
  ActorRef routee;
};
// Changes the number of routees of a pool. At least one stays, and the bounds of the resizer hold.
struct AdjustPoolSize {
  int64_t change = 0;
};

// Sends a message to all routees.
struct Broadcast {
  template <class M>
  requires(!std::is_same_v<std::decay_t<M>, Broadcast>) explicit Broadcast(M&& message)
      : envelope(MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message))) {}

  EnvelopePtr envelope;
};

// A message with its key, for ConsistentHashing: a number, an enum or a text.
struct Keyed {
  template <class K, class M>
  Keyed(const K& key, M&& message)
      : hash(HashOfAnyRoutingKey(key)), envelope(MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message))) {}

  uint64_t hash;
  EnvelopePtr envelope;
};

// Messages from a router and its senders to the router itself.

// Asks a pool to check its size.
struct ResizePool {};
// Asks a router to publish the changes of its routees.
struct PublishRoutees {};
// A message that the router must ask its routees, because the sender cannot wait for the reply.
struct RouteInTurn {
  EnvelopePtr envelope;
};
// Code of the program has failed while the router routed, for this many messages so far. `part`
// names the code: "the routing logic".
struct RoutingFailed {
  uint64_t failures = 0;
  std::string part;
  std::string reason;
};

template <>
inline constexpr bool kIsInterceptedMessage<GetRoutees> = true;
template <>
inline constexpr bool kIsInterceptedMessage<AddRoutee> = true;
template <>
inline constexpr bool kIsInterceptedMessage<RemoveRoutee> = true;
template <>
inline constexpr bool kIsInterceptedMessage<AdjustPoolSize> = true;
template <>
inline constexpr bool kIsInterceptedMessage<ResizePool> = true;
template <>
inline constexpr bool kIsInterceptedMessage<PublishRoutees> = true;
template <>
inline constexpr bool kIsInterceptedMessage<RouteInTurn> = true;
template <>
inline constexpr bool kIsInterceptedMessage<RoutingFailed> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<ResizePool> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<PublishRoutees> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<RoutingFailed> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTER_MESSAGES_H_
