// Operations of an actor that only read: paths, relatives, metrics.
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/testkit/storm/citizens.h"
#include "fraktor/actor/testkit/storm/person.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::storm {
namespace {

absl::Status LookAtOwnPath(Deed& deed) {
  if (deed.context.Path().empty()) {
    deed.world().ledger().Violate("an actor has a path", "the path of an actor in its turn is empty");
  }
  return absl::OkStatus();
}

absl::Status LookAtPath(Deed& deed) {
  static_cast<void>(deed.context.PathOf(deed.Anybody().ref));
  return absl::OkStatus();
}

absl::Status LookAtRelatives(Deed& deed) {
  const std::vector<ActorRef> children = deed.context.Children();
  for (const ActorRef child : children) static_cast<void>(deed.context.PathOf(child));
  static_cast<void>(deed.context.PathOf(deed.context.parent()));
  static_cast<void>(deed.context.Child(RandomName(deed.random)));
  return absl::OkStatus();
}

absl::Status FindOneself(Deed& deed) {
  const std::string path = deed.context.Path();
  const absl::StatusOr<ActorRef> found = deed.context.system().Resolve(path);
  if (!found.ok() || *found != deed.context.self()) {
    deed.world().ledger().Violate("a path leads to its actor", path + ": " + found.status().ToString());
  }
  return absl::OkStatus();
}

absl::Status ObserveSomebody(Deed& deed) {
  deed.context.system().Observe(deed.Anybody().ref).IgnoreError();
  return absl::OkStatus();
}

absl::Status StopObservingSomebody(Deed& deed) {
  deed.context.system().StopObserving(deed.Anybody().ref);
  return absl::OkStatus();
}

}  // namespace

std::vector<ActorOperation> LookingOperations() {
  return {
      {"look at one's own path", 1, &LookAtOwnPath}, {"look at a path", 2, &LookAtPath},
      {"look at relatives", 1, &LookAtRelatives},    {"find oneself", 1, &FindOneself},
      {"observe somebody", 1, &ObserveSomebody},     {"stop observing", 1, &StopObservingSomebody},
  };
}

}  // namespace fraktor::storm
