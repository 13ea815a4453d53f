#include "fraktor/actor/router/router.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/router/internal/router_actor.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

using actor_internal::RouterProps;

namespace {

SupervisorStrategyOptions Escalating() {
  return {.decider = [](const Failure&) { return Escalate(); }};
}

absl::Status CheckRing(const RouterStrategy& strategy, size_t routees) {
  if (strategy.kind() != RoutingKind::kConsistentHashing) return absl::OkStatus();
  if (routees * static_cast<size_t>(strategy.virtual_nodes()) <= kMaxRingPoints) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("ConsistentHashingOptions.virtual_nodes is ", strategy.virtual_nodes(),
                                                 " for ", routees, " routees; their product is at most ",
                                                 kMaxRingPoints));
}

}  // namespace

absl::Status PoolOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(strategy.Validate());
  if (size < 1 || static_cast<size_t>(size) > kMaxRoutees) {
    return absl::InvalidArgumentError(
        absl::StrCat("PoolOptions.size is ", size, "; it must be from 1 to ", kMaxRoutees));
  }
  if (resizer.has_value() && exploring_resizer.has_value()) {
    return absl::InvalidArgumentError(
        "PoolOptions has both a resizer and an exploring_resizer; they would work against each other: choose one");
  }
  size_t most = static_cast<size_t>(size);
  if (resizer.has_value()) {
    FRAKTOR_RETURN_IF_ERROR(resizer->Validate());
    most = static_cast<size_t>(resizer->upper_bound);
  }
  if (exploring_resizer.has_value()) {
    FRAKTOR_RETURN_IF_ERROR(exploring_resizer->Validate());
    most = static_cast<size_t>(exploring_resizer->upper_bound);
  }
  if (supervision.has_value()) FRAKTOR_RETURN_IF_ERROR(supervision->Validate());
  return CheckRing(strategy, most);
}

absl::Status GroupOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(strategy.Validate());
  if (routees.size() > kMaxRoutees) {
    return absl::InvalidArgumentError(
        absl::StrCat("GroupOptions.routees are ", routees.size(), "; they are at most ", kMaxRoutees));
  }
  for (const ActorRef routee : routees) {
    if (routee.IsNoOne()) {
      return absl::InvalidArgumentError(
          "GroupOptions.routees contains a reference to no one, such as a default ActorRef; remove it");
    }
  }
  return CheckRing(strategy, routees.size());
}

absl::StatusOr<PropsPtr> MakePool(const PoolOptions& options, const ActorProps& routee) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  if (options.resizer.has_value() && options.resizer->pressure_threshold > 1 && !routee.options().mailbox.bounded()) {
    return absl::InvalidArgumentError(
        absl::StrCat("PressureResizerOptions.pressure_threshold is ", options.resizer->pressure_threshold,
                     ", but the routees' mailboxes are unbounded, and how many messages wait there is not known; give "
                     "them a capacity, or use 0 or 1"));
  }
  return PropsPtr(new RouterProps({.strategy = options.strategy,
                                   .routee = &routee,
                                   .size = options.size,
                                   .resizer = options.resizer,
                                   .exploring_resizer = options.exploring_resizer,
                                   .supervision = options.supervision.value_or(Escalating())},
                                  {.dispatcher = options.dispatcher}));
}

absl::StatusOr<PropsPtr> MakeGroup(const GroupOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  return PropsPtr(
      new RouterProps({.strategy = options.strategy, .routees = options.routees}, {.dispatcher = options.dispatcher}));
}

}  // namespace fraktor::inline v0
