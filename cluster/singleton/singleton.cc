#include "fraktor/cluster/singleton/singleton.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
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
  FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"SingletonOptions::identify_period", options.identify_period},
                                         {"SingletonOptions::check_period", options.check_period}}));
  if (const GrainKind* const kind = cluster->FindKind(key.kind()); kind != nullptr && !kind->is_on_oldest) {
    return absl::InvalidArgumentError(
        absl::StrCat("kind \"", key.kind(),
                     "\" is no singleton on this node: put SingletonKindOf<A>() into ClusterOptions::kinds, not "
                     "GrainKindOf<A>()"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"SingletonOptions::max_buffered", options.max_buffered}}));
  // Users' messages go through it.
  const PropsPtr props = MakeProps<SingletonProxy>({.dispatcher = DispatcherChoice::kDefault}, cluster, key, options);
  absl::StatusOr<ActorRef> proxy = system.TrySpawnSystemActor(*props, absl::StrCat("singleton-", key.kind()));
  if (ErrorKindOf<ActorErrorKind>(proxy.status()) == ActorErrorKind::kNameTaken) {
    return MakeError(
        absl::StatusCode::kAlreadyExists, ActorErrorKind::kNameTaken,
        absl::StrCat("singleton \"", key.kind(),
                     "\" was started on this system before; keep the reference that you got, or call it by "
                     "Cluster::Grain<A>(kSingletonIdentity)"));
  }
  return proxy;
}

}  // namespace fraktor::inline v0
