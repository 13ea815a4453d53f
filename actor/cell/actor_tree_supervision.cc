// How the actors of a tree fail: reports to parents, their verdicts, and restarts.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/end_cause.h"
#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/cell/actor_tree.h"
#include "fraktor/actor/cell/cell_state.h"
#include "fraktor/actor/cell/child_list.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/cell/not_created.h"
#include "fraktor/actor/cell/tree_phase.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

class NotCreatedInstance final : public ActorInstance {
  absl::Status Receive(ActorContext&, Envelope&) override {
    return absl::InternalError("an actor that could not be made gets no message");
  }
  // An ask of the instance before ends while the actor waits for the verdict on a failed start. That
  // is no further failure: the reply is unhandled, and an error has nobody to concern.
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    return answer.ok() ? context.Unhandled(**answer) : absl::OkStatus();
  }
};

// Lets a hook see the message that the actor failed on as the current one.
class FailedOn {
 public:
  FailedOn(Turn& turn, const CellState* state) : turn_(turn), outer_(turn.current) {
    if (state != nullptr && state->failed_on != nullptr) turn.current = state->failed_on.get();
  }
  ~FailedOn() { turn_.current = outer_; }
  FailedOn(const FailedOn&) = delete;
  FailedOn& operator=(const FailedOn&) = delete;

 private:
  Turn& turn_;
  Envelope* const outer_;
};

}  // namespace

ActorInstance& NotCreated() {
  static auto& instance = *new NotCreatedInstance();
  return instance;
}

void ActorTree::OnFailure(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, FailureCause cause,
                          Envelope* message) {
  CellState& state = CellState::Of(slot);
  const bool broke_pact = std::exchange(state.broke_death_pact, false);
  if (broke_pact && cause == FailureCause::kReturned && message != nullptr && message->Is<Terminated>()) {
    cause = FailureCause::kDeathPact;
  }
  // Whoever restarts or stops the actor may still want to answer it.
  if (message != nullptr && message == worker.turn.current && !message->is_system()) {
    EndFailedMessage(slot);
    state.failed_on.reset(std::exchange(worker.turn.current, nullptr));
    state.failed_with = error;
  }
  // An actor that could not start has no instance: the verdict makes another, or none. Frames go before what they
  // point to.
  if (message == nullptr && cause == FailureCause::kInitialization) {
    EndHandlers(worker, slot, error);
    Unmake(worker.cache(), slot);
  }
  Report(worker, slot, {.error = error, .cause = cause}, nullptr);
}

void ActorTree::Report(ActorWorker& worker, ActorSlot& slot, ChildFailed failed, const ActorSlot* culprit) {
  TellChildren<SuspendActor>(slot, culprit);
  ActorSlot* const parent = slot.kin.parent;
  if (parent == nullptr) {
    // A root has nobody above it.
    LogOf(LogLevel::kError, slot.ref(), slot, ToStd(absl::StrCat("stopped after: ", failed.error.message())));
    worker.turn.Set(Gate::kStopping);
    return;
  }
  TellSystem(parent->ref(), MakeEnvelope<ChildFailed>(worker.cache(), slot.ref(), std::move(failed)));
}

void ActorTree::OnChildFailed(ActorWorker& worker, ActorSlot& slot, ActorRef child, const ChildFailed& failed) {
  // One that is stopping, or restarting, stops its children: that is the verdict.
  if (PhaseOf(slot) == kStoppingChildren || PhaseOf(slot) == kEnding || worker.turn.Has(Gate::kStopping)) return;
  // Somebody else may have stopped it already. Then there is nothing to decide.
  if (!child.IsCurrent()) return;
  Sentence(worker, slot, child, failed);
}

void ActorTree::Sentence(ActorWorker& worker, ActorSlot& parent, ActorRef child, const ChildFailed& failed) {
  const absl::Status& error = failed.error;
  ActorInstance& supervisor = *parent.instance;
  SupervisionDirective directive = SupervisionDirective::kStop;
  int64_t restarts = 0;
  if (const CellState* const state = CellState::Find(parent)) {
    const auto found = state->restarts.find(child);
    if (found != state->restarts.end()) restarts = found->second.restarts;
  }
  FailureCause cause_of_decider = FailureCause::kReturned;
  const absl::Status decided = MessageInvoker::Call(
      "a decider",
      [&] {
        directive = supervisor.OnChildFailure(
            ActorContext::Of(parent),
            Failure{.child = child, .error = error, .restarts = restarts, .cause = failed.cause});
        return absl::OkStatus();
      },
      &cause_of_decider);
  if (!decided.ok()) {
    // The child stays as it is until somebody decides on its supervisor.
    ++worker.turn.failures;
    Report(worker, parent, {.error = decided, .cause = cause_of_decider}, child.slot());
    return;
  }
  const bool all = supervisor.supervision().is_all_for_one();
  switch (directive) {
    case SupervisionDirective::kResume:
      LogOf(LogLevel::kWarning, child, *child.slot(), ToStd(absl::StrCat("goes on after: ", error.message())));
      TellSystem(child, MakeEnvelope<ResumeActor>(worker.cache(), ActorRef()));
      break;
    case SupervisionDirective::kRestart:
      RestartChildren(worker, parent, child, error);
      break;
    case SupervisionDirective::kStop:
      LogOf(LogLevel::kError, child, *child.slot(), ToStd(absl::StrCat("stopped after: ", error.message())));
      if (failed.cause == FailureCause::kInitialization) RememberEndCause(child, error);
      if (all) {
        StopChildren(parent);
      } else {
        StopChild(parent, child);
      }
      break;
    case SupervisionDirective::kEscalate:
      ++worker.turn.failures;
      // The child is suspended by its own failure: what resumes the parent later resumes it too, once.
      Report(worker, parent, Escalated(child, failed), child.slot());
      break;
  }
}

ChildFailed ActorTree::Escalated(ActorRef child, const ChildFailed& failed) const {
  if (failed.is_escalated) return failed;
  const std::string path = PathOf(child);
  const absl::Status& error = failed.error;
  // Some errors name the actor already.
  return {
      .error = absl::StartsWith(error.message(), path) ? error : Annotate(error, ToStd(absl::StrCat(path, " failed"))),
      .cause = failed.cause,
      .is_escalated = true};
}

void ActorTree::RestartChildren(ActorWorker& worker, ActorSlot& parent, ActorRef failed, const absl::Status& error) {
  const SupervisorStrategy& strategy = parent.instance->supervision();
  const Instant now = Now();
  const std::vector<ActorRef> children =
      strategy.is_all_for_one() ? ChildrenOf(parent.ref()) : std::vector<ActorRef>{failed};
  ForgetRestarts(parent);
  bool allowed = true;
  int64_t restarts = 0;
  for (const ActorRef child : children) {
    RestartStats& stats = CellState::Of(parent).restarts[child];
    allowed = strategy.AllowsRestart(stats, now) && allowed;
    if (child == failed) restarts = stats.restarts;
  }
  if (!allowed) {
    LogOf(LogLevel::kError, failed, *failed.slot(),
          ToStd(absl::StrCat("stopped after too many restarts: ", error.message())));
    for (const ActorRef child : children) StopChild(parent, child);
    return;
  }
  const absl::Duration delay = strategy.options().backoff.After(restarts);
  LogOf(LogLevel::kWarning, failed, *failed.slot(), ToStd(absl::StrCat("restarts after: ", error.message())));
  for (const ActorRef child : children) {
    // The others have not failed, and wait from now on.
    if (child != failed) TellSystem(child, MakeEnvelope<SuspendActor>(worker.cache(), ActorRef()));
    SendRestart(worker, child, error, delay);
  }
}

void ActorTree::SendRestart(ActorWorker& worker, ActorRef child, const absl::Status& error, absl::Duration delay) {
  if (delay > absl::ZeroDuration() && worker.toolbox != nullptr) {
    const auto restart = [child, error] { TellSystem(child, MakeEnvelope<RestartActor>(ActorRef(), error)); };
    if (worker.toolbox->ScheduleAfter(delay, restart).ok()) {
      TellSystem(child, MakeEnvelope<RestartPutOff>(worker.cache(), ActorRef()));
      return;
    }
  }
  TellSystem(child, MakeEnvelope<RestartActor>(worker.cache(), ActorRef(), error));
}

// Counts of children that have ended, which leave without their parent's doing.
void ActorTree::ForgetRestarts(ActorSlot& parent) {
  auto& restarts = CellState::Of(parent).restarts;
  if (restarts.size() < 16) return;
  {
    // Others may be adding children.
    const KinLock lock(parent);
    if (restarts.size() < 2 * size_t{CountChildren(parent)}) return;
  }
  absl::erase_if(restarts, [](const auto& entry) { return !entry.first.IsCurrent(); });
}

void ActorTree::FailAskOfFailed(const ActorSlot& slot, const CellState& state) const {
  if (state.failed_on == nullptr) return;
  FailAsk(*state.failed_on, [&] {
    return Annotate(state.failed_with,
                    ToStd(absl::StrCat(PathOf(slot.ref()), " failed on ", ToAbsl(state.failed_on->type()->name()))));
  });
}

void ActorTree::EndFailedMessage(ActorSlot& slot) {
  CellState* const state = CellState::Find(slot);
  if (state == nullptr || state->failed_on == nullptr) return;
  FailAskOfFailed(slot, *state);
  state->failed_on.reset();
  state->failed_with = absl::OkStatus();
}

void ActorTree::ResumeActorNow(ActorWorker& worker, ActorSlot& slot) {
  if (worker.turn.failures == 1 && slot.instance == &NotCreated() && !worker.turn.Has(Gate::kStarting)) {
    // One that never got as far as its first message cannot go on: it tries again.
    BeginRestart(worker, slot, absl::OkStatus());
    return;
  }
  if (worker.turn.failures > 0) --worker.turn.failures;
  TellChildren<ResumeActor>(slot);
  if (worker.turn.failures == 0) EndFailedMessage(slot);
}

void ActorTree::EndHandlers(ActorWorker& worker, ActorSlot& slot, const absl::Status& reason) {
  if (slot.extension == nullptr) return;
  slot.extension->handlers.Clear([&](const Envelope& message) {
    return absl::AbortedError(absl::StrCat(PathOf(worker.turn.self()), " has failed, and gave up its handler of ",
                                           ToAbsl(message.type()->name()), ", which was waiting: ", reason.message()));
  });
  worker.turn.Clear(Gate::kAwaiting);
}

void ActorTree::BeginRestart(ActorWorker& worker, ActorSlot& slot, const absl::Status& reason) {
  Turn& turn = worker.turn;
  if (turn.Has(Gate::kStopping)) return;
  if (PhaseOf(slot) == kRestarting) {
    // A verdict on another failure: one restart is enough for both, and the first of them is still open. Children that
    // live on have been suspended for each.
    if (turn.failures > 0) --turn.failures;
    TellChildren<ResumeActor>(slot);
    return;
  }
  SetPhase(slot, kRestarting);
  CellState& state = CellState::Of(slot);
  state.failure = reason;
  EndHandlers(worker, slot, reason);
  if (slot.instance == &NotCreated()) {
    // What a start that failed has left behind: the next one spawns it again.
    StopChildren(slot);
  } else {
    for (size_t i = 0; i < state.attachments.size(); ++i) {
      state.attachments[i].attachment->BeforeRestart(ActorContext::Of(slot));
    }
    const absl::Status prepared = MessageInvoker::Call("PreRestart", [&] {
      const FailedOn failed_on(turn, &state);
      return slot.instance->PreRestart(ActorContext::Of(slot), reason, state.failed_on.get());
    });
    if (!prepared.ok()) LogOf(LogLevel::kError, slot.ref(), slot, ToStd(prepared.message()));
  }
  for (size_t i = 0; i < state.attachments.size(); ++i) {
    state.attachments[i].attachment->OnRestart(ActorContext::Of(slot));
  }
  {
    const KinLock lock(slot);
    // Children that end by themselves at this moment have their names until they have left.
    for (uint32_t at = NewestChild(slot); at != ActorKin::kNone;) {
      ActorSlot& child = *ProcessSlots().At(at);
      at = child.kin.next_sibling;
      if (child.generation() % 2 == 1 || std::exchange(child.leaving, true)) continue;
      ++slot.leaving_children;
    }
    if (slot.leaving_children != 0) return;
  }
  FinishRestart(worker, slot);
}

void ActorTree::FinishRestart(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  SetPhase(slot, kLiving);
  CellState& state = CellState::Of(slot);
  EndFailedMessage(slot);
  const bool was_created = slot.instance != &NotCreated();
  // The failure is over; ancestors may still be suspended, and have counted here too.
  if (turn.failures > 0) --turn.failures;
  // What the old instance holds is free when the new one is made.
  Unmake(worker.cache(), slot);
  Made made = Make(worker.cache(), *slot.kin.props);
  slot.instance = made.instance;
  // Those that live on are made anew too: they have been waiting since their parent failed.
  for (const ActorRef child : ChildrenOf(slot.ref())) {
    TellSystem(child, MakeEnvelope<RestartActor>(worker.cache(), ActorRef(), state.failure));
  }
  if (!made.error.ok()) {
    MessageInvoker::Fail(worker, slot, NotStarted(slot, made.error), FailureCause::kInitialization, nullptr);
    return;
  }
  state.is_restarted = was_created;
  turn.Set(Gate::kStarting);
}

}  // namespace fraktor::inline v0
