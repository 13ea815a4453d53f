#include "fraktor/actor/router/internal/custom_routing.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "fraktor/actor/router/internal/broadcasting.h"
#include "fraktor/actor/router/internal/custom_routes.h"
#include "fraktor/actor/router/internal/routee_sending.h"
#include "fraktor/actor/router/internal/routing_failure.h"
#include "fraktor/actor/router/routing_logic.h"

namespace fraktor::inline v0::actor_internal {

namespace {

struct ReleaseRoutes {
  void operator()(CustomRoutes* routes) const { routes->Release(); }
};
using RoutesPtr = std::unique_ptr<CustomRoutes, ReleaseRoutes>;

// Null if the router has ended.
RoutesPtr AcquireRoutes(const RoutingTable& table, ActorRef router) {
  for (;;) {
    CustomRoutes* routes = nullptr;
    const bool is_known =
        table.Read(router.generation(), [&](const RoutingTable::View& view) { routes = view.custom_routes(); });
    if (!is_known || routes == nullptr) return nullptr;
    if (routes->TryAcquire({.table = &table, .generation = router.generation()})) return RoutesPtr(routes);
    // The router has published other routes since.
  }
}

absl::Status AddRouteeAt(absl::Span<const ActorRef> routees, size_t i, RefList& to) {
  if (i >= routees.size()) {
    return absl::OutOfRangeError(absl::StrCat("it chose routee ", i, " of ", routees.size(),
                                              "; it must choose one of 0 to ", routees.size() - 1));
  }
  to.push_back(routees[i]);
  return absl::OkStatus();
}

absl::Status AddChosen(const RoutingChoice& choice, absl::Span<const ActorRef> routees, RefList& to) {
  switch (choice.kind()) {
    case RoutingChoice::Kind::kOne:
      return AddRouteeAt(routees, choice.one(), to);
    case RoutingChoice::Kind::kSeveral:
      for (const size_t i : choice.several()) {
        if (absl::Status added = AddRouteeAt(routees, i, to); !added.ok()) return added;
      }
      return absl::OkStatus();
    case RoutingChoice::Kind::kAll:
      to.assign(routees.begin(), routees.end());
      return absl::OkStatus();
    case RoutingChoice::Kind::kNobody:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Calls code of the program: the key of the message, and the logic.
absl::Status Choose(const RoutingLogic& logic, RoutingCall::Fields fields, RoutingKeyResult key, RefList& to) {
  try {
    if (!key.is_there) key = FindRoutingKey(nullptr, fields.message);
    if (key.is_there) fields.key = key.key;
    return AddChosen(logic.Choose(RoutingCall(fields)), fields.routees, to);
  } catch (...) {
    return ErrorOfThrown();
  }
}

}  // namespace

absl::Status RouteByLogic(const RoutingTable& table, ActorRef router, uint64_t ticket, RoutingKeyResult key,
                          EnvelopePtr message) {
  RefList to;
  absl::Status chosen;
  {
    const RoutesPtr routes = AcquireRoutes(table, router);
    if (routes == nullptr) {
      return LoseRouted(router, std::move(message), DeadLetterReason::kStopped);
    }
    // The routees may have left since the caller looked.
    if (!routes->routees().empty()) {
      chosen = Choose(
          routes->logic(),
          {.message = *message, .routees = routes->routees(), .ticket = ticket, .random = table.RandomOf(ticket)}, key,
          to);
    }
    // The routes end here: a send may wait for room in a mailbox.
  }
  if (!chosen.ok()) return FailRouting(router, std::move(message), "the routing logic", chosen);
  return SendToAll(router, to, std::move(message));
}

}  // namespace fraktor::inline v0::actor_internal
