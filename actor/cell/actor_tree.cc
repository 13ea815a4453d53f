#include "fraktor/actor/cell/actor_tree.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/scheduler/actor_instance.h"
#include "fraktor/actor/scheduler/actor_worker.h"
#include "fraktor/actor/scheduler/dispatcher_table.h"
#include "fraktor/actor/scheduler/mailing.h"
#include "fraktor/actor/scheduler/slot_extension.h"
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
  ActorSlot* child;
  absl::Status error;
};
struct ChildEnded {
  ActorSlot* child;
};

// ActorSlot::phase.
enum Phase : uint8_t {
  kLiving,
  kStoppingChildren,  // They have been told.
  kRestarting,        // Waits for its children to end.
};

constexpr int kTypeBits = 16;
std::atomic<uint64_t> next_serial{1};

ActorSlot& SlotAt(uint32_t number) { return *ProcessSlots().At(number); }

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

uint16_t ActorTree::TypeOf(const ActorProps& props) {
  const uint64_t memo = props.memo().load(std::memory_order_relaxed);
  if (memo >> kTypeBits == serial_) return static_cast<uint16_t>(memo);
  const std::string name(props.type_name());
  uint16_t type = options_.hub == nullptr ? 0 : options_.hub->TypeId(name);
  {
    MutexLock lock(mutex_);
    // Without a hub the tree counts for itself; 0 stands for all that are too many.
    if (options_.hub == nullptr || !options_.hub->enabled()) {
      const size_t next = types_.size() + 1;
      type = types_.try_emplace(name, next <= UINT16_MAX ? static_cast<uint16_t>(next) : uint16_t{0}).first->second;
    }
    type_names_.try_emplace(type, name);
  }
  props.memo().store(serial_ << kTypeBits | type, std::memory_order_relaxed);
  return type;
}

std::string ActorTree::TypeName(uint16_t type) const {
  MutexLock lock(mutex_);
  const auto found = type_names_.find(type);
  return found == type_names_.end() ? "other" : found->second;
}

// Makes the instance and puts it into a slot that `register_slot` gets for the spec.
template <class Register>
absl::StatusOr<ActorSlot*> ActorTree::Put(NodeCache& cache, const ActorProps& props, Register register_slot) {
  FRAKTOR_ASSIGN_OR_RETURN(const uint16_t dispatcher,
                           options_.dispatchers.NumberFor(props.options().dispatcher));
  ActorInstance* instance = nullptr;
  absl::StatusOr<ActorSlot*> slot = nullptr;
  try {
    instance = props.Make(cache);
  } catch (const std::exception& e) {
    slot = absl::InternalError(absl::StrCat("the constructor of ", ToAbsl(props.type_name()), " threw: ", e.what()));
  } catch (...) {
    slot = absl::InternalError(absl::StrCat("the constructor of ", ToAbsl(props.type_name()), " threw"));
  }
  if (slot.ok()) {
    slot = register_slot(MailboxSpec{.instance = instance,
                                     .dispatcher = dispatcher,
                                     .type = TypeOf(props),
                                     .options = props.has_plain_mailbox() ? nullptr : &props.options().mailbox,
                                     .gate = props.has_start() ? static_cast<uint8_t>(Gate::kStarting) : uint8_t{0}});
  }
  if (!slot.ok()) {
    if (instance != nullptr) props.Unmake(cache, instance);
    if (props.options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(dispatcher);
    return slot.status();
  }
  (*slot)->kin.props = &props;
  props.AddUser();
  return slot;
}

absl::StatusOr<ActorRef> ActorTree::Spawn(ActorContext& parent, const ActorProps& props) {
  ActorWorker& worker = ActorContext::worker();
  FRAKTOR_ASSIGN_OR_RETURN(ActorSlot* const slot, Put(worker.cache(), props, [&](const MailboxSpec& spec) {
                             return options_.mailboxes.Register(worker.slots(), spec);
                           }));
  ActorKin& mine = parent.slot().kin;
  ActorKin& kin = slot->kin;
  const uint32_t number = ActorSlotTable::IndexOf(slot);
  kin.parent = &parent.slot();
  kin.number = mine.next_number++;
  kin.next_sibling = mine.first_child;
  if (mine.first_child != ActorKin::kNone) SlotAt(mine.first_child).kin.previous_sibling = number;
  mine.first_child = number;
  ++mine.children;
  const ActorRef ref = slot->ref();
  if (props.has_start()) {
    worker.outbox.MakeReady(*slot);
  } else {
    MailboxRegistry::LetGo(*slot);
  }
  return ref;
}

absl::StatusOr<ActorRef> ActorTree::SpawnRoot(const ActorProps& props) {
  FRAKTOR_ASSIGN_OR_RETURN(ActorSlot* const slot,
                           Put(NodeCache::OfThisThread(), props,
                               [&](const MailboxSpec& spec) { return options_.mailboxes.Register(spec); }));
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
  if (const auto* ended = message.TryAs<ChildEnded>()) {
    OnChildEnded(worker, slot, *ended->child);
  } else if (message.Is<StopActor>()) {
    turn.Set(Gate::kStopping);
  } else if (const auto* failed = message.TryAs<ChildFailed>()) {
    OnChildFailed(worker, slot, *failed->child, failed->error);
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
  TellChildren<SuspendActor>(slot);
  if (slot.kin.parent == nullptr) {
    Sentence(worker, slot, slot, error);
  } else {
    TellSystem(slot.kin.parent->ref(), MakeEnvelope<ChildFailed>(worker.cache(), ActorRef(), &slot, error));
  }
}

void ActorTree::OnChildFailed(ActorWorker& worker, ActorSlot& slot, ActorSlot& child, const absl::Status& error) {
  // One that is stopping stops its children: that is the verdict.
  if (!worker.turn.Has(Gate::kStopping)) Sentence(worker, slot, child, error);
}

void ActorTree::Sentence(ActorWorker& worker, ActorSlot& parent, ActorSlot& child, const absl::Status& error) {
  const ActorRef ref = child.ref();
  SupervisionVerdict verdict =
      options_.supervisor == nullptr ? SupervisionVerdict::kRestart : options_.supervisor(ref, error);
  if (verdict == SupervisionVerdict::kEscalate && &parent == &child) verdict = SupervisionVerdict::kStop;
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
      OnFailure(worker, parent, error, nullptr);
      break;
  }
}

void ActorTree::Resume(ActorWorker& worker, ActorSlot& slot) {
  if (worker.turn.failures > 0) --worker.turn.failures;
  TellChildren<ResumeActor>(slot);
}

void ActorTree::BeginRestart(ActorWorker& worker, ActorSlot& slot) {
  if (worker.turn.Has(Gate::kStopping)) return;
  slot.phase = kRestarting;
  if (slot.kin.children == 0) {
    FinishRestart(worker, slot);
  } else {
    TellChildren<StopActor>(slot);
  }
}

void ActorTree::FinishRestart(ActorWorker& worker, ActorSlot& slot) {
  slot.phase = kLiving;
  const ActorProps& props = *slot.kin.props;
  ActorInstance* fresh = nullptr;
  try {
    fresh = props.Make(worker.cache());
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

void ActorTree::OnChildEnded(ActorWorker& worker, ActorSlot& slot, ActorSlot& child) {
  ActorKin& mine = slot.kin;
  const ActorKin& gone = child.kin;
  (gone.previous_sibling == ActorKin::kNone ? mine.first_child : SlotAt(gone.previous_sibling).kin.next_sibling) =
      gone.next_sibling;
  if (gone.next_sibling != ActorKin::kNone) {
    SlotAt(gone.next_sibling).kin.previous_sibling = gone.previous_sibling;
  }
  --mine.children;
  worker.slots().Release(&child);
  if (mine.children == 0 && slot.phase == kRestarting) FinishRestart(worker, slot);
}

template <class M>
void ActorTree::TellChildren(ActorSlot& slot) {
  for (uint32_t at = slot.kin.first_child; at != ActorKin::kNone;) {
    ActorSlot& child = SlotAt(at);
    at = child.kin.next_sibling;
    // One that has ended is told nothing: its ChildEnded is on its way.
    if (child.generation() % 2 == 1) TellSystem(child.ref(), MakeEnvelope<M>(ActorRef()));
  }
}

bool ActorTree::MayEnd(ActorWorker& /*worker*/, ActorSlot& slot) {
  if (slot.kin.children == 0) return true;
  if (slot.phase == kLiving) TellChildren<StopActor>(slot);
  slot.phase = kStoppingChildren;
  return false;
}

void ActorTree::OnEnding(ActorWorker& worker, ActorSlot& slot) {
  try {
    slot.instance->PostStop(ActorContext::Of(slot));
  } catch (const std::exception&) {
    // Nobody is left whom this could concern.
  }
  MailboxRegistry::Unregister(slot);
  const ActorProps* const props = slot.kin.props;
  props->Unmake(worker.cache(), std::exchange(slot.instance, nullptr));
  if (props->options().dispatcher == DispatcherChoice::kPinned) options_.dispatchers.EndPinned(slot.dispatcher);
  props->RemoveUser();
}

void ActorTree::OnEnded(ActorWorker& worker, ActorSlot& slot) {
  ActorSlot* const parent = slot.kin.parent;
  if (parent == nullptr) {
    worker.slots().Release(&slot);
  } else {
    TellSystem(parent->ref(), MakeEnvelope<ChildEnded>(worker.cache(), ActorRef(), &slot));
  }
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
