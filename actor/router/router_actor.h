// The actor behind a router's reference: it owns, watches and resizes what its senders route to.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_ACTOR_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_ACTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/resizer.h"
#include "fraktor/actor/router/router_strategy.h"
#include "fraktor/actor/router/routing_table.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"

namespace fraktor::inline v0 {

// What pools and groups have in common.
struct RouterSetup {
  RouterStrategy strategy = RouterStrategy::RoundRobin();
  // Of a pool; null for a group.
  const ActorProps* routee = nullptr;
  int size = 0;
  std::vector<ActorRef> routees = {};
  std::optional<PressureResizerOptions> resizer = std::nullopt;
  std::optional<ExploringResizerOptions> exploring_resizer = std::nullopt;
  SupervisorStrategyOptions supervision = {};
};

class RouterProps final : public ActorProps {
 public:
  RouterProps(RouterSetup setup, const PropsOptions& options);
  ~RouterProps() override;

  void PrepareRouter(ActorTree& tree, ActorSlot& slot) const override;

  const RouterSetup& setup() const { return setup_; }
  const SupervisorStrategy& supervision() const { return supervision_; }
  bool has_resizer() const { return setup_.resizer.has_value() || setup_.exploring_resizer.has_value(); }
  // Within the bounds of the resizer, and what a pool may have.
  int64_t ClampSize(int64_t size) const;
  RoutingPlan Plan() const;

 private:
  ActorInstance* Construct(void* memory) const override;

  const RouterSetup setup_;
  const SupervisorStrategy supervision_;
};

class RouterActor final : public ActorInstance {
 public:
  explicit RouterActor(const RouterProps& props) : props_(props) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override;
  absl::Status PreStart(ActorContext& context) override;
  // Its routees live on, and are restarted with it.
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override;
  const SupervisorStrategy& supervision() const override { return props_.supervision(); }

  // What the spawner could not do.
  void SetStartError(absl::Status error) { start_error_ = std::move(error); }

 private:
  static RoutingTable& TableOf(ActorContext& context) { return RoutingTable::Bind(context.slot()); }
  // The table has changed: publishes it when the messages that are in the mailbox now are handled.
  // Many changes in a row so cost one copy of the table, not one for each.
  void PublishLater(ActorContext& context);
  // Publishes what has changed. Call it before anything that reads the table.
  void PublishChanges(ActorContext& context);
  void Publish(ActorContext& context) const;
  absl::Status Add(ActorContext& context, ActorRef routee);
  void Remove(ActorContext& context, ActorRef routee);
  void Retire(ActorContext& context, ActorRef routee) const;
  void ChangeSize(ActorContext& context, int64_t change);
  void Resize(ActorContext& context);
  void EndIfEmpty(ActorContext& context) const;
  void RouteInMyTurn(ActorContext& context, ActorRef sender, EnvelopePtr message) const;
  int64_t ChangeWanted(ActorContext& context, const std::vector<ActorRef>& routees);

  const RouterProps& props_;
  absl::Status start_error_;
  // Those that are in the table and stay there, and those that leave it with the next publication.
  absl::flat_hash_set<ActorRef> members_;
  absl::flat_hash_set<ActorRef> leaving_;
  bool has_changes_ = false;
  // Made when it is needed.
  std::unique_ptr<ExploringResizer> exploring_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTER_ACTOR_H_
