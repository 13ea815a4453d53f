#include "fraktor/actor/dispatch/internal/mailbox_registry.h"

#include <atomic>
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::SlotHandle;

namespace {

// Makes the limits of a slot, which live as long as the process. They are in one list, so that leak
// checkers find them; those do not search the memory of slots.
MailboxLimits& MakeLimits() {
  struct Made {
    Mutex mutex;
    std::deque<MailboxLimits> limits ABSL_GUARDED_BY(mutex);
  };
  static Made& made = *new Made;
  MutexLock lock(made.mutex);
  return made.limits.emplace_back();
}

// Attaches the limits or the order of a mailbox. The holder calls it before anyone has a reference
// to the actor.
void Equip(ActorSlot& slot, uint32_t generation, const MailboxOptions& options) {
  if (options.order != MessageOrder::kFifo) {
    SlotExtension::Of(slot).order = std::make_unique<OrderedEnvelopes>(options);
    slot.gate = slot.gate | Gate::kOrdered;
  }
  if (!options.bounded()) return;
  MailboxLimits* limits = slot.limits.load(std::memory_order_relaxed);
  if (limits == nullptr) {
    limits = &MakeLimits();
    slot.limits.store(limits, std::memory_order_release);
  }
  limits->Configure(generation, options);
  slot.gate = slot.gate | Gate::kOrdered;
  slot.ref_flags.store(kLimitedFlag, std::memory_order_release);
}

// Reserves a free slot and claims its mailbox. If a late sender holds the mailbox of a free slot,
// takes another slot and gives the first one back.
template <class Pool>
absl::StatusOr<SlotHandle<ActorSlot>> ReserveAndClaim(Pool& pool) {
  absl::InlinedVector<ActorSlot*, 4> busy;
  absl::StatusOr<SlotHandle<ActorSlot>> handle = pool.Reserve();
  while (handle.ok() && !handle->slot->mailbox.inbox.TryClaim()) {
    busy.push_back(handle->slot);
    handle = pool.Reserve();
  }
  for (ActorSlot* const slot : busy) pool.Release(slot);
  return handle;
}

}  // namespace

MailboxRegistry::MailboxRegistry(bool threaded) : core_(SystemCore::Acquire(threaded)) {
  pool_.emplace(ProcessSlots(), &core_);
  promises_.emplace(ProcessPromises(), &core_);
}

MailboxRegistry::~MailboxRegistry() {
  // From here on all references to actors and promises of this registry are stale.
  pool_.reset();
  promises_.reset();
  SystemCore::Release(core_);
  MutexLock lock(mutex_);
  for (const uint16_t number : dispatchers_) DispatcherTable::Release(number);
}

void MailboxRegistry::KeepDispatcher(uint16_t number) {
  MutexLock lock(mutex_);
  dispatchers_.push_back(number);
}

void MailboxRegistry::Prepare(ActorSlot& slot, uint32_t generation, const MailboxSpec& spec) {
  slot.instance = spec.instance;
  slot.dispatcher = spec.dispatcher;
  slot.type.store(spec.type, std::memory_order_relaxed);
  slot.failures = 0;
  slot.gate = spec.gate;
  slot.MarkAsNew();
  // Threads with references to an earlier actor may read these at this moment: see ActorKin. A free
  // slot has no children, and no list of them to reset.
  slot.ref_flags.store(0, std::memory_order_release);
  slot.phase.store(0, std::memory_order_release);
  std::atomic_ref<ActorSlot*>(slot.kin.parent).store(nullptr, std::memory_order_release);
  std::atomic_ref<uint64_t>(slot.kin.number).store(0, std::memory_order_release);
  slot.kin.props = nullptr;
  slot.kin.next_sibling = ActorKin::kNone;
  slot.kin.previous_sibling = ActorKin::kNone;
  if (spec.options != nullptr) [[unlikely]]
    Equip(slot, generation, *spec.options);
  ActorSlotPool::Activate({&slot, generation});
}

template <class Pool>
absl::StatusOr<ActorSlot*> MailboxRegistry::RegisterIn(Pool& pool, const MailboxSpec& spec) {
  if (spec.options != nullptr) FRAKTOR_RETURN_IF_ERROR(spec.options->Validate());
  FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<ActorSlot> handle, ReserveAndClaim(pool));
  Prepare(*handle.slot, handle.generation, spec);
  return handle.slot;
}

ActorSlot* MailboxRegistry::TryRegister(ActorSlotPool::Cache& cache, const MailboxSpec& spec) {
  ActorSlot* const slot = cache.ReserveAtHand();
  if (slot == nullptr) return nullptr;
  if (spec.options != nullptr || !slot->mailbox.inbox.TryClaim()) {
    cache.Release(slot);
    return nullptr;
  }
  Prepare(*slot, slot->generation() + 1, spec);
  return slot;
}

absl::StatusOr<ActorSlot*> MailboxRegistry::Register(ActorSlotPool::Cache& cache, const MailboxSpec& spec) {
  return RegisterIn(cache, spec);
}

absl::StatusOr<ActorSlot*> MailboxRegistry::Register(const MailboxSpec& spec) { return RegisterIn(*pool_, spec); }

void MailboxRegistry::LetGo(ActorSlot& slot) {
  if (slot.mailbox.inbox.TryGoIdle()) return;
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->BecameReady(slot);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

void MailboxRegistry::Unregister(ActorSlot& slot) { ActorSlotPool::Deactivate({&slot, slot.generation()}); }

void MailboxRegistry::TakeBack(ActorSlot& slot) {
  // Nothing of the actor is left in the slot when the mailbox goes idle: a worker may run the free
  // slot for late messages.
  if ((slot.flags() & kLimitedFlag) != 0) {
    Leftovers left = slot.limits.load(std::memory_order_acquire)->Close();
    while (Envelope* const envelope = left.dead_letters.PopFront()) slot.mailbox.Post(envelope);
    for (const ActorRef sender : left.resume) TellSystem(sender, MakeEnvelope<RoomFound>(ActorRef(), &slot));
  }
  delete std::exchange(slot.extension, nullptr);  // NOLINT(cppcoreguidelines-owning-memory): the slot owned it.
  LetGo(slot);
}

void MailboxRegistry::Abandon(ActorSlot& slot) {
  // If the mailbox is neither idle nor parked, a late sender has found that the system has ended,
  // and empties it.
  while (!slot.mailbox.inbox.TryClaim() && !slot.mailbox.inbox.TryUnpark()) {
  }
  Discard(slot);
}

void MailboxRegistry::Discard(ActorSlot& slot) {
  const auto drop = [](EnvelopeList list) {
    while (Envelope* const envelope = list.PopFront()) EnvelopePtr ended(envelope);
  };
  if ((slot.flags() & kLimitedFlag) != 0) {
    const Leftovers left = slot.limits.load(std::memory_order_acquire)->Close();
    drop(left.dead_letters);
    // Senders of the same system end with it and need no message.
    for (const ActorRef sender : left.resume) {
      if (SystemCore::Of(*sender.slot()) == SystemCore::Of(slot)) continue;
      TellSystem(sender, MakeEnvelope<RoomFound>(ActorRef(), &slot));
    }
  }
  AbandonAsks(slot);
  if (SlotExtension* const extension = std::exchange(slot.extension, nullptr)) {
    if (extension->order != nullptr) drop(extension->order->TakeAll());
    delete extension;  // NOLINT(cppcoreguidelines-owning-memory): the slot owned it.
  }
  DispatcherTable::Empty(slot);
}

}  // namespace fraktor::inline v0::actor_internal
