// The actor behind the reference of a router: it owns, watches and resizes the routees. It does not
// route; senders do.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTER_ACTOR_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTER_ACTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/actor/router/resizer.h"
#include "fraktor/actor/router/router_strategy.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"

namespace fraktor::inline v0::actor_internal {

// The common options of pools and groups.
struct RouterSetup {
  RouterStrategy strategy = RouterStrategy::RoundRobin();
  // The recipe of the routees of a pool; null for a group.
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

  absl::Status PrepareRouter(ActorTree& tree, ActorSlot& slot) const override;

  const RouterSetup& setup() const { return setup_; }
  const SupervisorStrategy& supervision() const { return supervision_; }
  bool has_resizer() const { return setup_.resizer.has_value() || setup_.exploring_resizer.has_value(); }
  // Clamps to the bounds of the resizer, or to the limits of a pool.
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
  // The routees live on, and are restarted with the router.
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override;
  const SupervisorStrategy& supervision() const override { return props_.supervision(); }

  // PrepareRouter could not spawn the routees: PreStart stops the router.
  void MustEnd() { must_end_ = true; }

 private:
  static RoutingTable& TableOf(ActorContext& context) { return RoutingTable::Bind(context.slot()); }
  // Publishes the changed table after the messages that are in the mailbox now. With that, a row of
  // changes costs one copy of the table, not one each.
  void PublishLater(ActorContext& context);
  // Publishes pending changes. Call it before anything that reads the table.
  void PublishChanges(ActorContext& context);
  void Publish(ActorContext& context) const;
  absl::Status Add(ActorContext& context, ActorRef routee);
  void Remove(ActorContext& context, ActorRef routee);
  void Retire(ActorContext& context, ActorRef routee) const;
  void ChangeSize(ActorContext& context, int64_t change);
  void Resize(ActorContext& context);
  void EndIfEmpty(ActorContext& context) const;
  void Warn(ActorContext& context, absl::string_view text) const;
  void RouteInMyTurn(ActorContext& context, ActorRef sender, EnvelopePtr message) const;
  int64_t ChangeWanted(ActorContext& context, const std::vector<ActorRef>& routees);

  const RouterProps& props_;
  bool must_end_ = false;
  // The routees in the table that stay there, and those that the next publication removes.
  absl::flat_hash_set<ActorRef> members_;
  absl::flat_hash_set<ActorRef> leaving_;
  bool has_changes_ = false;
  // Null until the first resize.
  std::unique_ptr<ExploringResizer> exploring_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTER_ACTOR_H_
