#include "fraktor/cluster/singleton/singleton.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::StatusOr<ActorRef> StartSingletonProxy(ActorSystem& system, const GrainKey& key,
                                             const SingletonOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(key.Check());
  Cluster* const cluster = Cluster::Of(system);
  if (cluster == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("system \"", ToAbsl(system.name()), "\" is no node of a cluster; call Cluster::Start before"));
  }
  if (options.identify_period <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("SingletonOptions::identify_period is ",
                                                   absl::FormatDuration(options.identify_period),
                                                   "; it must be positive"));
  }
  // Users' messages go through it.
  const PropsPtr props = MakeProps<SingletonProxy>({.dispatcher = DispatcherChoice::kUsers}, cluster, key, options);
  return system.SpawnSystemActor(*props, absl::StrCat("singleton-", key.kind()));
}

}  // namespace fraktor::inline v0
