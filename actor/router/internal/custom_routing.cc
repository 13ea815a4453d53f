#include "fraktor/actor/router/internal/custom_routing.h"

#include <bit>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/router/internal/broadcasting.h"
#include "fraktor/actor/router/internal/custom_routes.h"
#include "fraktor/actor/router/internal/routee_sending.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/router/routing_logic.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/utils/strings/string_view.h"

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

std::string PathOf(ActorRef router) {
  ActorWorker* const worker = ActorWorker::Current();
  return worker != nullptr ? worker->lifecycle.PathOf(router) : SystemCore::PathOf(router);
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
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("it threw an exception: ", error.what()));
  } catch (...) {
    return absl::InternalError("it threw a value that is no std::exception");
  }
}

[[gnu::cold]] void Fail(const RoutingTable& table, ActorRef router, EnvelopePtr message, const absl::Status& error) {
  const uint64_t failures = table.CountLogicFailure();
  if (std::has_single_bit(failures)) {
    SendIntercepted(router, MakeEnvelope<RoutingLogicFailed>(CacheOfThisThread(), ActorRef(), failures,
                                                             std::string(ToStd(error.message()))));
  }
  const ActorRef sender = message->sender();
  if (sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0 && sender.IsCurrent()) {
    const absl::Status reason(error.code(), absl::StrCat("the routing logic of ", PathOf(router), " failed for ",
                                                         ToAbsl(message->type()->name()), ": ", error.message()));
    AnswerPromise(sender, MakeEnvelope<ErrorReply>(CacheOfThisThread(), ActorRef(), reason).release());
  }
  LoseRouted(router, std::move(message), DeadLetterReason::kNoRecipient);
}

}  // namespace

absl::Status RouteByLogic(const RoutingTable& table, ActorRef router, uint64_t ticket, RoutingKeyResult key,
                          EnvelopePtr message) {
  RefList to;
  absl::Status chosen;
  {
    const RoutesPtr routes = AcquireRoutes(table, router);
    if (routes == nullptr) {
      LoseRouted(router, std::move(message), DeadLetterReason::kStopped);
      return absl::OkStatus();
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
  if (!chosen.ok()) {
    Fail(table, router, std::move(message), chosen);
    return absl::OkStatus();
  }
  return SendToAll(router, to, std::move(message));
}

}  // namespace fraktor::inline v0::actor_internal
