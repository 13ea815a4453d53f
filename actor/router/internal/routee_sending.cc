#include "fraktor/actor/router/internal/routee_sending.h"

#include <cstdint>

#include "fraktor/actor/send/internal/system_core.h"

namespace fraktor::inline v0::actor_internal {

AllRoutees ReadAll(const RoutingTable& table, ActorRef router) {
  AllRoutees all;
  absl::InlinedVector<RoutingTable::RawRoutee, 16> routees;
  const bool is_known = table.Read(router.generation(), [&](const RoutingTable::View& view) {
    all.plan = view.plan();
    routees.clear();
    const uint32_t size = view.size();
    for (uint32_t i = 0; i < size; ++i) routees.push_back(view.routee(i));
  });
  if (!is_known) return {};
  all.refs.reserve(routees.size());
  for (const RoutingTable::RawRoutee& routee : routees) all.refs.push_back(routee.ref());
  return all;
}

void LoseRouted(ActorRef router, EnvelopePtr message, DeadLetterReason reason) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->DeadLetter(message.release(), router.any_slot(), reason);
  } else {
    SystemCore::LoseForeign(router, std::move(message), reason);
  }
}

NodeCache& CacheOfThisThread() {
  ActorWorker* const worker = ActorWorker::Current();
  return worker == nullptr ? NodeCache::OfThisThread() : worker->cache();
}

}  // namespace fraktor::inline v0::actor_internal
