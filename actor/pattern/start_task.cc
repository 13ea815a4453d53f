#include "fraktor/actor/pattern/start_task.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/tree/internal/actor_tree.h"

namespace fraktor::inline v0::start_task_internal {

using actor_internal::ActorSlot;
using actor_internal::ActorTree;
using actor_internal::TaskForActor;

namespace {

class TaskRunner final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override { return context.Unhandled(message); }
};

}  // namespace

absl::StatusOr<ActorRef> SpawnRunner(ActorSystem& system) {
  // The task is code of the caller, and must not occupy the workers of the system's own actors.
  static const PropsPtr& props = *new PropsPtr(MakeProps<TaskRunner>({.dispatcher = DispatcherChoice::kDefault}));
  absl::StatusOr<ActorRef> runner = system.TrySpawnSystemActor(*props);
  if (runner.ok()) return runner;
  return absl::UnavailableError(absl::StrCat("the actor system runs no more tasks: ", runner.status().message()));
}

void RunIn(ActorRef runner, Task<void> task) {
  TellSystem(runner, MakeEnvelope<TaskForActor>(ActorRef(), std::move(task)));
}

void EndRunner() { ActorContext::Of(*ActorContext::worker().turn_state.running()).Stop(); }

Waker StopWaker(ActorRef runner) {
  return {.function = [](void* slot, uint64_t word,
                         uint64_t) noexcept { ActorTree::Stop(ActorRef(static_cast<ActorSlot*>(slot), word)); },
          .target = runner.slot(),
          .first = runner.word()};
}

}  // namespace fraktor::inline v0::start_task_internal
