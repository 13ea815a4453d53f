#include "fraktor/actor/cell/actor_tree.h"

#include <cxxabi.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/end_cause.h"
#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/cell/cell_state.h"
#include "fraktor/actor/cell/child_list.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/cell/not_created.h"
#include "fraktor/actor/cell/tree_phase.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/orphaned_message.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/path/auto_name.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/dispatcher_table.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/actor/send/remote_sending.h"
#include "fraktor/actor/send/routed_sending.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

constexpr int kTypeBits = 16;
std::atomic<uint64_t> next_serial{1};

ActorSlot& SlotAt(uint32_t number) { return *ProcessSlots().At(number); }

// What who asked hears of a question that is a dead letter.
absl::Status NobodyWillAnswer(const Envelope& question, ActorRef actor, const std::string& recipient,
                              DeadLetterReason reason) {
  const std::string what = absl::StrCat("nobody will answer ", ToAbsl(question.type()->name()), ": ");
  switch (reason) {
    case DeadLetterReason::kMailboxFull:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "the mailbox of ", recipient, " is full; ask less, or raise MailboxOptions.capacity"));
    case DeadLetterReason::kStashFull:
      return absl::ResourceExhaustedError(absl::StrCat(what, recipient, " has put it aside, and its stash was full"));
    case DeadLetterReason::kShutdown:
      return absl::UnavailableError(absl::StrCat(what, "the actor system of ", recipient, " is shutting down"));
    case DeadLetterReason::kStopped:
      return NoAnswerOfEnded(question.type()->name(), actor, recipient);
    case DeadLetterReason::kNotSerializable:
      return absl::InvalidArgumentError(absl::StrCat(what, "it cannot leave this node for ", recipient));
    case DeadLetterReason::kUnresolvedFull:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, "too many messages wait for the node of ", recipient, ", which is not connected"));
    case DeadLetterReason::kQuarantined:
    case DeadLetterReason::kNewIncarnation:
      return absl::UnavailableError(
          absl::StrCat(what, "it was lost on its way to ", recipient, " (", ToAbsl(NameOf(reason)), ")"));
    default:
      return MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                       absl::StrCat(what, "it was lost on its way to ", recipient, " (", ToAbsl(NameOf(reason)), ")"));
  }
}

// For the holder, without the lock. An actor that expects children from other threads has a list from the beginning.
bool HasNeverHadChildren(ActorSlot& slot) {
  return std::atomic_ref<ChildList*>(slot.kin.children).load(std::memory_order_relaxed) == nullptr;
}

// The caller holds the lock. Relaxed: pairs with HasNeverHadChildren, and everybody else has the lock.
void SetChildren(ActorSlot& slot, ChildList* list) {
  std::atomic_ref<ChildList*>(slot.kin.children).store(list, std::memory_order_relaxed);
}

// Memory for the first ChildList of an actor. It goes back unless the actor takes it.
class ChildListMemory {
 public:
  // Nothing if the actor has a list already.
  ChildListMemory(NodeCache& cache, ActorSlot& parent)
      : cache_(cache), memory_(HasNeverHadChildren(parent) ? cache.Allocate(ChildList::kNodeClass) : nullptr) {}
  ~ChildListMemory() {
    if (memory_ != nullptr) [[unlikely]]
      cache_.Free(ChildList::kNodeClass, memory_);
  }
  ChildListMemory(const ChildListMemory&) = delete;
  ChildListMemory& operator=(const ChildListMemory&) = delete;

  // The list of a living actor, made now if it has none. The caller holds its lock.
  ChildList& GiveTo(ActorSlot& parent) {
    if (parent.kin.children == nullptr) [[unlikely]]
      SetChildren(parent, ::new (std::exchange(memory_, nullptr)) ChildList);
    return *parent.kin.children;
  }

 private:
  NodeCache& cache_;
  void* memory_;
};

// Frees the list of an actor that has ended. Late readers of its slot find none.
void EndChildren(NodeCache& cache, ActorSlot& slot) {
  if (HasNeverHadChildren(slot)) return;
  ChildList* const list = slot.kin.children;
  {
    const KinLock lock(slot);
    SetChildren(slot, nullptr);
  }
  list->~ChildList();
  cache.Free(ChildList::kNodeClass, list);
}

[[gnu::noinline, gnu::cold]] absl::Status EndsChildren(const std::string& parent) {
  return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kTerminating,
                   absl::StrCat(parent,
                                " is stopping, or about to be restarted, and spawns no children; spawn them before, in "
                                "PostRestart, or under another actor"));
}

}  // namespace

ActorTree::ActorTree(const ActorTreeOptions& options)
    : options_(options), serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {
  options_.mailboxes.core().SetLifecycle(this);
  if (options_.log != nullptr) {
    options_.dispatchers.SetStallListener(
        [this](std::string_view worker, const WorkerStall& stall) { LogStall(worker, stall); });
  }
}

ActorTree::~ActorTree() {
  options_.mailboxes.core().SetLifecycle(nullptr);
  NodeCache& cache = NodeCache::OfThisThread();
  options_.mailboxes.slots().ForEachInUse([&](ActorSlot& slot) {
    MailboxRegistry::Abandon(slot);
    Unmake(cache, slot);
    EndChildren(cache, slot);
    slot.kin.props->RemoveUser();
    // Whoever takes the slot over relies on it. The children go with the system too.
    slot.leaving = false;
    slot.leaving_children = 0;
  });
}

inline uint16_t ActorTree::TypeOf(const ActorProps& props) {
  const uint64_t memo = props.memo().load(std::memory_order_relaxed);
  return memo >> kTypeBits == serial_ ? static_cast<uint16_t>(memo) : FindTypeOf(props);
}

[[gnu::noinline]] uint16_t ActorTree::FindTypeOf(const ActorProps& props) {
  const std::string name(props.type_name());
  uint16_t type = options_.hub == nullptr ? 0 : options_.hub->TypeId(name);
  {
    MutexLock lock(mutex_);
    // Without a hub the tree counts for itself; 0 stands for all that are too many.
    if (options_.hub == nullptr || !options_.hub->enabled()) {
      const size_t next = types_.size() + 1;
      type = types_.try_emplace(name, next <= UINT16_MAX ? static_cast<uint16_t>(next) : uint16_t{0}).first->second;
    }
    if (type != 0) type_names_.try_emplace(type, name);
  }
  props.memo().store(serial_ << kTypeBits | type, std::memory_order_relaxed);
  return type;
}

std::string ActorTree::TypeName(uint16_t type) const {
  if (IsObservedActor(type) && options_.hub != nullptr && options_.hub->enabled()) {
    return options_.hub->TypeNameOf(type);
  }
  MutexLock lock(mutex_);
  const auto found = type_names_.find(type);
  return found == type_names_.end() ? "other" : found->second;
}

absl::Status ActorTree::Observe(ActorRef actor) {
  if (options_.hub == nullptr || !options_.hub->enabled()) {
    return absl::FailedPreconditionError(
        "there are no metrics: ObservabilityOptions.enabled is false, or there is no hub");
  }
  const bool is_actor = actor.IsActor();
  if (!is_actor || !options_.mailboxes.slots().Owns(actor.slot())) {
    return absl::InvalidArgumentError(absl::StrCat(is_actor ? std::string("an actor of another system") : PathOf(actor),
                                                   " is no actor of this system; observe it where it lives"));
  }
  const std::string type = TypeName(actor.slot()->type.load(std::memory_order_relaxed));
  FRAKTOR_ASSIGN_OR_RETURN(const ObservedId id, options_.hub->RegisterActor(type, PathOf(actor)));
  if (TellSystem(actor, MakeEnvelope<ObserveActor>(ActorRef(), id)) == nullptr) return absl::OkStatus();
  options_.hub->Release(id);
  return absl::NotFoundError(absl::StrCat(PathOf(actor), " cannot be observed any more; observe one that lives"));
}

void ActorTree::StopObserving(ActorRef actor) { TellSystem(actor, MakeEnvelope<UnobserveActor>(ActorRef())); }

void ActorTree::ForgetObserved(ActorSlot& slot) {
  const ObservedId id = slot.type.load(std::memory_order_relaxed);
  if (options_.hub == nullptr || !options_.hub->enabled() || !IsObservedActor(id)) [[likely]]
    return;
  // Before the id is free: who counts later counts for the type.
  slot.type.store(options_.hub->TypeId(options_.hub->TypeNameOf(id)), std::memory_order_relaxed);
  options_.hub->Release(id);
}

// A constructor that throws is a failure of the actor, which is there without an instance.
ActorTree::Made ActorTree::Make(NodeCache& cache, const ActorProps& props) {
  try {
    return {props.Make(cache), absl::OkStatus()};
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (const std::exception& e) {
    return {&NotCreated(),
            absl::InternalError(absl::StrCat("the constructor of ", ToAbsl(props.type_name()), " threw: ", e.what()))};
  } catch (...) {
    return {&NotCreated(),
            absl::InternalError(absl::StrCat("the constructor of ", ToAbsl(props.type_name()), " threw"))};
  }
}

void ActorTree::Unmake(NodeCache& cache, ActorSlot& slot) {
  ActorInstance* const instance = std::exchange(slot.instance, &NotCreated());
  if (instance != &NotCreated()) slot.kin.props->Unmake(cache, instance);
}

MailboxSpec ActorTree::SpecOf(const ActorProps& props, ActorInstance* instance, uint16_t dispatcher) {
  return {.instance = instance,
          .dispatcher = dispatcher,
          .type = TypeOf(props),
          .options = props.has_plain_mailbox() ? nullptr : &props.options().mailbox,
          .gate = props.has_start() ? static_cast<uint8_t>(Gate::kStarting) : uint8_t{0}};
}

// A slot without an instance yet, by whatever dispatcher and options the props have.
template <class Register>
absl::StatusOr<ActorSlot*> ActorTree::Put(const ActorProps& props, DispatcherChoice usual, Register register_slot) {
  const DispatcherSelector& wanted = props.options().dispatcher;
  FRAKTOR_ASSIGN_OR_RETURN(const uint16_t dispatcher, wanted == DispatcherChoice::kAutomatic
                                                          ? options_.dispatchers.NumberFor(usual)
                                                          : options_.dispatchers.NumberFor(wanted));
  absl::StatusOr<ActorSlot*> slot = register_slot(SpecOf(props, &NotCreated(), dispatcher));
  if (!slot.ok() && props.options().dispatcher == DispatcherChoice::kPinned) {
    options_.dispatchers.EndPinned(dispatcher);
  }
  return slot;
}

// Links a child to its parent. False if the parent stops, or is about to be restarted.
inline bool ActorTree::Adopt(NodeCache& cache, ActorSlot& parent, uint32_t generation, ActorSlot& child,
                             bool is_named) {
  ActorKin& kin = child.kin;
  const uint32_t index = ActorSlotTable::IndexOf(&child);
  ChildListMemory memory(cache, parent);
  std::unique_ptr<ChildIndex> unused;  // Ends after the lock.
  const KinLock lock(parent);
  // It would outlive its parent, or the parent would wait for it for ever. The generation last: another actor may have
  // taken the slot over.
  if (PhaseOf(parent) != kLiving || !parent.IsAt(generation)) [[unlikely]]
    return false;
  std::atomic_ref<ActorSlot*>(kin.parent).store(&parent, std::memory_order_release);
  ChildList& siblings = memory.GiveTo(parent);
  const uint64_t number = siblings.next_number++ | (is_named ? ActorKin::kIsNamed : 0);
  // Release: pairs with NumberOf.
  std::atomic_ref<uint64_t>(kin.number).store(number, std::memory_order_release);
  kin.next_sibling = siblings.first;
  if (siblings.first != ActorKin::kNone) SlotAt(siblings.first).kin.previous_sibling = index;
  siblings.first = index;
  ++siblings.count;
  if (siblings.index != nullptr) [[unlikely]]
    unused = AddToIndex(siblings, child);
  return true;
}

// Lets a new actor go: to its first turn, or to wait for its first message.
inline ActorRef ActorTree::Begin(ActorSlot& slot, bool must_run) {
  const ActorRef ref = slot.ref();
  if (options_.observer != nullptr) [[unlikely]] {
    options_.observer->OnSpawned(ref, slot.kin.parent == nullptr ? ActorRef() : slot.kin.parent->ref(),
                                 slot.kin.props->type_name());
  }
  if (!must_run) {
    MailboxRegistry::LetGo(slot);
  } else if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->outbox.MakeReady(slot);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
  return ref;
}

// Frees the slot of an actor that does not come about. A thread that walks the tree may have found it under its parent,
// and may send to it at this moment: a late message makes a worker run the free slot. So nothing of the actor is left in
// the slot when the mailbox goes idle.
void ActorTree::GiveUp(ActorSlot& slot, const ActorProps& props) {
  MailboxRegistry::Unregister(slot);
  slot.instance = nullptr;
  slot.gate = 0;
  slot.failures = 0;
  MailboxRegistry::Discard(slot);
  if (props.options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(slot.dispatcher);
  options_.mailboxes.Release(slot);
}

absl::StatusOr<ActorRef> ActorTree::Spawn(ActorContext& parent, const ActorProps& props, std::string_view name) {
  ActorWorker& worker = ActorContext::worker();
  // Most actors: without a name, with a slot at hand.
  if (!name.empty() || !props.has_plain_mailbox() || props.options().dispatcher != DispatcherChoice::kAutomatic)
      [[unlikely]] {
    return SpawnSlowly(parent.self(), &worker, props, name, nullptr);
  }
  if (PhaseOf(parent.slot()) != kLiving) [[unlikely]]
    return EndsChildren(PathOf(parent.self()));
  Made made = Make(worker.cache(), props);
  ActorSlot* slot = nullptr;
  if (made.error.ok()) [[likely]] {
    slot = MailboxRegistry::TryRegister(worker.slots(),
                                        SpecOf(props, made.instance, options_.dispatchers.default_pool().number()));
  }
  if (slot == nullptr) [[unlikely]]
    return SpawnSlowly(parent.self(), &worker, props, name, &made);
  slot->kin.props = &props;
  props.AddUser();
  // Born to a parent that waits for a verdict, it waits too.
  slot->failures = worker.turn.failures;
  Adopt(worker.cache(), parent.slot(), parent.slot().generation(), *slot, /*is_named=*/false);
  return Begin(*slot, props.has_start());
}

[[gnu::noinline]] absl::StatusOr<ActorRef> ActorTree::SpawnSlowly(ActorRef parent_ref, ActorWorker* worker,
                                                                  const ActorProps& props, std::string_view name,
                                                                  Made* made_before, DispatcherChoice usual) {
  ActorSlot& parent = *parent_ref.slot();
  NodeCache& cache = worker != nullptr ? worker->cache() : NodeCache::OfThisThread();
  absl::StatusOr<ActorSlot*> put = Put(props, usual, [&](const MailboxSpec& spec) {
    return worker != nullptr ? options_.mailboxes.Register(worker->slots(), spec) : options_.mailboxes.Register(spec);
  });
  if (!put.ok()) {
    if (made_before != nullptr && made_before->error.ok()) props.Unmake(cache, made_before->instance);
    return put.status();
  }
  ActorSlot* const slot = *put;
  slot->kin.props = &props;
  if (props.is_router()) slot->ref_flags.store(slot->flags() | kRouterFlag, std::memory_order_release);
  const bool in_turn_of_parent = worker != nullptr && worker->turn.running() == &parent;
  if (!Adopt(cache, parent, parent_ref.generation(), *slot, !name.empty())) {
    GiveUp(*slot, props);
    return EndsChildren(PathOf(parent_ref));
  }
  if (!name.empty()) {
    absl::Status named = options_.names == nullptr ? absl::FailedPreconditionError("actors of this tree have no names")
                                                   : options_.names->Register(*slot, parent, name);
    if (!named.ok()) {
      const ActorRef awaited_by = Leave(parent, *slot);
      GiveUp(*slot, props);
      if (!awaited_by.IsNoOne()) TellSystem(awaited_by, MakeEnvelope<ChildrenEnded>(ActorRef()));
      return Annotate(std::move(named), ToStd(absl::StrCat("a child of ", PathOf(parent_ref))));
    }
  }
  props.AddUser();
  if (in_turn_of_parent) slot->failures = worker->turn.failures;
  Made made = made_before != nullptr ? std::move(*made_before) : Make(cache, props);
  slot->instance = made.instance;
  if (!made.error.ok()) {
    CellState::Of(*slot).failure = std::move(made.error);
    slot->gate = slot->gate | Gate::kStarting;
    return Begin(*slot, true);
  }
  if (props.is_router()) props.PrepareRouter(*this, *slot);
  return Begin(*slot, props.has_start());
}

void ActorTree::ExpectForeignChildren(ActorRef parent) {
  ChildListMemory memory(NodeCache::OfThisThread(), *parent.slot());
  const KinLock lock(*parent.slot());
  ChildList& children = memory.GiveTo(*parent.slot());
  if (children.next_number == 0) children.next_number = 1;
}

absl::StatusOr<ActorRef> ActorTree::SpawnChildOf(ActorRef parent, const ActorProps& props, std::string_view name,
                                                 DispatcherChoice usual) {
  if (!parent.IsActor() || !parent.IsCurrent()) {
    return MakeError(absl::StatusCode::kUnavailable, ActorErrorKind::kTerminating,
                     absl::StrCat("the actor that was to be the parent has ended: ", PathOf(parent),
                                  "; spawn under one that lives"));
  }
  // A worker of another system, whose actor spawns here, has free slots of its own system: they end with that.
  ActorWorker* const worker = ActorWorker::Current();
  const bool is_of_this_system = worker != nullptr && &worker->lifecycle == this;
  return SpawnSlowly(parent, is_of_this_system ? worker : nullptr, props, name, nullptr, usual);
}

absl::StatusOr<ActorRef> ActorTree::TrySpawnWatched(ActorRef parent, ActorRef watcher, const ActorProps& props,
                                                    std::string_view name) {
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef child, SpawnChildOf(parent, props, name));
  // If it ends before that arrives, the watcher hears of it all the same.
  TellSystem(watcher, MakeEnvelope<WatchOther>(ActorRef(), child));
  return child;
}

absl::StatusOr<ActorRef> ActorTree::SpawnRoot(const ActorProps& props) {
  FRAKTOR_ASSIGN_OR_RETURN(ActorSlot* const slot,
                           Put(props, DispatcherChoice::kAutomatic,
                               [&](const MailboxSpec& spec) { return options_.mailboxes.Register(spec); }));
  slot->kin.props = &props;
  Made made = Make(NodeCache::OfThisThread(), props);
  if (!made.error.ok()) {
    GiveUp(*slot, props);
    return made.error;
  }
  slot->instance = made.instance;
  props.AddUser();
  return Begin(*slot, props.has_start());
}

void ActorTree::Stop(ActorRef actor) { TellSystem(actor, MakeEnvelope<StopActor>(ActorRef())); }

absl::Status ActorTree::NotStarted(const ActorSlot& slot, const absl::Status& why) const {
  return MakeError(why.code(), ActorErrorKind::kInitialization,
                   absl::StrCat(PathOf(slot.ref()), " could not be started: ", why.message()));
}

absl::Status ActorTree::OnStart(ActorWorker& /*worker*/, ActorSlot& slot) {
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

void ActorTree::OnSystemMessage(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  Turn& turn = worker.turn;
  if (message.Is<ChildrenEnded>()) {
    // One that stops is asked again whether it may end.
    if (PhaseOf(slot) != kRestarting) return;
    {
      const KinLock lock(slot);
      if (slot.leaving_children != 0) return;
    }
    FinishRestart(worker, slot);
  } else if (message.Is<StopActor>()) {
    turn.Set(Gate::kStopping);
  } else if (const auto* failed = message.TryAs<ChildFailed>()) {
    OnChildFailed(worker, slot, message.sender(), *failed);
  } else if (message.Is<SuspendActor>()) {
    ++turn.failures;
    TellChildren<SuspendActor>(slot);
  } else if (message.Is<ResumeActor>()) {
    ResumeActorNow(worker, slot);
  } else if (const auto* restart = message.TryAs<RestartActor>()) {
    BeginRestart(worker, slot, restart->reason);
  } else if (message.Is<RestartPutOff>()) {
    if (const CellState* const state = CellState::Find(slot)) FailAskOfFailed(slot, *state);
  } else if (const auto* ended = message.TryAs<ActorEnded>()) {
    OnWatchedEnded(worker, slot, *ended);
  } else if (const auto* watch = message.TryAs<WatchActor>()) {
    CellState::Of(slot).watchers.Insert(watch->watcher);
  } else if (const auto* promised = message.TryAs<WatchPromiseOf>()) {
    if (!WatchPromise(slot, promised->promise, promised->watcher)) OnPromiseEnded(promised->promise, promised->watcher);
  } else if (const auto* unwatch = message.TryAs<UnwatchActor>()) {
    if (CellState* const state = CellState::Find(slot)) state->watchers.Erase(unwatch->watcher);
  } else if (const auto* other = message.TryAs<WatchOther>()) {
    if (!turn.Has(Gate::kStopping)) Watch(ActorContext::Of(slot), other->actor, nullptr, nullptr).IgnoreError();
  } else if (const auto* observe = message.TryAs<ObserveActor>()) {
    slot.type.store(observe->id, std::memory_order_relaxed);
  } else if (message.Is<UnobserveActor>()) {
    ForgetObserved(slot);
  } else if (message.Is<SubscribedToEvents>()) {
    CellState::Of(slot).is_subscribed = true;
  } else if (auto* task = message.TryAs<TaskForActor>()) {
    FailureCause cause = FailureCause::kReturned;
    absl::Status ran = MessageInvoker::Call(
        "a task", [&] { return RunTask(ActorContext::Of(slot), std::move(task->task)); }, &cause);
    if (!ran.ok()) MessageInvoker::Fail(worker, slot, ran, cause, nullptr);
  } else if (CellState* const state = CellState::Find(slot)) {
    for (size_t i = 0; i < state->attachments.size(); ++i) {
      if (state->attachments[i].attachment->OnSystemMessage(ActorContext::Of(slot), message)) return;
    }
  }
}

void ActorTree::OnActivity(ActorWorker& /*worker*/, ActorSlot& slot) {
  CellState* const state = CellState::Find(slot);
  if (state == nullptr) return;
  for (size_t i = 0; i < state->attachments.size(); ++i) {
    state->attachments[i].attachment->OnActivity(ActorContext::Of(slot));
  }
}

Envelope* ActorTree::OnMarkedMessage(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  // First whoever may have put it there, such as a timer, which knows whether it still counts.
  CellState* const state = CellState::Find(slot);
  for (size_t i = 0; state != nullptr && i < state->attachments.size(); ++i) {
    if (!state->attachments[i].attachment->OnMarkedMessage(ActorContext::Of(slot), envelope)) continue;
    if (envelope == nullptr || (envelope->target_word() & kMarked) == 0) return envelope;
    break;
  }
  if (envelope->Is<Terminated>()) return TakeTerminated(worker, slot, envelope);
  EnvelopePtr ended(envelope);
  if (envelope->Is<PoisonPill>() && !slot.instance->TakesPoisonPill()) {
    worker.turn.Set(Gate::kStopping);
  } else if (envelope->Is<Kill>()) {
    MessageInvoker::Fail(worker, slot,
                         MakeError(absl::StatusCode::kAborted, ActorErrorKind::kKilled,
                                   absl::StrCat(PathOf(slot.ref()), " was told Kill")),
                         FailureCause::kKilled, nullptr);
  } else if (const auto* identify = envelope->TryAs<Identify>()) {
    worker.Tell(envelope->sender(), ActorIdentity{.id = identify->id, .ref = worker.turn.self()});
  } else {
    // It means nothing to this actor but what its handlers make of it.
    envelope->set_target_word(worker.turn.word);
    return ended.release();
  }
  return nullptr;
}

void ActorTree::Stop(ActorContext& context, ActorRef actor) {
  if (actor == context.self()) {
    context.Stop();
  } else if (actor.IsActor() && ParentSlotOf(*actor.slot()) == &context.slot()) {
    StopChild(context.slot(), actor);
  } else {
    Stop(actor);
  }
}

// A child that is awaited: a parent that restarts goes on only after it has ended.
void ActorTree::StopChild(ActorSlot& parent, ActorRef child) {
  {
    const KinLock lock(parent);
    ActorSlot& slot = *child.slot();
    if (!slot.IsAt(child.generation()) || ParentSlotOf(slot) != &parent) return;
    if (!slot.leaving) {
      slot.leaving = true;
      ++parent.leaving_children;
    }
  }
  Stop(child);
}

void ActorTree::StopChildren(ActorSlot& slot) {
  for (const ActorRef child : ChildrenOf(slot.ref())) StopChild(slot, child);
}

template <class M>
void ActorTree::TellChildren(ActorSlot& slot, const ActorSlot* except) {
  const KinLock lock(slot);
  for (uint32_t at = NewestChild(slot); at != ActorKin::kNone;) {
    ActorSlot& child = SlotAt(at);
    at = child.kin.next_sibling;
    // Looked at once: it may be ending at this moment. One that has ended is told nothing: what would be sent to its
    // slot would be taken for a message to it.
    const ActorRef ref = child.ref();
    if (&child != except && ref.generation() % 2 == 1) TellSystem(ref, MakeEnvelope<M>(ActorRef()));
  }
}
template void ActorTree::TellChildren<SuspendActor>(ActorSlot& slot, const ActorSlot* except);
template void ActorTree::TellChildren<ResumeActor>(ActorSlot& slot, const ActorSlot* except);

bool ActorTree::MayEnd(ActorWorker& /*worker*/, ActorSlot& slot) {
  if (HasNeverHadChildren(slot)) return true;
  const uint8_t before = PhaseOf(slot);
  {
    // The last child to end sees that it is awaited, or has ended before.
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

void ActorTree::OnEnding(ActorWorker& worker, ActorSlot& slot) {
  // Without the lock if there is nobody to look at it.
  if (HasNeverHadChildren(slot)) {
    SetPhaseLocked(slot, kEnding);
  } else {
    SetPhase(slot, kEnding);
  }
  CellState* state = CellState::Find(slot);
  if (slot.instance != &NotCreated()) {
    for (size_t i = 0; state != nullptr && i < state->attachments.size(); ++i) {
      state->attachments[i].attachment->BeforeStop(ActorContext::Of(slot));
    }
    // The hook may answer the message that the actor failed on.
    Envelope* const outer = worker.turn.current;
    if (state != nullptr && state->failed_on != nullptr) worker.turn.current = state->failed_on.get();
    const absl::Status stopped = MessageInvoker::Call("PostStop", [&] {
      slot.instance->PostStop(ActorContext::Of(slot));
      return absl::OkStatus();
    });
    worker.turn.current = outer;
    if (!stopped.ok()) LogOf(LogLevel::kError, slot.ref(), slot, ToStd(stopped.message()));
    // The hook may have been the first to need one.
    state = CellState::Find(slot);
  }
  if (state != nullptr) {
    for (size_t i = 0; i < state->attachments.size(); ++i) {
      state->attachments[i].attachment->OnStop(ActorContext::Of(slot));
    }
    state->attachments.clear();
    EndFailedMessage(slot);
    if (state->is_subscribed && options_.events != nullptr) {
      options_.events->UnsubscribeAll(EventSubscriberOf(worker.turn.self()));
    }
  }
  // Before its references are stale: nobody waits for a reply that does not reach the mailbox.
  if (slot.extension != nullptr) CloseAsks(worker, slot);
  // Its path stays until the mailbox is empty: what is left in it becomes dead letters, which name it.
  MailboxRegistry::Unregister(slot);
  const ActorProps* const props = slot.kin.props;
  Unmake(worker.cache(), slot);
  slot.instance = nullptr;
  if (props->options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(slot.dispatcher);
  props->RemoveUser();
}

// The child leaves its parent by itself, so that its slot is free at once, however busy the parent is. The parent lives:
// it does not end before its last child has left.
void ActorTree::OnEnded(ActorWorker& worker, ActorSlot& slot) {
  const ActorRef ended = worker.turn.self();
  ForgetObserved(slot);
  const std::unique_ptr<LifecycleState> state = std::move(worker.turn.ended_state);
  // Nobody can say it when the name is free.
  const bool is_watched = state != nullptr && !static_cast<const CellState&>(*state).watchers.empty();
  const std::string path = is_watched ? PathOf(ended) : std::string();
  // Before anybody hears of the end: the name is free then.
  if (options_.names != nullptr && ActorNames::Has(slot)) options_.names->Unregister(slot, ended.generation());
  if (options_.observer != nullptr) options_.observer->OnEnded(ended);
  ActorSlot* const parent = slot.kin.parent;
  const ActorRef awaited_by = parent == nullptr ? ActorRef() : Leave(*parent, slot);
  if (!awaited_by.IsNoOne()) TellSystem(awaited_by, MakeEnvelope<ChildrenEnded>(worker.cache(), ActorRef()));
  EndChildren(worker.cache(), slot);
  worker.slots().Release(&slot);
  if (state != nullptr) {
    auto& cell = static_cast<CellState&>(*state);
    for (const ActorRef watcher : cell.watchers) {
      TellSystem(watcher, MakeEnvelope<ActorEnded>(worker.cache(), ActorRef(), ended, true, false, path));
    }
    std::vector<std::pair<uint64_t, ActorRef>> watched;
    for (const auto& [actor, how] : cell.watching) {
      if (!how.has_ended) watched.emplace_back(how.order, actor);
    }
    std::sort(watched.begin(), watched.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [order, actor] : watched) {
      TellSystem(actor, MakeEnvelope<UnwatchActor>(worker.cache(), ActorRef(), ended));
    }
  }
  if (parent == nullptr && options_.on_root_ended != nullptr) options_.on_root_ended(ended);
}

// Whoever waits for that: the parent, or no one.
ActorRef ActorTree::Leave(ActorSlot& parent, ActorSlot& child) {
  const ActorKin& gone = child.kin;
  std::unique_ptr<ChildIndex> unused;  // Ends after the lock.
  const KinLock lock(parent);
  ChildList& siblings = *parent.kin.children;
  if (siblings.index != nullptr) [[unlikely]]
    unused = RemoveFromIndex(siblings, child);
  (gone.previous_sibling == ActorKin::kNone ? siblings.first : SlotAt(gone.previous_sibling).kin.next_sibling) =
      gone.next_sibling;
  if (gone.next_sibling != ActorKin::kNone) {
    SlotAt(gone.next_sibling).kin.previous_sibling = gone.previous_sibling;
  }
  --siblings.count;
  bool is_awaited = siblings.count == 0;
  if (std::exchange(child.leaving, false)) is_awaited = --parent.leaving_children == 0 || is_awaited;
  return is_awaited && PhaseOf(parent) != kLiving ? parent.ref() : ActorRef();
}

ActorRef ActorTree::ParentOf(ActorRef actor) const {
  if (!actor.IsActor() || !actor.IsCurrent()) return {};
  const ActorSlot* const parent = ParentSlotOf(*actor.slot());
  const ActorRef ref = parent == nullptr ? ActorRef() : parent->RefAt(parent->generation());
  // If the actor lives, so does its parent, and all that was read is theirs.
  return actor.IsCurrent() ? ref : ActorRef();
}

ActorRef ActorTree::ChildOf(ActorRef actor, std::string_view name) const {
  return options_.names == nullptr ? ActorRef() : options_.names->FindChild(actor, name);
}

std::vector<ActorRef> ActorTree::ChildrenOf(ActorRef actor) const {
  std::vector<ActorRef> children;
  if (!actor.IsActor()) return children;
  ActorSlot& slot = *actor.slot();
  const KinLock lock(slot);
  // With the lock, since another actor may have taken the slot over before.
  if (!slot.IsAt(actor.generation())) return children;
  children.reserve(CountChildren(slot));
  for (uint32_t at = NewestChild(slot); at != ActorKin::kNone;) {
    ActorSlot& child = SlotAt(at);
    at = child.kin.next_sibling;
    const ActorRef ref = child.ref();
    if (ref.generation() % 2 == 1) children.push_back(ref);
  }
  // The newest is linked first.
  std::reverse(children.begin(), children.end());
  return children;
}

std::vector<ActorRef> ActorTree::Living(ActorRef root, size_t limit) const {
  std::vector<ActorRef> found;
  if (!root.IsCurrent()) return found;
  found.push_back(root);
  for (size_t at = 0; at < found.size() && found.size() < limit; ++at) {
    for (const ActorRef child : ChildrenOf(found[at])) {
      if (found.size() >= limit) break;
      found.push_back(child);
    }
  }
  return found;
}

std::string ActorTree::PathOf(ActorRef actor) const {
  if (actor.IsNoOne()) return "no one";
  if (actor.IsRemote()) return actor.remote_slot()->link->PathOf(actor);
  if (actor.IsPromise()) {
    std::string path = options_.names == nullptr ? std::string() : options_.names->TextOfPromise(actor);
    if (!path.empty()) return path;
    return absl::StrCat(actor.IsCurrent() ? "an ask" : "an ask that is over", " (slot ",
                        PromiseSlotTable::IndexOf(actor.promise_slot()), ", generation ", actor.generation(), ")");
  }
  if (options_.names != nullptr) {
    const ActorWorker* const worker = ActorWorker::Current();
    const ActorRef running = worker == nullptr ? ActorRef() : worker->turn.self();
    const bool in_its_turn = running.Plain() == actor.Plain();
    std::string path = in_its_turn ? options_.names->TextInTurnOf(actor) : options_.names->TextOf(actor);
    if (!path.empty()) return path;
  }
  const bool lives = actor.IsCurrent();
  if (!lives && options_.names != nullptr) {
    if (std::string path = options_.names->TextOfEnded(actor); !path.empty()) return path;
  }
  return absl::StrCat(lives ? "an actor" : "an actor that has ended", " (slot ", ActorSlotTable::IndexOf(actor.slot()),
                      ", generation ", actor.generation(), ")");
}

std::string ActorTree::CanonicalPathOf(ActorRef actor) const {
  if (actor.IsNoOne()) return {};
  if (actor.IsRemote()) return actor.remote_slot()->link->CanonicalPathOf(actor);
  return options_.names == nullptr ? std::string() : options_.names->CanonicalTextOf(actor);
}

std::string ActorTree::DescribeFromOutside(ActorRef actor) const {
  if (!actor.IsActor() || !actor.IsCurrent()) return "it has ended";
  return options_.dispatchers.IsBeingRun(*actor.slot())
             ? "it is in a handler that has not returned, so how many messages wait in its mailbox is not known"
             : "it has something to do and waits for a worker, or belongs to another system";
}

RuntimeToolbox* ActorTree::Toolbox() const {
  if (options_.toolbox != nullptr) return options_.toolbox;
  const ActorWorker* const worker = ActorWorker::Current();
  return worker == nullptr ? nullptr : worker->toolbox;
}

Instant ActorTree::Now() const {
  const RuntimeToolbox* const toolbox = Toolbox();
  return toolbox == nullptr ? Instant() : toolbox->Now();
}

void ActorTree::Log(LogLevel level, ActorRef actor, std::string_view text, LogSite site) const {
  LogOf(level, actor, *actor.slot(), text, site);
}

void ActorTree::LogOf(LogLevel level, ActorRef actor, const ActorSlot& slot, std::string_view text,
                      LogSite site) const {
  if (options_.log == nullptr || !options_.log->IsOn(level)) return;
  const std::string path = PathOf(actor);
  const std::string type = TypeName(slot.type.load(std::memory_order_relaxed));
  const RuntimeToolbox* const toolbox = Toolbox();
  const absl::Time at = toolbox == nullptr ? absl::UnixEpoch() : toolbox->WallNow();
  options_.log->Log(level, {.at = at, .path = path, .type = type, .text = text}, site);
}

void ActorTree::LogStall(std::string_view worker, const WorkerStall& stall) const {
  if (!options_.log->IsOn(LogLevel::kWarning)) return;
  const std::string type = TypeName(stall.actor_type);
  const std::string text = absl::StrCat(
      "has held worker ", ToAbsl(worker), " for ", absl::FormatDuration(absl::Trunc(stall.held, absl::Milliseconds(1))),
      ", and still does: others wait. Work that blocks belongs to a BlockingPool, or to an actor of "
      "DispatcherChoice::kPinned");
  const RuntimeToolbox* const toolbox = Toolbox();
  const absl::Time at = toolbox == nullptr ? absl::UnixEpoch() : toolbox->WallNow();
  options_.log->Log(LogLevel::kWarning, {.at = at, .type = type, .text = text});
}

// Of a question that its recipient has not handled.
bool ActorTree::IsAdopted(TableSlot* slot, EnvelopePtr& envelope, DeadLetterReason reason) {
  const bool to_elsewhere = (envelope->target_word() & ActorRef::kRemote) != 0;
  if (reason != DeadLetterReason::kStopped || options_.events == nullptr || slot == nullptr || to_elsewhere ||
      envelope->is_system() || envelope->type()->is_intercepted()) {
    return false;
  }
  const ActorRef sender = envelope->sender();
  const bool is_asked = sender.IsRemote() ? sender.remote_slot()->link->IsPromise(sender)
                                          : sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0;
  if (!is_asked) return false;
  const ActorRef recipient = ActorRef(slot, envelope->target_word()).Plain();
  if (HasEndCause(recipient)) return false;
  options_.events->PublishToAll(OrphanedMessage{recipient, envelope});
  return envelope == nullptr;
}

void ActorTree::OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, TableSlot* slot, DeadLetterReason reason) {
  if (envelope->is_system() && reason != DeadLetterReason::kLateReply) {
    // Who watches too late hears of it at once.
    if (const auto* watch = envelope->TryAs<WatchPromiseOf>()) OnPromiseEnded(watch->promise, watch->watcher);
    if (const auto* watch = envelope->TryAs<WatchActor>()) {
      const ActorRef target(slot, envelope->target_word());
      TellSystem(watch->watcher, MakeEnvelope<ActorEnded>(cache, ActorRef(), target, true, false, PathOf(target)));
    } else if (envelope->Is<SubscribedToEvents>() && options_.events != nullptr) {
      options_.events->UnsubscribeAll(EventSubscriberOf(ActorRef(slot, envelope->target_word())));
    } else if (const auto* observe = envelope->TryAs<ObserveActor>()) {
      options_.hub->Release(observe->id);
    }
    return;
  }
  dead_letter_count_.fetch_add(1, std::memory_order_relaxed);
  envelope = UnwrapRouted(std::move(envelope));
  // Who asked need not wait until the time is over.
  const ActorRef sender = envelope->sender();
  const ActorRef recipient = slot == nullptr ? ActorRef() : ActorRef(slot, envelope->target_word()).Plain();
  if (options_.observer != nullptr) options_.observer->OnDeadLetter(recipient, *envelope, reason);
  if (options_.dead_letters != nullptr) {
    const MessageView message{
        .type_name = envelope->type()->name(), .type = envelope->type(), .message = envelope->payload()};
    const Instant now = Now();
    const std::string from = sender.IsNoOne() ? std::string() : PathOf(sender);
    const std::string to = PathOf(recipient);
    const AllDeadLetters letter{.reason = reason, .sender = from, .recipient = to, .message = message};
    // That a question has failed is of no use to anybody but who asked it.
    if (envelope->type()->is_suppressed() || envelope->Is<ErrorReply>()) {
      options_.dead_letters->Publish(SuppressedDeadLetter{letter}, now);
    } else if (reason == DeadLetterReason::kMailboxFull) {
      options_.dead_letters->Publish(Dropped{letter}, now);
    } else {
      options_.dead_letters->Publish(DeadLetter{letter}, now);
    }
  }
  if (reason == DeadLetterReason::kLateReply) return;
  const auto why = [&] { return NobodyWillAnswer(*envelope, recipient, PathOf(recipient), reason); };
  const bool is_asked_of_it_alone = sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0;
  if (sender.IsRemote()) {
    FailRemoteAsk(sender, why);
  } else if (is_asked_of_it_alone && sender.IsCurrent()) {
    AnswerPromise(sender, MakeEnvelope<ErrorReply>(cache, ActorRef(), why()).release());
  }
}

}  // namespace fraktor::inline v0
