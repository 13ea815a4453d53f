// MailboxRegistry: gives the actors of one system their slots and mailboxes.
//
// ActorTree calls Register when it spawns an actor, and then LetGo: from then on messages schedule
// the actor. An actor ends in its own turn: Unregister makes all references stale, the invoker
// drains the mailbox, and Release gives the slot back.
//
// Thread safety: any thread. A cache belongs to one thread.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_MAILBOX_REGISTRY_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_MAILBOX_REGISTRY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::inline v0::actor_internal {

// The actor and the options of a new mailbox.
struct MailboxSpec {
  ActorInstance* instance = nullptr;
  uint16_t dispatcher = 0;
  uint16_t type = 0;
  // Null means unbounded, first in, first out.
  const MailboxOptions* options = nullptr;
  // The initial bits of Gate.
  uint8_t gate = 0;
};

class MailboxRegistry {
 public:
  // `threaded` means that actors run on threads of the toolbox, so a foreign thread may block until
  // a mailbox has room.
  explicit MailboxRegistry(bool threaded);
  // Makes all references stale. No worker may run any more.
  ~MailboxRegistry();
  MailboxRegistry(const MailboxRegistry&) = delete;
  MailboxRegistry& operator=(const MailboxRegistry&) = delete;

  // Returns a slot for an actor. The caller holds its mailbox and calls LetGo or schedules the
  // actor. InvalidArgument for bad options, ResourceExhausted if the process has no slots left.
  absl::StatusOr<ActorSlot*> Register(ActorSlotPool::Cache& cache, const MailboxSpec& spec);
  // The fast path of Register, for default options and a slot in the cache. Otherwise returns null
  // and changes nothing.
  static ActorSlot* TryRegister(ActorSlotPool::Cache& cache, const MailboxSpec& spec);
  // Register for threads without a cache.
  absl::StatusOr<ActorSlot*> Register(const MailboxSpec& spec);

  // Makes a new mailbox idle. If a late message for an earlier actor of the slot has come
  // meanwhile, schedules the actor instead, which finds the message.
  static void LetGo(ActorSlot& slot);

  // The actor calls it in its turn. All references become stale.
  static void Unregister(ActorSlot& slot);
  // Gives back the slot of an ended actor, whose mailbox is empty and idle.
  void Release(ActorSlotPool::Cache& cache, ActorSlot& slot) { cache.Release(&slot); }
  void Release(ActorSlot& slot) { pool_->Release(&slot); }

  // Ends the mailbox of an actor that could not be spawned, after Unregister. The caller holds the
  // mailbox, and does not hold it afterwards. Messages in it become dead letters in a turn of a
  // worker: those for an earlier actor of the slot that came late, and those of threads that have
  // found the actor in the tree.
  static void TakeBack(ActorSlot& slot);

  // Ends the messages of an actor that ends with its system, after the executors have ended.
  static void Abandon(ActorSlot& slot);
  // The same for a mailbox that the caller holds. The caller does not hold it afterwards.
  static void Discard(ActorSlot& slot);

  // Keeps the number of an executor that has ended, until no actor of this registry can have it.
  void KeepDispatcher(uint16_t number);

  // Refuses messages of foreign threads from now on.
  void RefuseForeign() { core_.Close(); }

  ActorSlotPool& slots() { return *pool_; }
  // The promises of the system's asks.
  PromiseSlotPool& promises() { return *promises_; }
  SystemCore& core() { return core_; }

 private:
  static void Prepare(ActorSlot& slot, uint32_t generation, const MailboxSpec& spec);
  template <class Pool>
  absl::StatusOr<ActorSlot*> RegisterIn(Pool& pool, const MailboxSpec& spec);

  SystemCore& core_;
  // Set until the destructor.
  std::optional<ActorSlotPool> pool_;
  std::optional<PromiseSlotPool> promises_;
  Mutex mutex_;
  std::vector<uint16_t> dispatchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_MAILBOX_REGISTRY_H_
