// The guardians: the root, /user, /system and /temp, of which all other actors are descendants.
// ActorSystem spawns them.
//
// Called by: ActorSystem. Thread: the turns of the guardians.
#ifndef FRAKTOR_ACTOR_SYSTEM_INTERNAL_GUARDIANS_H_
#define FRAKTOR_ACTOR_SYSTEM_INTERNAL_GUARDIANS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/table/indexed_set.h"

namespace fraktor::inline v0::actor_internal {

class RunningSystemState;

// To the root: the boot is over.
struct GuardiansReady {
  RunningSystemState* state;
};
// To /system: /user has ended.
struct EndSystemActors {};

class RootGuardian final : public ActorInstance {
 public:
  // Called in the turn of the root: /user or /system has failed, and ends.
  using OnGuardianFailed = std::function<void(ActorRef guardian, const absl::Status& error)>;

  explicit RootGuardian(OnGuardianFailed on_guardian_failed) : on_guardian_failed_(std::move(on_guardian_failed)) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override;
  const SupervisorStrategy& supervision() const override { return SupervisorStrategy::Stopping(); }
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override;

 private:
  const OnGuardianFailed on_guardian_failed_;
  RunningSystemState* state_ = nullptr;
};

class UserGuardian final : public ActorInstance {
 public:
  explicit UserGuardian(const SupervisorStrategy* strategy) : strategy_(*strategy) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override { return context.Unhandled(message); }
  const SupervisorStrategy& supervision() const override { return strategy_; }

 private:
  const SupervisorStrategy& strategy_;
};

class SystemGuardian final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override;

 private:
  void EndIfReady(ActorContext& context);

  // The actors that have registered, in that order. They get their hooks in the same order.
  IndexedSet<ActorRef> hooks_;
  bool is_ending_ = false;
};

// Asks, and runs tasks, on behalf of threads outside of actors.
class TempGuardian final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override { return context.Unhandled(message); }
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SYSTEM_INTERNAL_GUARDIANS_H_
