#include "fraktor/actor/router/routee_sending.h"

#include <cstdint>

#include "fraktor/actor/send/system_core.h"

namespace fraktor::inline v0 {

AllRoutees ReadAll(const RoutingTable& table, ActorRef router) {
  AllRoutees all;
  table.Read(router.generation(), [&](const RoutingTable::View& view) {
    all.plan = view.plan();
    all.refs.clear();
    const uint32_t size = view.size();
    for (uint32_t i = 0; i < size; ++i) all.refs.push_back(view.routee(i));
  });
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

}  // namespace fraktor::inline v0
