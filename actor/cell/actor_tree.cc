#include "fraktor/actor/cell/actor_tree.h"

#include <cxxabi.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/actor/turn/actor_worker.h"
#include "fraktor/actor/turn/dispatcher_table.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/slot_extension.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// System messages of the tree.
struct StopActor {};
struct SuspendActor {};  // Because an ancestor has failed.
struct ResumeActor {};   // The verdict on an ancestor, or on itself.
struct RestartActor {};  // The verdict.
struct ChildFailed {
  ActorRef child;
  absl::Status error;
};
struct ChildrenEnded {};  // The last one, and the parent has been waiting for that.

// ActorSlot::phase.
enum Phase : uint8_t {
  kLiving,
  kStoppingChildren,  // They have been told.
  kRestarting,        // Waits for its children to end.
  kEnding,            // All children have ended; its last hook runs.
};

constexpr int kTypeBits = 16;
std::atomic<uint64_t> next_serial{1};

ActorSlot& SlotAt(uint32_t number) { return *ProcessSlots().At(number); }

bool HasChildren(ActorSlot& slot) {
  const KinLock lock(slot);
  return slot.kin.children != 0;
}

// By the holder.
void SetPhase(ActorSlot& slot, uint8_t phase) {
  const KinLock lock(slot);
  slot.phase = phase;
}

}  // namespace

ActorTree::ActorTree(const ActorTreeOptions& options)
    : options_(options), serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

ActorTree::~ActorTree() {
  NodeCache& cache = NodeCache::OfThisThread();
  options_.mailboxes.slots().ForEachInUse([&](ActorSlot& slot) {
    if (slot.instance == nullptr) return;  // A promise.
    MailboxRegistry::Abandon(slot);
    slot.kin.props->Unmake(cache, std::exchange(slot.instance, nullptr));
    slot.kin.props->RemoveUser();
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
  MutexLock lock(mutex_);
  const auto found = type_names_.find(type);
  return found == type_names_.end() ? "other" : found->second;
}

// What the constructor of an actor has just thrown.
[[gnu::noinline, gnu::cold]] absl::Status ActorTree::ConstructorThrew(const ActorProps& props) {
  const absl::string_view type = ToAbsl(props.type_name());
  try {
    throw;
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("the constructor of ", type, " threw: ", e.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat("the constructor of ", type, " threw"));
  }
}

[[gnu::noinline, gnu::cold]] absl::Status ActorTree::EndsChildren() {
  return absl::FailedPreconditionError("an actor that stops, or is about to be restarted, spawns no children");
}

MailboxSpec ActorTree::SpecOf(const ActorProps& props, ActorInstance* instance, uint16_t dispatcher) {
  return {.instance = instance,
          .dispatcher = dispatcher,
          .type = TypeOf(props),
          .options = props.has_plain_mailbox() ? nullptr : &props.options().mailbox,
          .gate = props.has_start() ? static_cast<uint8_t>(Gate::kStarting) : uint8_t{0}};
}

// A slot for the instance, by whatever dispatcher and options the props have. The instance is gone if there is none.
template <class Register>
absl::StatusOr<ActorSlot*> ActorTree::Put(NodeCache& cache, const ActorProps& props, ActorInstance* instance,
                                          Register register_slot) {
  const absl::StatusOr<uint16_t> dispatcher = options_.dispatchers.NumberFor(props.options().dispatcher);
  absl::StatusOr<ActorSlot*> slot = dispatcher.ok() ? register_slot(SpecOf(props, instance, *dispatcher))
                                                    : absl::StatusOr<ActorSlot*>(dispatcher.status());
  if (slot.ok()) return slot;
  props.Unmake(cache, instance);
  if (dispatcher.ok() && props.options().dispatcher == DispatcherChoice::kPinned) {
    options_.dispatchers.EndPinned(*dispatcher);
  }
  return slot;
}

absl::StatusOr<ActorRef> ActorTree::Spawn(ActorContext& parent, const ActorProps& props) {
  ActorWorker& worker = ActorContext::worker();
  // It would outlive its parent, or the parent would wait for it for ever.
  if (parent.slot().phase != kLiving) [[unlikely]]
    return EndsChildren();
  ActorInstance* instance = nullptr;
  try {
    instance = props.Make(worker.cache());
  } catch (...) {
    return ConstructorThrew(props);
  }
  ActorSlot* slot = nullptr;
  // Most actors, with a slot at hand.
  if (props.has_plain_mailbox() && props.options().dispatcher == DispatcherChoice::kDefault) [[likely]] {
    slot = MailboxRegistry::TryRegister(worker.slots(),
                                        SpecOf(props, instance, options_.dispatchers.default_pool().number()));
  }
  if (slot == nullptr) [[unlikely]] {
    FRAKTOR_ASSIGN_OR_RETURN(slot, Put(worker.cache(), props, instance, [&](const MailboxSpec& spec) {
                               return options_.mailboxes.Register(worker.slots(), spec);
                             }));
  }
  slot->kin.props = &props;
  props.AddUser();
  ActorKin& mine = parent.slot().kin;
  ActorKin& kin = slot->kin;
  const uint32_t number = ActorSlotTable::IndexOf(slot);
  // Born to a parent that waits for a verdict, it waits too.
  slot->failures = worker.turn.failures;
  kin.parent = &parent.slot();
  kin.number = mine.next_number++;
  {
    const KinLock lock(parent.slot());
    kin.next_sibling = mine.first_child;
    if (mine.first_child != ActorKin::kNone) SlotAt(mine.first_child).kin.previous_sibling = number;
    mine.first_child = number;
    ++mine.children;
  }
  const ActorRef ref = slot->ref();
  if (props.has_start()) {
    worker.outbox.MakeReady(*slot);
  } else {
    MailboxRegistry::LetGo(*slot);
  }
  return ref;
}

absl::StatusOr<ActorRef> ActorTree::SpawnRoot(const ActorProps& props) {
  NodeCache& cache = NodeCache::OfThisThread();
  ActorInstance* instance = nullptr;
  try {
    instance = props.Make(cache);
  } catch (...) {
    return ConstructorThrew(props);
  }
  FRAKTOR_ASSIGN_OR_RETURN(ActorSlot* const slot, Put(cache, props, instance, [&](const MailboxSpec& spec) {
                             return options_.mailboxes.Register(spec);
                           }));
  slot->kin.props = &props;
  props.AddUser();
  const ActorRef ref = slot->ref();
  if (!props.has_start()) {
    MailboxRegistry::LetGo(*slot);
  } else if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->BecameReady(*slot);
  } else {
    DispatcherTable::RegisterOrEmpty(*slot);
  }
  return ref;
}

void ActorTree::Stop(ActorRef actor) { TellSystem(actor, MakeEnvelope<StopActor>(ActorRef())); }

absl::Status ActorTree::OnStart(ActorWorker& /*worker*/, ActorSlot& slot) {
  return slot.instance->PreStart(ActorContext::Of(slot));
}

void ActorTree::OnSystemMessage(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  Turn& turn = worker.turn;
  if (message.Is<ChildrenEnded>()) {
    // One that stops is asked again whether it may end.
    if (slot.phase == kRestarting && !HasChildren(slot)) FinishRestart(worker, slot);
  } else if (message.Is<StopActor>()) {
    turn.Set(Gate::kStopping);
  } else if (const auto* failed = message.TryAs<ChildFailed>()) {
    OnChildFailed(worker, slot, failed->child, failed->error);
  } else if (message.Is<SuspendActor>()) {
    ++turn.failures;
    TellChildren<SuspendActor>(slot);
  } else if (message.Is<ResumeActor>()) {
    Resume(worker, slot);
  } else if (message.Is<RestartActor>()) {
    BeginRestart(worker, slot);
  }
}

void ActorTree::OnFailure(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, Envelope* /*message*/) {
  Report(worker, slot, error, nullptr);
}

void ActorTree::Report(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, const ActorSlot* culprit) {
  TellChildren<SuspendActor>(slot, culprit);
  if (slot.kin.parent == nullptr) {
    Sentence(worker, slot, slot.ref(), error);
  } else {
    TellSystem(slot.kin.parent->ref(), MakeEnvelope<ChildFailed>(worker.cache(), ActorRef(), slot.ref(), error));
  }
}

void ActorTree::OnChildFailed(ActorWorker& worker, ActorSlot& slot, ActorRef child, const absl::Status& error) {
  // One that is stopping, or restarting, stops its children: that is the verdict.
  if (slot.phase == kLiving && !worker.turn.Has(Gate::kStopping)) Sentence(worker, slot, child, error);
}

SupervisionVerdict ActorTree::VerdictOn(ActorRef child, const absl::Status& error) const {
  if (options_.supervisor == nullptr) return SupervisionVerdict::kRestart;
  try {
    return options_.supervisor(child, error);
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (...) {
    return SupervisionVerdict::kStop;
  }
}

void ActorTree::Sentence(ActorWorker& worker, ActorSlot& parent, ActorRef ref, const absl::Status& error) {
  // Somebody else may have stopped it already. Then there is nothing to decide.
  if (!ref.slot()->IsAt(ref.generation())) return;
  SupervisionVerdict verdict = VerdictOn(ref, error);
  if (verdict == SupervisionVerdict::kEscalate && &parent == ref.slot()) verdict = SupervisionVerdict::kStop;
  switch (verdict) {
    case SupervisionVerdict::kResume:
      TellSystem(ref, MakeEnvelope<ResumeActor>(worker.cache(), ActorRef()));
      break;
    case SupervisionVerdict::kRestart:
      TellSystem(ref, MakeEnvelope<RestartActor>(worker.cache(), ActorRef()));
      break;
    case SupervisionVerdict::kStop:
      TellSystem(ref, MakeEnvelope<StopActor>(worker.cache(), ActorRef()));
      break;
    case SupervisionVerdict::kEscalate:
      ++worker.turn.failures;
      // The child is suspended by its own failure: what resumes the parent later resumes it too, once.
      Report(worker, parent, error, ref.slot());
      break;
  }
}

void ActorTree::Resume(ActorWorker& worker, ActorSlot& slot) {
  if (worker.turn.failures > 0) --worker.turn.failures;
  TellChildren<ResumeActor>(slot);
}

void ActorTree::BeginRestart(ActorWorker& worker, ActorSlot& slot) {
  if (worker.turn.Has(Gate::kStopping)) return;
  if (slot.phase == kRestarting) {
    // A verdict on another failure: one restart is enough for both, and the first of them is still open.
    if (worker.turn.failures > 0) --worker.turn.failures;
    return;
  }
  SetPhase(slot, kRestarting);
  if (HasChildren(slot)) {
    TellChildren<StopActor>(slot);
  } else {
    FinishRestart(worker, slot);
  }
}

void ActorTree::FinishRestart(ActorWorker& worker, ActorSlot& slot) {
  SetPhase(slot, kLiving);
  const ActorProps& props = *slot.kin.props;
  ActorInstance* fresh = nullptr;
  try {
    fresh = props.Make(worker.cache());
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (...) {
    // It cannot be made again.
    worker.turn.Set(Gate::kStopping);
    return;
  }
  props.Unmake(worker.cache(), std::exchange(slot.instance, fresh));
  // The failure is over; ancestors may still be suspended, and have counted here too.
  if (worker.turn.failures > 0) --worker.turn.failures;
  if (props.has_start()) worker.turn.Set(Gate::kStarting);
}

template <class M>
void ActorTree::TellChildren(ActorSlot& slot, const ActorSlot* except) {
  const KinLock lock(slot);
  for (uint32_t at = slot.kin.first_child; at != ActorKin::kNone;) {
    ActorSlot& child = SlotAt(at);
    at = child.kin.next_sibling;
    // Looked at once: it may be ending at this moment. One that has ended is told nothing: what would be sent to its
    // slot would be taken for a message to it.
    const ActorRef ref = child.ref();
    if (&child != except && ref.generation() % 2 == 1) TellSystem(ref, MakeEnvelope<M>(ActorRef()));
  }
}

bool ActorTree::MayEnd(ActorWorker& /*worker*/, ActorSlot& slot) {
  if (slot.kin.next_number == 0) return true;  // It has never had any.
  const uint8_t before = slot.phase;
  {
    // The last child to end sees that it is awaited, or has ended before.
    const KinLock lock(slot);
    if (slot.kin.children == 0) return true;
    slot.phase = kStoppingChildren;
  }
  if (before == kLiving) TellChildren<StopActor>(slot);
  return false;
}

void ActorTree::OnEnding(ActorWorker& worker, ActorSlot& slot) {
  slot.phase = kEnding;  // Without the lock: there are no children.
  try {
    slot.instance->PostStop(ActorContext::Of(slot));
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (...) {
    // Nobody is left whom this could concern.
  }
  MailboxRegistry::Unregister(slot);
  const ActorProps* const props = slot.kin.props;
  props->Unmake(worker.cache(), std::exchange(slot.instance, nullptr));
  if (props->options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(slot.dispatcher);
  props->RemoveUser();
}

// The child leaves its parent by itself, so that its slot is free at once, however busy the parent is. The parent lives:
// it does not end before its last child has left.
void ActorTree::OnEnded(ActorWorker& worker, ActorSlot& slot) {
  ActorRef awaited_by;
  if (ActorSlot* const parent = slot.kin.parent) {
    const ActorKin& gone = slot.kin;
    ActorKin& kin = parent->kin;
    const KinLock lock(*parent);
    (gone.previous_sibling == ActorKin::kNone ? kin.first_child : SlotAt(gone.previous_sibling).kin.next_sibling) =
        gone.next_sibling;
    if (gone.next_sibling != ActorKin::kNone) {
      SlotAt(gone.next_sibling).kin.previous_sibling = gone.previous_sibling;
    }
    if (--kin.children == 0 && parent->phase != kLiving) awaited_by = parent->ref();
  }
  worker.slots().Release(&slot);
  if (!awaited_by.IsNoOne()) TellSystem(awaited_by, MakeEnvelope<ChildrenEnded>(worker.cache(), ActorRef()));
}

void ActorTree::OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, ActorSlot* /*slot*/, DeadLetterReason reason) {
  static_cast<void>(cache);
  if (envelope->is_system() && reason != DeadLetterReason::kLateReply) return;
  dead_letter_count_.fetch_add(1, std::memory_order_relaxed);
  if (options_.dead_letters == nullptr) return;
  const MessageView message{
      .type_name = envelope->type()->name(), .type = envelope->type(), .message = envelope->payload()};
  const ActorWorker* const worker = ActorWorker::Current();
  const Instant now = worker == nullptr || worker->toolbox == nullptr ? Instant() : worker->toolbox->Now();
  if (reason == DeadLetterReason::kMailboxFull) {
    options_.dead_letters->Publish(Dropped{{.reason = reason, .message = message}}, now);
  } else {
    options_.dead_letters->Publish(DeadLetter{{.reason = reason, .message = message}}, now);
  }
}

}  // namespace fraktor::inline v0
