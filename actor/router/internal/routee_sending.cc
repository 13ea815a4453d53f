#include "fraktor/actor/router/internal/routee_sending.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

namespace {

absl::Status ErrorOf(const Envelope& message, DeadLetterReason reason) {
  const absl::string_view type = ToAbsl(message.type()->name());
  switch (reason) {
    case DeadLetterReason::kNotCopyable:
      return absl::FailedPreconditionError(
          absl::StrCat(type, " cannot be copied, and several routees would get it; give it a copy constructor"));
    case DeadLetterReason::kStopped:
      return absl::NotFoundError(absl::StrCat(type, " has no recipient: the router has ended"));
    default:
      return absl::NotFoundError(absl::StrCat(type, " has no recipient: the router has no routee for it"));
  }
}

}  // namespace

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

absl::Status LoseRouted(ActorRef router, EnvelopePtr message, DeadLetterReason reason) {
  absl::Status lost = ErrorOf(*message, reason);
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->DeadLetter(message.release(), router.any_slot(), reason);
  } else {
    SystemCore::LoseForeign(router, std::move(message), reason);
  }
  return lost;
}

NodeCache& CacheOfThisThread() {
  ActorWorker* const worker = ActorWorker::Current();
  return worker == nullptr ? NodeCache::OfThisThread() : worker->cache();
}

}  // namespace fraktor::inline v0::actor_internal
