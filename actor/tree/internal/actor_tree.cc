#include "fraktor/actor/tree/internal/actor_tree.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/cell/internal/cell_state.h"
#include "fraktor/actor/cell/internal/child_links.h"
#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/cell/internal/tree_phase.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/tree/internal/instance_making.h"
#include "fraktor/actor/tree/internal/not_created.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::Inbox;
using utils_internal::TableSlot;

ActorTree::ActorTree(const ActorTreeOptions& options)
    : options_(options),
      paths_(options_.names),
      clock_(options_.toolbox),
      types_(options_.hub, options_.mailboxes.slots(), paths_),
      log_(options_.log, paths_, types_, clock_),
      watching_(paths_),
      supervision_(paths_, log_, clock_),
      dead_letters_({.dead_letters = options_.dead_letters, .events = options_.events, .observer = options_.observer},
                    paths_, log_, clock_),
      spawning_(*this, options_, types_, paths_) {
  options_.mailboxes.core().SetLifecycle(this);
  if (options_.log != nullptr) {
    options_.dispatchers.SetStallListener(
        [this](std::string_view worker, const WorkerStall& stall) { log_.LogStall(worker, stall); });
  }
}

ActorTree::~ActorTree() {
  options_.mailboxes.core().SetLifecycle(nullptr);
  NodeCache& cache = NodeCache::OfThisThread();
  options_.mailboxes.slots().ForEachInUse([&](ActorSlot& slot) {
    MailboxRegistry::Abandon(slot);
    UnmakeInstance(cache, slot);
    FreeChildList(cache, slot);
    slot.kin.props->RemoveUser();
    // The next actor of the slot relies on these. The children end with the system too.
    slot.leaving = false;
    slot.leaving_children = 0;
  });
}

absl::StatusOr<ActorRef> ActorTree::Spawn(ActorContext& parent, const ActorProps& props, std::string_view name) {
  return spawning_.Spawn(parent, props, name);
}

absl::StatusOr<ActorRef> ActorTree::SpawnChildOf(ActorRef parent, const ActorProps& props, std::string_view name,
                                                 DispatcherChoice usual) {
  ActorWorker* const worker = ActorWorker::Current();
  const bool is_of_this_tree = worker != nullptr && &worker->lifecycle == this;
  return spawning_.SpawnChildOf(is_of_this_tree ? worker : nullptr, parent, props, name, usual);
}

absl::StatusOr<ActorRef> ActorTree::TrySpawnWatched(ActorRef parent, ActorRef watcher, const ActorProps& props,
                                                    std::string_view name) {
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef child, SpawnChildOf(parent, props, name));
  // If the child ends before the watcher handles this, the watcher gets its Terminated all the
  // same.
  TellSystem(watcher, MakeEnvelope<WatchOther>(ActorRef(), child));
  return child;
}

absl::StatusOr<ActorRef> ActorTree::SpawnRoot(const ActorProps& props) { return spawning_.SpawnRoot(props); }

void ActorTree::Stop(ActorRef actor) { StopActorNow(actor); }

void ActorTree::Stop(ActorContext& context, ActorRef actor) {
  if (actor == context.self()) {
    context.Stop();
  } else if (actor.IsActor() && ParentSlotOf(*actor.slot()) == &context.slot()) {
    StopChild(context.slot(), actor);
  } else {
    Stop(actor);
  }
}

absl::Status ActorTree::Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, SameMessage same) {
  return watching_.Watch(context, actor, std::move(message), same);
}

void ActorTree::Unwatch(ActorContext& context, ActorRef actor) { watching_.Unwatch(context, actor); }

ActorRef ActorTree::ParentOf(ActorRef actor) const { return FindParent(actor); }

ActorRef ActorTree::ChildOf(ActorRef actor, std::string_view name) const {
  return options_.names == nullptr ? ActorRef() : options_.names->FindChild(actor, name);
}

std::vector<ActorRef> ActorTree::ChildrenOf(ActorRef actor) const { return FindChildren(actor); }

std::string ActorTree::DescribeFromOutside(ActorRef actor) const {
  if (!actor.IsActor() || !actor.IsCurrent()) return "it has ended";
  const ActorSlot& slot = *actor.slot();
  if (options_.dispatchers.IsBeingRun(slot)) {
    return "it is in a handler that has not returned, so how many messages wait in its mailbox is not known";
  }
  // The target may have reported too late, or was never asked, because there was no timer left.
  const Inbox& inbox = slot.mailbox.inbox;
  if (inbox.IsIdle()) return "it is idle, and no message waits in its mailbox";
  if (inbox.IsParked()) return "it is suspended, and handles no messages";
  return options_.mailboxes.slots().Owns(&slot) ? "messages wait in its mailbox, and it waits for a worker"
                                                : "it belongs to another actor system, which runs it or will run it";
}

void ActorTree::OnPromiseEnded(ActorRef promise, ActorRef watcher) {
  watching_.TellEnded(NodeCache::OfThisThread(), watcher, promise);
}

absl::Status ActorTree::OnStart(ActorSlot& slot) { return supervision_.Start(slot); }

void ActorTree::OnSystemMessage(Turn turn, Envelope& message) {
  ActorSlot& slot = turn.slot;
  if (message.Is<ChildrenEnded>()) {
    supervision_.OnChildrenEnded(turn);
  } else if (message.Is<StopActor>()) {
    turn.state().Set(Gate::kStopping);
  } else if (const auto* failed = message.TryAs<ChildFailed>()) {
    supervision_.OnChildFailed(turn, message.sender(), *failed);
  } else if (message.Is<SuspendActor>()) {
    supervision_.Suspend(turn);
  } else if (message.Is<ResumeActor>()) {
    supervision_.Resume(turn);
  } else if (const auto* restart = message.TryAs<RestartActor>()) {
    supervision_.OnRestart(turn, *restart);
  } else if (message.Is<RestartBegun>()) {
    TreeSupervision::OnRestartBegun(slot, message.sender());
  } else if (message.Is<RestartDeferred>()) {
    supervision_.OnRestartDeferred(slot);
  } else if (const auto* ended = message.TryAs<ActorEnded>()) {
    watching_.OnEnded(turn, *ended);
  } else if (const auto* watch = message.TryAs<WatchActor>()) {
    watching_.OnWatch(slot, *watch);
  } else if (const auto* promised = message.TryAs<WatchPromiseOf>()) {
    watching_.OnWatchPromise(slot, *promised);
  } else if (const auto* unwatch = message.TryAs<UnwatchActor>()) {
    watching_.OnUnwatch(slot, *unwatch);
  } else if (const auto* other = message.TryAs<WatchOther>()) {
    if (turn.state().Has(Gate::kStopping)) return;
    watching_.Watch(ActorContext::Of(slot), other->actor, nullptr, nullptr).IgnoreError();
  } else if (const auto* observe = message.TryAs<ObserveActor>()) {
    slot.type.store(observe->id, std::memory_order_relaxed);
  } else if (message.Is<UnobserveActor>()) {
    types_.Forget(slot);
  } else if (message.Is<SubscribedToEvents>()) {
    CellState::Of(slot).is_subscribed = true;
  } else if (auto* task = message.TryAs<TaskForActor>()) {
    FailureCause cause = FailureCause::kReturned;
    absl::Status ran = MessageInvoker::Call(
        "a task", [&] { return RunTask(ActorContext::Of(slot), std::move(task->task)); }, &cause);
    if (!ran.ok()) MessageInvoker::Fail(turn, ran, cause, nullptr);
  } else if (CellState* const state = CellState::Find(slot)) {
    for (size_t i = 0; i < state->attachments.size(); ++i) {
      if (state->attachments[i].attachment->OnSystemMessage(ActorContext::Of(slot), message)) return;
    }
  }
}

void ActorTree::OnActivity(ActorSlot& slot) {
  CellState* const state = CellState::Find(slot);
  if (state == nullptr) return;
  for (size_t i = 0; i < state->attachments.size(); ++i) {
    state->attachments[i].attachment->OnActivity(ActorContext::Of(slot));
  }
}

Envelope* ActorTree::OnInterceptedMessage(Turn turn, Envelope* envelope) {
  ActorSlot& slot = turn.slot;
  // An attachment may have put the message into the mailbox. A timer knows whether its message is
  // still valid.
  CellState* const state = CellState::Find(slot);
  for (size_t i = 0; state != nullptr && i < state->attachments.size(); ++i) {
    if (!state->attachments[i].attachment->OnInterceptedMessage(ActorContext::Of(slot), envelope)) continue;
    if (envelope == nullptr || (envelope->target_word() & kIntercepted) == 0) return envelope;
    break;
  }
  EnvelopePtr message(envelope);
  if (message->Is<Terminated>()) {
    message = watching_.TakeTerminated(turn, std::move(message));
    // The message of WatchWith may be a command to the runtime.
    if (message == nullptr || !(message->Is<PoisonPill>() || message->Is<Kill>())) return message.release();
  }
  bool takes_pill = false;
  if (message->Is<PoisonPill>()) {
    FailureCause cause = FailureCause::kReturned;
    const absl::Status told = MessageInvoker::Call(
        "TakesPoisonPill",
        [&] {
          takes_pill = slot.instance->TakesPoisonPill();
          return absl::OkStatus();
        },
        &cause);
    if (!told.ok()) {
      MessageInvoker::Fail(turn, told, cause, nullptr);
      return nullptr;
    }
  }
  if (message->Is<PoisonPill>() && !takes_pill) {
    turn.state().Set(Gate::kStopping);
  } else if (message->Is<Kill>()) {
    MessageInvoker::Fail(turn,
                         MakeError(absl::StatusCode::kAborted, ActorErrorKind::kKilled,
                                   absl::StrCat(PathOf(slot.ref()), " was told Kill")),
                         FailureCause::kKilled, nullptr);
  } else if (const auto* identify = message->TryAs<Identify>()) {
    turn.worker.Tell(message->sender(), ActorIdentity{.id = identify->id, .ref = turn.state().self()});
  } else {
    // The runtime has no use for the message. The actor receives it without the flag kIntercepted.
    message->set_target_word(turn.state().word);
    return message.release();
  }
  return nullptr;
}

void ActorTree::OnFailure(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) {
  supervision_.OnFailure(turn, error, cause, message);
}

void ActorTree::OnThrown(ActorRef actor, const absl::Status& error) {
  log_.Log(LogLevel::kError, actor, ToStd(error.message()));
}

bool ActorTree::StopChildrenFirst(ActorSlot& slot) {
  if (HasNeverHadChildren(slot)) return true;
  const uint8_t before = PhaseOf(slot);
  {
    // With the lock: a child that ends now either sees the phase and tells this actor, or is no
    // longer counted.
    const KinLock lock(slot);
    if (CountChildren(slot) == 0) {
      SetPhaseLocked(slot, kEnding);
      return true;
    }
    SetPhaseLocked(slot, kStoppingChildren);
  }
  if (before != kStoppingChildren) TellChildren<StopActor>(slot);
  return false;
}

void ActorTree::OnEnding(Turn turn) {
  ActorSlot& slot = turn.slot;
  if (HasNeverHadChildren(slot)) {
    // No other thread looks at the phase, so no lock is needed.
    SetPhaseLocked(slot, kEnding);
  } else {
    SetPhase(slot, kEnding);
  }
  RunLastHooks(turn);
  if (slot.extension != nullptr) {
    // Tasks that the last hooks have begun may point to the instance.
    slot.extension->handlers.Clear();
    // Before the references are stale: a reply that finds a stale asker would never end its ask.
    CloseAsks(turn);
  }
  // The path stays registered until OnEnded: the dead letters of the mailbox name it.
  MailboxRegistry::Unregister(slot);
  const ActorProps* const props = slot.kin.props;
  UnmakeInstance(turn.worker.cache(), slot);
  slot.instance = nullptr;
  if (props->options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(slot.dispatcher);
  props->RemoveUser();
}

namespace {

// Calls PostStop, and the hooks of attachments before it.
absl::Status CallPostStop(Turn turn) {
  ActorSlot& slot = turn.slot;
  TurnState& turn_state = turn.state();
  const auto post_stop = [&slot] {
    slot.instance->PostStop(ActorContext::Of(slot));
    return absl::OkStatus();
  };
  CellState* const state = CellState::Find(slot);
  // Most actors have no state, and end faster without the scope.
  if (state == nullptr) [[likely]] {
    Envelope* const outer = turn_state.current;
    absl::Status stopped = MessageInvoker::Call("PostStop", post_stop);
    turn_state.current = outer;
    return stopped;
  }
  for (size_t i = 0; i < state->attachments.size(); ++i) {
    state->attachments[i].attachment->BeforeStop(ActorContext::Of(slot));
  }
  const FailedMessageScope scope(turn_state, state);
  return MessageInvoker::Call("PostStop", post_stop);
}

}  // namespace

void ActorTree::RunLastHooks(Turn turn) {
  ActorSlot& slot = turn.slot;
  if (slot.instance != &NotCreated()) {
    const absl::Status stopped = CallPostStop(turn);
    if (!stopped.ok()) [[unlikely]]
      log_.Log(LogLevel::kError, slot.ref(), ToStd(stopped.message()));
  }
  // PostStop may have made the state.
  CellState* const state = CellState::Find(slot);
  if (state == nullptr) return;
  for (size_t i = 0; i < state->attachments.size(); ++i) {
    state->attachments[i].attachment->OnStop(ActorContext::Of(slot));
  }
  state->attachments.clear();
  supervision_.EndFailedMessage(slot);
  if (state->is_subscribed && options_.events != nullptr) {
    options_.events->UnsubscribeAll(EventSubscriberOf(turn.state().self()));
  }
}

void ActorTree::OnEnded(Turn turn) {
  ActorSlot& slot = turn.slot;
  const ActorRef ended = turn.state().self();
  types_.Forget(slot);
  const std::unique_ptr<LifecycleState> state = std::move(turn.state().ended_state);
  const auto* const cell = static_cast<const CellState*>(state.get());
  // The path is lost when the name is free.
  const std::string path = cell != nullptr && !cell->watchers.empty() ? PathOf(ended) : std::string();
  // The name is free before any watcher learns of the end.
  if (options_.names != nullptr && ActorNames::Has(slot)) options_.names->Unregister(slot, ended.generation());
  if (options_.observer != nullptr) options_.observer->OnEnded(ended);
  // The parent lives: it does not end before its last child is unlinked.
  ActorSlot* const parent = slot.kin.parent;
  const ActorRef awaited_by = parent == nullptr ? ActorRef() : UnlinkChild(*parent, slot);
  if (!awaited_by.IsNoOne()) TellSystem(awaited_by, MakeEnvelope<ChildrenEnded>(turn.worker.cache(), ActorRef()));
  FreeChildList(turn.worker.cache(), slot);
  turn.worker.slots().Release(&slot);
  if (cell != nullptr) watching_.OnActorEnded(turn.worker.cache(), ended, *cell, path);
  if (parent == nullptr && options_.on_root_ended != nullptr) options_.on_root_ended(ended);
}

absl::Status ActorTree::OnUnhandled(ActorContext& context, Envelope& message) {
  if (const auto* terminated = message.TryAs<Terminated>()) return watching_.BreakDeathPact(context, *terminated);
  dead_letters_.OnUnhandled(context, message);
  return absl::OkStatus();
}

bool ActorTree::PublishOrphan(TableSlot* slot, EnvelopePtr& envelope, DeadLetterReason reason) {
  return dead_letters_.PublishOrphan(slot, envelope, reason);
}

void ActorTree::OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, TableSlot* slot, DeadLetterReason reason) {
  if (envelope->is_system() && reason != DeadLetterReason::kLateReply) {
    OnLostSystemMessage(cache, *envelope, slot);
  } else {
    dead_letters_.OnDeadLetter(cache, std::move(envelope), slot, reason);
  }
}

void ActorTree::OnLostSystemMessage(NodeCache& cache, const Envelope& message, TableSlot* slot) {
  const ActorRef target(slot, message.target_word());
  if (const auto* promised = message.TryAs<WatchPromiseOf>()) {
    watching_.TellEnded(cache, promised->watcher, promised->promise);
  } else if (const auto* watch = message.TryAs<WatchActor>()) {
    watching_.TellEnded(cache, watch->watcher, target);
  } else if (message.Is<SubscribedToEvents>() && options_.events != nullptr) {
    options_.events->UnsubscribeAll(EventSubscriberOf(target));
  } else if (const auto* observe = message.TryAs<ObserveActor>()) {
    types_.Release(observe->id);
  }
}

}  // namespace fraktor::inline v0::actor_internal
