// RouterStrategy: how a router chooses the routee for a message.
//
//   PoolOptions in_turn{.strategy = RouterStrategy::RoundRobin(), .size = 5};
//   PoolOptions by_name{.strategy = RouterStrategy::ConsistentHashing({.mapping = RoutingKeyOf<Get, &Get::name>})};
//   PoolOptions first{.strategy = RouterStrategy::TailChopping({.interval = absl::Milliseconds(20)}), .size = 3};
//
// A program can add a strategy of its own: see routing_logic.h.
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_STRATEGY_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/router/routing_logic.h"
#include "fraktor/actor/router/routing_plan.h"

namespace fraktor::inline v0 {

// A mapping for messages of type M. `part` is a data member, a member function, or a function of a
// const M&, which gives a number, an enum or a text.
template <class M, auto part>
std::optional<uint64_t> RoutingKeyOf(const Envelope& message) {
  const M* const typed = message.TryAs<M>();
  if (typed == nullptr) return std::nullopt;
  return HashOfAnyRoutingKey(std::invoke(part, *typed));
}

struct ConsistentHashingOptions {
  // Gives the key of a message: see RoutingKeyOf. It takes precedence over the RoutingKey() of the
  // message. A function for several types tries one after the other. It is a plain function because
  // senders call it, possibly after the router has ended.
  RoutingMapping mapping = nullptr;
  // Points of each routee on the ring, 1 to 1000. More points spread the keys more evenly.
  int virtual_nodes = 64;
};

struct ScatterGatherOptions {
  // The ask fails after this long without any reply.
  absl::Duration within = absl::Seconds(5);
};

struct TailChoppingOptions {
  absl::Duration within = absl::Seconds(5);
  // After each interval without a reply, one more routee is asked.
  absl::Duration interval = absl::Milliseconds(10);
};

class RouterStrategy {
 public:
  // The routees take turns.
  static RouterStrategy RoundRobin() { return RouterStrategy(RoutingKind::kRoundRobin); }
  // Each routee is equally likely.
  static RouterStrategy Random() { return RouterStrategy(RoutingKind::kRandom); }
  // Every routee gets a copy. The message must be copyable.
  static RouterStrategy Broadcasting() { return RouterStrategy(RoutingKind::kBroadcast); }
  // Chooses an idle routee; otherwise one without waiting messages; otherwise the one with the
  // fewest. Only bounded mailboxes count their messages. Routees with messages in unbounded
  // mailboxes take turns.
  static RouterStrategy SmallestMailbox() { return RouterStrategy(RoutingKind::kSmallestMailbox); }
  // Equal keys go to the same routee while the routees stay the same, and most keys stay at their
  // routee when the routees change. The key is that of a Keyed, or the result of the mapping, or
  // the RoutingKey() of the message. A message without a key becomes a dead letter.
  static RouterStrategy ConsistentHashing(const ConsistentHashingOptions& options = {}) {
    RouterStrategy strategy(RoutingKind::kConsistentHashing);
    strategy.plan_.mapping = options.mapping;
    strategy.virtual_nodes_ = options.virtual_nodes;
    return strategy;
  }
  // Every routee gets a copy, and the sender gets the first reply. Later replies become dead
  // letters. The message must be copyable. If no routee replies in time, or there is no routee, the
  // sender gets an ErrorReply with ActorErrorKind::kAskTimeout. This strategy is for asks. If an
  // actor tells instead, the router asks in its place, in its own turn, and passes the reply on,
  // which must be copyable.
  static RouterStrategy ScatterGather(const ScatterGatherOptions& options = {}) {
    RouterStrategy strategy(RoutingKind::kScatterGather);
    strategy.within_ = options.within;
    return strategy;
  }
  // The message goes to a random routee, and after each interval without a reply to one more. The
  // rest is as for ScatterGather.
  static RouterStrategy TailChopping(const TailChoppingOptions& options = {}) {
    RouterStrategy strategy(RoutingKind::kTailChopping);
    strategy.within_ = options.within;
    strategy.interval_ = options.interval;
    return strategy;
  }

  // A strategy of the program: calls Logic(args...).Choose for each message (routing_logic.h).
  template <class Logic, class... Args>
  static RouterStrategy Using(Args&&... args) {
    return Using(std::make_shared<const Logic>(std::forward<Args>(args)...));
  }
  // The same with an object that the program shares with the router. Must not be null.
  static RouterStrategy Using(std::shared_ptr<const RoutingLogic> logic) {
    RouterStrategy strategy(RoutingKind::kCustom);
    strategy.logic_ = std::move(logic);
    return strategy;
  }

  RoutingKind kind() const { return plan_.kind; }
  // Null for the built-in strategies.
  const std::shared_ptr<const RoutingLogic>& logic() const { return logic_; }
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
  std::shared_ptr<const RoutingLogic> logic_;
  int virtual_nodes_ = 64;
  absl::Duration within_ = absl::Seconds(5);
  absl::Duration interval_ = absl::Milliseconds(10);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTER_STRATEGY_H_
