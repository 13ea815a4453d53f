// TreeSupervision: starts of actors, their failures, the verdicts of their parents, and restarts.
//
// An actor that fails is suspended with all its descendants (Turn::failures counts), and reports to
// its parent (ChildFailed). The parent decides: resume, restart, stop or escalate. The verdict
// comes back as a system message. No thread waits.
//
// A restart of all children is one verdict on all failures before it. The parent notes each child
// that it tells to restart with the others (CellState::Restarts::is_due), until the child has begun
// (RestartBegun). Messages of a child arrive in the order in which it sends them. So a ChildFailed
// that comes while the restart is due is older than the restart, and needs no other verdict; and a
// child whose restart is due needs no second one. Otherwise n children that fail at once would make
// n * n restarts.
//
// An actor that has reported a failure and has no verdict yet does not report the failures that its
// children escalate: the verdict covers them. So n children that fail at once count as one failure
// of their parent.
//
// Called by ActorTree, in the turn of the actor that the slot belongs to.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_SUPERVISION_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_SUPERVISION_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/tree/internal/tree_clock.h"
#include "fraktor/actor/tree/internal/tree_log.h"
#include "fraktor/actor/tree/internal/tree_paths.h"

namespace fraktor::inline v0::actor_internal {

class CellState;

// Shows the hooks of an actor the message that it failed on as the current one, so that they can
// reply to it. A hook that stashes or forwards the message takes it from `state`.
class FailedMessageScope {
 public:
  // A null `state`, or one without a failed message: nothing changes.
  FailedMessageScope(TurnState& turn_state, CellState* state);
  ~FailedMessageScope();
  FailedMessageScope(const FailedMessageScope&) = delete;
  FailedMessageScope& operator=(const FailedMessageScope&) = delete;

 private:
  TurnState& turn_state_;
  // The state with the message; null if nothing changes.
  CellState* const state_;
  Envelope* const outer_;
};

class TreeSupervision {
 public:
  TreeSupervision(const TreePaths& paths, const TreeLog& log, const TreeClock& clock)
      : paths_(paths), log_(log), clock_(clock) {}

  // Calls PreStart, or PostRestart after a restart. An error is a failure of the actor.
  absl::Status Start(ActorSlot& slot) const;

  // See ActorLifecycle::OnFailure.
  void OnFailure(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) const;
  // A child has failed. In the turn of the parent.
  void OnChildFailed(Turn turn, ActorRef child, const ChildFailed& failed) const;

  // The verdicts, and suspension by an ancestor.
  void Suspend(Turn turn) const;
  void Resume(Turn turn) const;
  void OnRestart(Turn turn, const RestartActor& restart) const;
  // A restart of all children has reached a child. In the turn of the parent.
  static void OnRestartBegun(const ActorSlot& parent, ActorRef child);
  // The restart comes later. The asker of the failed message gets its error now.
  void OnRestartDeferred(const ActorSlot& slot) const;
  // Children that a restart waits for have ended.
  void OnChildrenEnded(Turn turn) const;

  // Ends the message that the actor failed on: its asker gets the error. Called after the hooks
  // that may reply to it.
  void EndFailedMessage(ActorSlot& slot) const;

 private:
  absl::Status NotStarted(const ActorSlot& slot, const absl::Status& why) const;
  // Suspends the children, except `culprit`, whose failure caused this one, and tells the parent.
  void Report(Turn turn, ChildFailed failed, const ActorSlot* culprit) const;
  void DecideOnChild(Turn turn, ActorRef child, const ChildFailed& failed) const;
  // The same failure as that of the parent. The error names the actor that failed first.
  ChildFailed Escalated(ActorRef child, const ChildFailed& failed) const;
  void RestartChildren(Turn turn, ActorRef failed, const absl::Status& error, const SupervisorStrategy& strategy) const;
  static void SendRestart(ActorWorker& worker, ActorRef child, RestartActor restart, absl::Duration delay);
  void BeginRestart(Turn turn, const absl::Status& reason) const;
  static void ForgetRestarts(ActorSlot& parent);
  // Whether the parent has stopped the child, which is the verdict on its failures.
  static bool IsLeaving(ActorSlot& parent, ActorRef child);
  void FailAskOf(const ActorSlot& slot, const CellState& state) const;
  // Destroys the handlers that wait in co_await. Their askers get an error.
  void EndHandlers(Turn turn, const absl::Status& reason) const;
  void FinishRestart(Turn turn) const;

  const TreePaths& paths_;
  const TreeLog& log_;
  const TreeClock& clock_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_SUPERVISION_H_
