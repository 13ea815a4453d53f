#include "fraktor/actor/tree/internal/tree_supervision.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/end_cause.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/cell/internal/cell_state.h"
#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/cell/internal/tree_phase.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/tree/internal/instance_making.h"
#include "fraktor/actor/tree/internal/not_created.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// The restarts of fewer children than this are not worth a cleanup.
constexpr size_t kMinForgotten = 16;

// Set while an actor has reported a failure to its parent and has no verdict yet. Failures that its
// children escalate meanwhile need no report of their own: the verdict covers them. Otherwise n
// children that fail at once would count as n failures of their parent, and each would suspend all
// n children.
struct OpenFailure final : CellAttachment {
  bool awaits_verdict = false;
};

// A resume may end another suspension than that for the failure. Then the next failure of a child
// is reported on its own, and has a verdict of its own.
void EndOpenFailure(ActorSlot& slot) {
  if (OpenFailure* const open = FindAttachment<OpenFailure>(ActorContext::Of(slot))) open->awaits_verdict = false;
}

}  // namespace

FailedMessageScope::FailedMessageScope(TurnState& turn_state, CellState* state)
    : turn_state_(turn_state),
      state_(state != nullptr && state->failed_on != nullptr ? state : nullptr),
      outer_(turn_state.current) {
  if (state_ != nullptr) turn_state.current = state_->failed_on.get();
}

FailedMessageScope::~FailedMessageScope() {
  if (state_ != nullptr && turn_state_.current == nullptr) {
    static_cast<void>(state_->failed_on.release());
    state_->failed_with = absl::OkStatus();
  }
  turn_state_.current = outer_;
}

absl::Status TreeSupervision::NotStarted(const ActorSlot& slot, const absl::Status& why) const {
  return MakeError(why.code(), ActorErrorKind::kInitialization,
                   absl::StrCat(paths_.PathOf(slot.ref()), " could not be started: ", why.message()));
}

absl::Status TreeSupervision::Start(ActorSlot& slot) const {
  CellState* const state = CellState::Find(slot);
  ActorContext& context = ActorContext::Of(slot);
  const bool is_restarted = state != nullptr && std::exchange(state->is_restarted, false);
  const absl::Status before = state == nullptr ? absl::OkStatus() : std::exchange(state->failure, absl::OkStatus());
  absl::Status started = before;
  if (is_restarted) {
    started = MessageInvoker::Call("PostRestart", [&] { return slot.instance->PostRestart(context, before); });
  } else if (slot.instance != &NotCreated()) {
    started = MessageInvoker::Call("PreStart", [&] { return slot.instance->PreStart(context); });
  }
  return started.ok() ? started : NotStarted(slot, started);
}

void TreeSupervision::OnFailure(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) const {
  CellState& state = CellState::Of(turn.slot);
  const bool broke_pact = std::exchange(state.broke_death_pact, false);
  if (broke_pact && cause == FailureCause::kReturned && message != nullptr && message->Is<Terminated>()) {
    cause = FailureCause::kDeathPact;
  }
  // PreRestart and PostStop may still reply to the message.
  if (message != nullptr && message == turn.state().current && !message->is_system()) {
    EndFailedMessage(turn.slot);
    state.failed_on.reset(std::exchange(turn.state().current, nullptr));
    state.failed_with = error;
  }
  // An actor whose start failed has no instance: a restart makes the next one. Coroutine frames are
  // destroyed before the instance that they point to.
  if (message == nullptr && cause == FailureCause::kInitialization) {
    EndHandlers(turn, error);
    UnmakeInstance(turn.worker.cache(), turn.slot);
  }
  Report(turn, {.error = error, .cause = cause}, nullptr);
}

void TreeSupervision::Report(Turn turn, ChildFailed failed, const ActorSlot* culprit) const {
  ActorSlot& slot = turn.slot;
  TellChildren<SuspendActor>(slot, culprit);
  ActorSlot* const parent = slot.kin.parent;
  if (parent == nullptr) {
    // A root has no parent that could decide.
    log_.Log(LogLevel::kError, slot.ref(), ToStd(absl::StrCat("stopped after: ", failed.error.message())));
    turn.state().Set(Gate::kStopping);
    return;
  }
  AttachmentOf<OpenFailure>(ActorContext::Of(slot)).awaits_verdict = true;
  TellSystem(parent->ref(), MakeEnvelope<ChildFailed>(turn.worker.cache(), slot.ref(), std::move(failed)));
}

void TreeSupervision::OnChildFailed(Turn turn, ActorRef child, const ChildFailed& failed) const {
  // A stopping parent stops its children: that is the verdict.
  if (PhaseOf(turn.slot) == kStoppingChildren || PhaseOf(turn.slot) == kEnding || turn.state().Has(Gate::kStopping))
    return;
  // Another actor has already stopped the child. There is nothing to decide.
  if (!child.IsCurrent()) return;
  if (PhaseOf(turn.slot) == kRestarting) {
    // The restart of the parent is the verdict: it stops the child or restarts it (FinishRestart).
    // The old instance has run its last hook and does not decide. The child has been suspended once
    // for the failure of its parent and once for its own failure, which ends here.
    TellSystem(child, MakeEnvelope<ResumeActor>(turn.worker.cache(), ActorRef()));
    return;
  }
  if (IsLeaving(turn.slot, child)) {
    // The verdict on a sibling stops the child. Its askers still learn why it did not start.
    if (failed.cause == FailureCause::kInitialization) RememberEndCause(child, failed.error);
    return;
  }
  if (const CellState* const state = CellState::Find(turn.slot)) {
    const auto found = state->restarts.find(child);
    if (found != state->restarts.end() && found->second.is_due) {
      // The child failed before the restart of all children reached it. It has been suspended once
      // for that restart and once for its own failure, which ends here.
      log_.Log(LogLevel::kWarning, child,
               ToStd(absl::StrCat("restarts with its siblings after: ", failed.error.message())));
      TellSystem(child, MakeEnvelope<ResumeActor>(turn.worker.cache(), ActorRef()));
      return;
    }
  }
  DecideOnChild(turn, child, failed);
}

bool TreeSupervision::IsLeaving(ActorSlot& parent, ActorRef child) {
  const KinLock lock(parent);
  return child.IsCurrent() && child.slot()->leaving;
}

void TreeSupervision::DecideOnChild(Turn turn, ActorRef child, const ChildFailed& failed) const {
  ActorSlot& parent = turn.slot;
  const absl::Status& error = failed.error;
  ActorInstance& supervisor = *parent.instance;
  SupervisionDirective directive = SupervisionDirective::kStop;
  int64_t restarts = 0;
  if (const CellState* const state = CellState::Find(parent)) {
    const auto found = state->restarts.find(child);
    if (found != state->restarts.end()) restarts = found->second.stats.restarts;
  }
  const SupervisorStrategy* strategy = nullptr;
  FailureCause cause_of_decider = FailureCause::kReturned;
  const absl::Status decided = MessageInvoker::Call(
      "a decider",
      [&] {
        directive = supervisor.OnChildFailure(
            ActorContext::Of(parent),
            Failure{.child = child, .error = error, .restarts = restarts, .cause = failed.cause});
        strategy = &supervisor.supervision();
        return absl::OkStatus();
      },
      &cause_of_decider);
  // The child stays suspended until its supervisor gets a verdict.
  const auto fail_parent = [&](ChildFailed failure) {
    if (AttachmentOf<OpenFailure>(ActorContext::Of(parent)).awaits_verdict) {
      // The child is suspended once for the open failure of its parent, until the verdict on that,
      // and once for its own failure, which ends here.
      log_.Log(LogLevel::kWarning, child,
               ToStd(absl::StrCat("shares the verdict on its parent after: ", failure.error.message())));
      TellSystem(child, MakeEnvelope<ResumeActor>(turn.worker.cache(), ActorRef()));
      return;
    }
    // The failure of the child has suspended it once. The verdict on the parent ends that.
    ++turn.state().failures;
    Report(turn, std::move(failure), child.slot());
  };
  if (!decided.ok()) return fail_parent({.error = decided, .cause = cause_of_decider});
  switch (directive) {
    case SupervisionDirective::kResume:
      log_.Log(LogLevel::kWarning, child, ToStd(absl::StrCat("resumes after: ", error.message())));
      TellSystem(child, MakeEnvelope<ResumeActor>(turn.worker.cache(), ActorRef()));
      break;
    case SupervisionDirective::kRestart:
      RestartChildren(turn, child, error, *strategy);
      break;
    case SupervisionDirective::kStop:
      log_.Log(LogLevel::kError, child, ToStd(absl::StrCat("stopped after: ", error.message())));
      if (failed.cause == FailureCause::kInitialization) RememberEndCause(child, error);
      if (strategy->is_all_for_one()) {
        StopChildren(parent);
      } else {
        StopChild(parent, child);
      }
      break;
    case SupervisionDirective::kEscalate:
      fail_parent(Escalated(child, failed));
      break;
  }
}

ChildFailed TreeSupervision::Escalated(ActorRef child, const ChildFailed& failed) const {
  if (failed.is_escalated) return failed;
  const std::string path = paths_.PathOf(child);
  const absl::Status& error = failed.error;
  // Some errors already begin with the path.
  return {
      .error = absl::StartsWith(error.message(), path) ? error : Annotate(error, ToStd(absl::StrCat(path, " failed"))),
      .cause = failed.cause,
      .is_escalated = true};
}

void TreeSupervision::RestartChildren(Turn turn, ActorRef failed, const absl::Status& error,
                                      const SupervisorStrategy& strategy) const {
  ActorSlot& parent = turn.slot;
  const Instant now = clock_.Now();
  const bool is_of_all = strategy.is_all_for_one();
  const std::vector<ActorRef> children = is_of_all ? FindChildren(parent.ref()) : std::vector<ActorRef>{failed};
  ForgetRestarts(parent);
  bool allowed = true;
  int64_t restarts = 0;
  std::vector<ActorRef> restarting;
  for (const ActorRef child : children) {
    CellState::Restarts& known = CellState::Of(parent).restarts[child];
    if (known.is_due) continue;
    restarting.push_back(child);
    known.is_due = is_of_all;
    allowed = strategy.AllowsRestart(known.stats, now) && allowed;
    if (child == failed) restarts = known.stats.restarts;
  }
  if (!allowed) {
    log_.Log(LogLevel::kError, failed, ToStd(absl::StrCat("stopped after too many restarts: ", error.message())));
    for (const ActorRef child : children) StopChild(parent, child);
    return;
  }
  const absl::Duration delay = strategy.options().backoff.After(restarts);
  log_.Log(LogLevel::kWarning, failed, ToStd(absl::StrCat("restarts after: ", error.message())));
  for (const ActorRef child : restarting) {
    // The siblings have not failed. They are suspended until their restart.
    if (child != failed) TellSystem(child, MakeEnvelope<SuspendActor>(turn.worker.cache(), ActorRef()));
    SendRestart(turn.worker, child, {.reason = error, .is_of_all = is_of_all}, delay);
  }
}

void TreeSupervision::SendRestart(ActorWorker& worker, ActorRef child, RestartActor restart, absl::Duration delay) {
  if (delay > absl::ZeroDuration() && worker.toolbox != nullptr) {
    const auto later = [child, restart] { TellSystem(child, MakeEnvelope<RestartActor>(ActorRef(), restart)); };
    if (worker.toolbox->ScheduleAfter(delay, later).ok()) {
      TellSystem(child, MakeEnvelope<RestartDeferred>(worker.cache(), ActorRef()));
      return;
    }
  }
  TellSystem(child, MakeEnvelope<RestartActor>(worker.cache(), ActorRef(), std::move(restart)));
}

void TreeSupervision::OnRestart(Turn turn, const RestartActor& restart) const {
  // Before anything that the new instance may do.
  if (restart.is_of_all && turn.slot.kin.parent != nullptr) {
    TellSystem(turn.slot.kin.parent->ref(), MakeEnvelope<RestartBegun>(turn.worker.cache(), turn.state().self()));
  }
  BeginRestart(turn, restart.reason);
}

void TreeSupervision::OnRestartBegun(const ActorSlot& parent, ActorRef child) {
  CellState* const state = CellState::Find(parent);
  if (state == nullptr) return;
  const auto found = state->restarts.find(child);
  if (found != state->restarts.end()) found->second.is_due = false;
}

// Children end without a turn of their parent, so it removes their counts here, now and then.
void TreeSupervision::ForgetRestarts(ActorSlot& parent) {
  auto& restarts = CellState::Of(parent).restarts;
  if (restarts.size() < kMinForgotten) return;
  {
    // Other threads may spawn children of the parent.
    const KinLock lock(parent);
    if (restarts.size() < 2 * size_t{CountChildren(parent)}) return;
  }
  absl::erase_if(restarts, [](const auto& entry) { return !entry.first.IsCurrent(); });
}

void TreeSupervision::FailAskOf(const ActorSlot& slot, const CellState& state) const {
  if (state.failed_on == nullptr) return;
  FailAsk(*state.failed_on, [&] {
    return Annotate(state.failed_with, ToStd(absl::StrCat(paths_.PathOf(slot.ref()), " failed on ",
                                                          ToAbsl(state.failed_on->type()->name()))));
  });
}

void TreeSupervision::EndFailedMessage(ActorSlot& slot) const {
  CellState* const state = CellState::Find(slot);
  if (state == nullptr || state->failed_on == nullptr) return;
  FailAskOf(slot, *state);
  state->failed_on.reset();
  state->failed_with = absl::OkStatus();
}

void TreeSupervision::OnRestartDeferred(const ActorSlot& slot) const {
  if (const CellState* const state = CellState::Find(slot)) FailAskOf(slot, *state);
}

void TreeSupervision::OnChildrenEnded(Turn turn) const {
  // A stopping actor looks for its children in StopChildrenFirst.
  if (PhaseOf(turn.slot) != kRestarting) return;
  {
    const KinLock lock(turn.slot);
    if (turn.slot.leaving_children != 0) return;
  }
  FinishRestart(turn);
}

void TreeSupervision::Suspend(Turn turn) const {
  ++turn.state().failures;
  TellChildren<SuspendActor>(turn.slot);
}

void TreeSupervision::Resume(Turn turn) const {
  EndOpenFailure(turn.slot);
  if (turn.state().failures == 1 && turn.slot.instance == &NotCreated() && !turn.state().Has(Gate::kStarting)) {
    // An actor that has never started cannot resume. It starts again.
    BeginRestart(turn, absl::OkStatus());
    return;
  }
  if (turn.state().failures > 0) --turn.state().failures;
  TellChildren<ResumeActor>(turn.slot);
  if (turn.state().failures == 0) EndFailedMessage(turn.slot);
}

void TreeSupervision::EndHandlers(Turn turn, const absl::Status& reason) const {
  if (turn.slot.extension == nullptr) return;
  turn.slot.extension->handlers.Clear([&](const Envelope& message) {
    return absl::AbortedError(absl::StrCat(paths_.PathOf(turn.state().self()),
                                           " has failed and cancelled its waiting handler of ",
                                           ToAbsl(message.type()->name()), ": ", reason.message()));
  });
  turn.state().Clear(Gate::kAwaiting);
}

void TreeSupervision::BeginRestart(Turn turn, const absl::Status& reason) const {
  ActorSlot& slot = turn.slot;
  TurnState& turn_state = turn.state();
  if (turn_state.Has(Gate::kStopping)) return;
  EndOpenFailure(slot);
  if (PhaseOf(slot) == kRestarting) {
    // This is the verdict on another failure. One restart is enough for both, and it has begun. The
    // children that survive have been suspended for each failure.
    if (turn_state.failures > 0) --turn_state.failures;
    TellChildren<ResumeActor>(slot);
    return;
  }
  SetPhase(slot, kRestarting);
  CellState& state = CellState::Of(slot);
  state.failure = reason;
  EndHandlers(turn, reason);
  if (slot.instance == &NotCreated()) {
    // The failed start may have spawned children. The next start spawns them again.
    StopChildren(slot);
  } else {
    for (size_t i = 0; i < state.attachments.size(); ++i) {
      state.attachments[i].attachment->BeforeRestart(ActorContext::Of(slot));
    }
    const absl::Status prepared = MessageInvoker::Call("PreRestart", [&] {
      const FailedMessageScope scope(turn_state, &state);
      return slot.instance->PreRestart(ActorContext::Of(slot), reason, state.failed_on.get());
    });
    if (!prepared.ok()) log_.Log(LogLevel::kError, slot.ref(), ToStd(prepared.message()));
  }
  for (size_t i = 0; i < state.attachments.size(); ++i) {
    state.attachments[i].attachment->OnRestart(ActorContext::Of(slot));
  }
  {
    const KinLock lock(slot);
    // Children that are ending at this moment keep their names until they are unlinked.
    for (uint32_t at = NewestChild(slot); at != ActorKin::kNone;) {
      ActorSlot& child = ChildAt(at);
      at = child.kin.next_sibling;
      if (child.generation() % 2 == 1 || std::exchange(child.leaving, true)) continue;
      ++slot.leaving_children;
    }
    if (slot.leaving_children != 0) return;
  }
  FinishRestart(turn);
}

void TreeSupervision::FinishRestart(Turn turn) const {
  ActorSlot& slot = turn.slot;
  TurnState& turn_state = turn.state();
  SetPhase(slot, kLiving);
  CellState& state = CellState::Of(slot);
  EndFailedMessage(slot);
  const bool was_created = slot.instance != &NotCreated();
  // This failure is over. The actor stays suspended if ancestors are.
  if (turn_state.failures > 0) --turn_state.failures;
  // Tasks that the last hooks have begun may point to the old instance.
  EndHandlers(turn, state.failure);
  // The old instance frees its resources before the new one is made.
  UnmakeInstance(turn.worker.cache(), slot);
  MadeInstance made = MakeInstance(turn.worker.cache(), *slot.kin.props);
  slot.instance = made.instance;
  // Children that survive are restarted too. They are suspended since their parent failed.
  for (const ActorRef child : FindChildren(slot.ref())) {
    TellSystem(child, MakeEnvelope<RestartActor>(turn.worker.cache(), ActorRef(), state.failure));
  }
  if (!made.error.ok()) {
    MessageInvoker::Fail(turn, NotStarted(slot, made.error), FailureCause::kInitialization, nullptr);
    return;
  }
  state.is_restarted = was_created;
  turn_state.Set(Gate::kStarting);
}

}  // namespace fraktor::inline v0::actor_internal
