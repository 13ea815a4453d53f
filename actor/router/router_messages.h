// Messages that routers understand.
//
//   Tell(router, Broadcast(Reload{}));                       // to all of its routees, whatever its strategy
//   Tell(router, Keyed("alice", Deposit{10}));               // to the routee that is responsible for "alice"
//   Tell(router, AdjustPoolSize{.change = 2});
//   absl::StatusOr<Routees> now = system.AskAndWait<Routees>(router, GetRoutees{}, absl::Seconds(1));
//
// Those by which a router is managed go through its mailbox, as do PoisonPill, Kill and Identify: they are for the
// router itself. All others are routed.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_MESSAGES_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_MESSAGES_H_

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The answer to GetRoutees: those that messages go to now.
struct Routees {
  std::vector<ActorRef> refs;
};
struct GetRoutees {
  using Reply = Routees;
};

// One more receiver; the router watches it, and forgets it when it ends. What is there already is not added again.
struct AddRoutee {
  ActorRef routee;
};
// One receiver less. If it is a child of the router it gets a PoisonPill, a moment later, so that what is on its way to
// it lands first.
struct RemoveRoutee {
  ActorRef routee;
};
// So many routees more, or less; never fewer than one, and within the bounds of the pool's resizer. Of pools.
struct AdjustPoolSize {
  int64_t change = 0;
};

// A message for all routees.
struct Broadcast {
  template <class M>
  requires(!std::is_same_v<std::decay_t<M>, Broadcast>) explicit Broadcast(M&& message)
      : envelope(MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message))) {}

  EnvelopePtr envelope;
};

// A message with the key by which ConsistentHashing finds its receiver: a number, an enum or a text.
struct Keyed {
  template <class K, class M>
  Keyed(const K& key, M&& message)
      : hash(HashOfAnyRoutingKey(key)), envelope(MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message))) {}

  uint64_t hash;
  EnvelopePtr envelope;
};

// From routers to themselves.
struct ResizePool {};
struct PublishRoutees {};
struct RouteInTurn {
  EnvelopePtr envelope;
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
inline constexpr bool kIsSuppressedDeadLetter<ResizePool> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<PublishRoutees> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTER_MESSAGES_H_
