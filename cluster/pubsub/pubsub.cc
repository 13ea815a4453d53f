#include "fraktor/cluster/pubsub/pubsub.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/system/internal/remote_provider.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::RemoteProvider;

struct PubSubExtension {
  explicit PubSubExtension(ActorSystem&) {}
  std::unique_ptr<PubSub> pubsub;
  // The same. Released when it is complete; acquired by Of, also in grains that run before it is started.
  std::atomic<PubSub*> started{nullptr};
};

absl::StatusOr<PubSub*> PubSub::Start(ActorSystem& system, const PubSubOptions& options) {
  Cluster* const cluster = Cluster::Of(system);
  if (cluster == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("system \"", ToAbsl(system.name()), "\" is no node of a cluster; call Cluster::Start before"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckPositive(
      {{"PubSubOptions::join_period", options.join_period}, {"PubSubOptions::rejoin_period", options.rejoin_period}}));
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"PubSubOptions::max_topics", options.max_topics},
                                       {"PubSubOptions::max_subscribers", options.max_subscribers},
                                       {"PubSubOptions::max_publication_bytes", options.max_publication_bytes}}));
  if (const RemoteProvider* const remote = system.remote_provider()) {
    if (CodecsOf(system).Find<JoinTopic>() == nullptr) {
      return absl::InvalidArgumentError(
          "the system cannot tell other nodes of topics: add PubSubCodecs() to ActorSystemOptions::codecs");
    }
    const size_t frame = std::min(remote->MaxMessageBytes("/system/grains"), remote->MaxMessageBytes("/system/pubsub"));
    const size_t most = frame > kPubSubFrameRoom ? frame - kPubSubFrameRoom : 0;
    if (options.max_publication_bytes > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "PubSubOptions::max_publication_bytes is ", options.max_publication_bytes,
          "; a message to another node takes ", frame,
          " bytes (WireLimits::max_frame_bytes), so that a publication has at most ", most,
          "; lower it, raise that one, or use the large lane: RemoteOptions::large_destinations = {\"/system/grains\", "
          "\"/system/pubsub\"}"));
    }
  }
  auto& extension = system.Extension<PubSubExtension>();
  if (extension.pubsub != nullptr) return absl::FailedPreconditionError("the system has its PubSub already");
  std::unique_ptr<PubSub> pubsub(new PubSub(system, *cluster, options));
  // It does as much as is published.
  const PropsPtr props = MakeTypedProps<TopicDelivery>({.dispatcher = DispatcherChoice::kDefault}, cluster, options,
                                                       TopicDelivery::MakeEstate());
  FRAKTOR_ASSIGN_OR_RETURN(pubsub->delivery_, system.TrySpawnSystemActor(*props, "pubsub"));
  extension.pubsub = std::move(pubsub);
  extension.started.store(extension.pubsub.get(), std::memory_order_release);
  return extension.pubsub.get();
}

PubSub* PubSub::Of(ActorSystem& system) {
  return system.Extension<PubSubExtension>().started.load(std::memory_order_acquire);
}

absl::StatusOr<std::string> PubSub::PathOf(ActorRef actor) const {
  if (actor.IsNoOne() || actor.IsRemote() || actor.IsPromise()) {
    return absl::InvalidArgumentError("only an actor of this system can be put where others reach it by its path");
  }
  absl::StatusOr<ActorPath> path = ActorPathParser::Parse(system_.PathOf(actor));
  if (!path.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "only an actor that lives can be put where others reach it by its path: ", path.status().message()));
  }
  return std::string(path->TextWithoutAddress());
}

absl::Status PubSub::Check(std::string_view topic, const Publication& publication) const {
  FRAKTOR_RETURN_IF_ERROR(GrainKey(TopicGrain::kGrainKind, topic).Check());
  if (publication.bytes.size() <= options_.max_publication_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a \"", publication.manifest, "\" for topic \"", ToAbsl(topic), "\" has ", publication.bytes.size(),
                   " bytes; ", options_.max_publication_bytes, " are allowed (PubSubOptions::max_publication_bytes)"));
}

}  // namespace fraktor::inline v0
