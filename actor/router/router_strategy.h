// How a router chooses who gets a message.
//
//   PoolOptions in_turn{.strategy = RouterStrategy::RoundRobin(), .size = 5};
//   PoolOptions by_name{.strategy = RouterStrategy::ConsistentHashing({.mapping = RoutingKeyOf<Get, &Get::name>})};
//   PoolOptions first{.strategy = RouterStrategy::TailChopping({.interval = absl::Milliseconds(20)}), .size = 3};
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_STRATEGY_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/router/routing_table.h"

namespace fraktor::inline v0 {

// A mapping for messages of type M: `part` is a data member, a member function, or a function of a const M&, which gives
// a number, an enum or a text.
template <class M, auto part>
std::optional<uint64_t> RoutingKeyOf(const Envelope& message) {
  const M* const typed = message.TryAs<M>();
  if (typed == nullptr) return std::nullopt;
  return HashOfAnyRoutingKey(std::invoke(part, *typed));
}

struct ConsistentHashingOptions {
  // The key of a message, before the one that it may have by itself: see RoutingKeyOf. Several types: a function that
  // tries one after the other. A plain function, since senders call it.
  RoutingMapping mapping = nullptr;
  // Of each routee on the ring: the more, the more evenly keys are spread. 1 to 1000.
  int virtual_nodes = 64;
};

struct ScatterGatherOptions {
  // After so long without any answer, the failure.
  absl::Duration within = absl::Seconds(5);
};

struct TailChoppingOptions {
  absl::Duration within = absl::Seconds(5);
  // After so long without an answer the next routee is asked too.
  absl::Duration interval = absl::Milliseconds(10);
};

class RouterStrategy {
 public:
  // One after the other.
  static RouterStrategy RoundRobin() { return RouterStrategy(RoutingKind::kRoundRobin); }
  // Any, by chance.
  static RouterStrategy Random() { return RouterStrategy(RoutingKind::kRandom); }
  // Each message goes to all. It has to be copyable.
  static RouterStrategy Broadcasting() { return RouterStrategy(RoutingKind::kBroadcast); }
  // One that has nothing to do; otherwise one that only has to end what it is at; otherwise the one for which the fewest
  // wait. How many wait is known of bounded mailboxes; of others, only whether any do: among those it takes turns.
  static RouterStrategy SmallestMailbox() { return RouterStrategy(RoutingKind::kSmallestMailbox); }
  // Equal keys go to the same routee as long as the routees are the same, and mostly also when they change. The key is
  // what the mapping gives, or the message's own RoutingKey(), or that of a Keyed. A message without a key is a dead
  // letter.
  static RouterStrategy ConsistentHashing(const ConsistentHashingOptions& options = {}) {
    RouterStrategy strategy(RoutingKind::kConsistentHashing);
    strategy.plan_.mapping = options.mapping;
    strategy.virtual_nodes_ = options.virtual_nodes;
    return strategy;
  }
  // Each message goes to all; the sender gets the first answer, the others are dead letters. It has to be copyable.
  // If nobody answers in time, or there is no routee, the sender gets an ErrorReply: ActorErrorKind::kAskTimeout.
  // For questions. A message that an actor tells is asked by the router in its place, in the router's turn: somebody has
  // to wait for the answer, which must be copyable then.
  static RouterStrategy ScatterGather(const ScatterGatherOptions& options = {}) {
    RouterStrategy strategy(RoutingKind::kScatterGather);
    strategy.within_ = options.within;
    return strategy;
  }
  // Each message goes to one routee, by chance; if that has not answered after the interval, to one more, and so on. The
  // rest is as for ScatterGather.
  static RouterStrategy TailChopping(const TailChoppingOptions& options = {}) {
    RouterStrategy strategy(RoutingKind::kTailChopping);
    strategy.within_ = options.within;
    strategy.interval_ = options.interval;
    return strategy;
  }

  RoutingKind kind() const { return plan_.kind; }
  int virtual_nodes() const { return virtual_nodes_; }
  RoutingPlan plan() const {
    RoutingPlan plan = plan_;
    plan.within_ns = absl::ToInt64Nanoseconds(within_);
    plan.interval_ns = absl::ToInt64Nanoseconds(interval_);
    return plan;
  }

  // InvalidArgument that names the option.
  absl::Status Validate() const;

 private:
  explicit RouterStrategy(RoutingKind kind) { plan_.kind = kind; }

  RoutingPlan plan_;
  int virtual_nodes_ = 64;
  absl::Duration within_ = absl::Seconds(5);
  absl::Duration interval_ = absl::Milliseconds(10);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTER_STRATEGY_H_
