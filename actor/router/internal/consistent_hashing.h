// RouterStrategy::ConsistentHashing: equal keys go to the same routee.
//
// The routees have points on a ring of hashes. The owner of a key is the routee of the first point
// at or behind the hash of the key. The routing table holds the ring (RoutingTable::View::OwnerOf).
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_CONSISTENT_HASHING_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_CONSISTENT_HASHING_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/routee_sending.h"
#include "fraktor/actor/router/internal/routing_failure.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"

namespace fraktor::inline v0::actor_internal {

// The ring of a router, sorted, with `per_routee` points for each routee. The points follow from
// the path of the routee: they are the same in every run, and do not depend on the other routees.
std::vector<uint64_t> MakeRing(const ActorLifecycle& lifecycle, const std::vector<ActorRef>& routees, int per_routee);

// A key, if there is one. It is not an optional because gcc 12 reports that as uninitialized under
// sanitizers.
struct RoutingKeyResult {
  bool is_there = false;
  uint64_t key = 0;
};

// The key that the mapping gives, or else that of the message itself. Calls code of the program, so
// it must not run inside RoutingTable::Read.
inline RoutingKeyResult FindRoutingKey(RoutingMapping mapping, const Envelope& message) {
  if (mapping != nullptr) {
    if (const std::optional<uint64_t> key = mapping(message); key.has_value()) return {true, *key};
  }
  const RoutingKeyFunction own = message.type()->routing_key();
  if (own == nullptr) return {};
  return {true, own(message.payload())};
}

// The same, but never throws: returns the error of a key that throws.
inline absl::Status TryFindRoutingKey(RoutingMapping mapping, const Envelope& message, RoutingKeyResult& key) {
  try {
    key = FindRoutingKey(mapping, message);
    return absl::OkStatus();
  } catch (...) {
    return ErrorOfThrown();
  }
}

// `key` is that of a Keyed message. A message without a key, or whose key throws, becomes a dead
// letter.
inline absl::Status SendByKey(const RoutingTable& table, ActorRef router, EnvelopePtr message, RoutingKeyResult key) {
  if (!key.is_there) {
    RoutingMapping mapping = nullptr;
    table.Read(router.generation(), [&](const RoutingTable::View& view) { mapping = view.plan().mapping; });
    if (absl::Status found = TryFindRoutingKey(mapping, *message, key); !found.ok()) [[unlikely]]
      return FailRouting(router, std::move(message), "the routing key", found);
  }
  ActorRef owner;
  if (key.is_there) {
    RoutingTable::RawRoutee found;
    const bool is_known =
        table.Read(router.generation(), [&](const RoutingTable::View& view) { found = view.OwnerOf(key.key); });
    if (is_known) owner = found.ref();
  }
  if (owner.IsNoOne()) return LoseRouted(router, std::move(message), DeadLetterReason::kNoRecipient);
  return SendToRoutee(owner, std::move(message));
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_CONSISTENT_HASHING_H_
