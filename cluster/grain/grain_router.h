// GrainRouter: the actor of a node through which grains are reached, and whose children they are: /system/grains.
//
// A call goes to the grain if it runs here, to the router of the member where it is otherwise; the sender stays who it
// was, so answers go back directly. While the place is being found out, calls for the grain wait, in order. What cannot
// be delivered is a dead letter, and its sender gets an ErrorReply.
//
// Messages of one caller to one grain arrive in the order in which they were sent, as long as the grain stays where it
// is: all go through the same routers.
//
// Thread safety: an actor.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_ROUTER_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_ROUTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor::inline v0 {

// A message for a grain.
struct GrainCall {
  GrainKey key;
  EnvelopePtr message;
  // The one who sends it on has read that the grain runs here.
  bool is_redirected = false;
  uint32_t hops = 0;
  // How long the asker waits; zero if it is no question.
  absl::Duration timeout = absl::ZeroDuration();
};

struct StartGrain {
  GrainKey key;
  uint64_t token;
  Promise<ActivationRecord> started;
};
struct StopGrain {
  GrainKey key;
  uint64_t token;
  Promise<void> stopped;
};

// What a router needs, and what outlives it.
struct GrainRouterParts {
  std::vector<GrainKind> kinds;
  std::shared_ptr<GrainPeers> peers;
  Executor* executor = nullptr;
  // Set before the first call.
  PlacementCoordinatorDriver* driver = nullptr;
  // Calls that wait for their grains; one more is refused.
  size_t max_waiting = 100'000;
  GrainCallFilters incoming_filters = {};
  GrainCallFilters outgoing_filters = {};
};

class GrainRouter final : public ActorInstance {
 public:
  explicit GrainRouter(std::shared_ptr<const GrainRouterParts> parts);

  absl::Status Receive(ActorContext& context, Envelope& message) override;
  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) override;

 private:
  static constexpr uint32_t kMaxHops = 6;

  struct Grain {
    ActorRef actor = {};
    uint64_t token = 0;
    const GrainCallFilters* filters = nullptr;  // null: none
    bool is_stopping = false;
    std::vector<Promise<void>> stopped = {};
    // One with a newer token that begins when this one has ended.
    std::vector<StartGrain> next = {};
  };
  struct GrainEnded {
    GrainKey key;
    uint64_t token;
  };
  struct GrainFound {
    GrainKey key;
    absl::Status status;
    PlacementResolutionPtr resolution;
  };
  struct Lookup {
    std::deque<GrainCall> calls;
    Future<void> watching;
  };

  void OnCall(ActorContext& context, GrainCall call);
  void OnFound(ActorContext& context, GrainFound& found);
  void OnStart(ActorContext& context, StartGrain start);
  void OnStop(ActorContext& context, StopGrain stop);
  void OnEnded(ActorContext& context, GrainEnded& ended);

  void Ask(ActorContext& context, const GrainKey& key, bool is_redirected);
  void Deliver(ActorContext& context, GrainCall call, const PlacementResolution& where);
  void Refuse(ActorContext& context, GrainCall call, const absl::Status& why);

  const std::shared_ptr<const GrainRouterParts> parts_;
  absl::flat_hash_map<std::string, const GrainKind*> kinds_;
  // Of the kinds that have any, those of the cluster included.
  std::map<std::string, GrainCallFilters, std::less<>> incoming_filters_;
  FilteredCalls filtered_;
  absl::flat_hash_map<GrainKey, Grain> grains_;
  absl::flat_hash_map<GrainKey, Lookup> lookups_;
  size_t waiting_ = 0;
};

// Has a router start and stop the actors of grains.
class GrainActivations final : public ActivationExecutor {
 public:
  explicit GrainActivations(ActorRef router) : router_(router) {}

  Future<ActivationRecord> EnsureActivation(GrainKey key, std::string owner, uint64_t token) override;
  Future<void> StopActivation(GrainKey key, uint64_t token) override;

 private:
  const ActorRef router_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_ROUTER_H_
