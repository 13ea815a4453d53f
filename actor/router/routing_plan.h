// RoutingPlan: how a router chooses, in a form that senders can copy. It is a part of a
// RouterStrategy (router_strategy.h). Programs write a RoutingMapping:
//
//   const RoutingMapping by_customer = [](const Envelope& message) -> std::optional<uint64_t> {
//     const Order* order = message.TryAs<Order>();
//     return order == nullptr ? std::nullopt : std::optional(order->customer);
//   };
//   PoolOptions options{.strategy = RouterStrategy::ConsistentHashing({.mapping = by_customer}), .size = 4};
//
// Thread safety: values.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTING_PLAN_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTING_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

// The limits of every router.
inline constexpr size_t kMaxRoutees = 1 << 16;
// Routees times virtual nodes, for consistent hashing.
inline constexpr size_t kMaxRingPoints = 1 << 22;

// The kinds of strategies. RouterStrategy has a function for each (router_strategy.h). kCustom
// calls a RoutingLogic of the program (routing_logic.h).
enum class RoutingKind : uint8_t {
  kRoundRobin,
  kRandom,
  kBroadcast,
  kSmallestMailbox,
  kConsistentHashing,
  kScatterGather,
  kTailChopping,
  kCustom,
};

// Returns the key of a message, or nothing. It is a plain function because senders call it,
// possibly after the router has ended.
using RoutingMapping = std::optional<uint64_t> (*)(const Envelope& message);

// Constant for the whole life of a router.
struct RoutingPlan {
  RoutingKind kind = RoutingKind::kRoundRobin;
  // The pool checks its size after this many messages. 0 means never.
  uint32_t resize_every = 0;
  // ScatterGather and TailChopping: the time limit for a reply.
  int64_t within_ns = 0;
  // TailChopping: the time until the next routee is asked.
  int64_t interval_ns = 0;
  // ConsistentHashing only; null if messages have keys of their own.
  RoutingMapping mapping = nullptr;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTING_PLAN_H_
