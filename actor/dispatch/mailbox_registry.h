// The mailboxes of one actor system: where actors get their slots.
//
//   MailboxRegistry mailboxes(toolbox.has_threads());
//   FRAKTOR_ASSIGN_OR_RETURN(ActorSlot* slot, mailboxes.Register(cache, {.instance = actor, .dispatcher = number}));
//   MailboxRegistry::LetGo(*slot);                            // from now on messages make it ready
//
// An actor ends in its own turn: Unregister makes all references and pids stale; when the mailbox has been emptied
// and is idle, Release gives the slot back.
//
// Thread safety: any thread; a cache belongs to one.
#ifndef FRAKTOR_ACTOR_DISPATCH_MAILBOX_REGISTRY_H_
#define FRAKTOR_ACTOR_DISPATCH_MAILBOX_REGISTRY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/system_core.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/promise_slot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/table/slot_table.h"

namespace fraktor::inline v0 {

// What a new mailbox is for.
struct MailboxSpec {
  ActorInstance* instance = nullptr;
  uint16_t dispatcher = 0;
  uint16_t type = 0;
  // Null: unbounded, first in first out.
  const MailboxOptions* options = nullptr;
  // Bits of Gate to begin with.
  uint8_t gate = 0;
};

class MailboxRegistry {
 public:
  // `threaded`: its actors run on threads of their own, so a foreign thread may wait for room in a mailbox.
  explicit MailboxRegistry(bool threaded);
  // All references become stale. No worker runs any more.
  ~MailboxRegistry();
  MailboxRegistry(const MailboxRegistry&) = delete;
  MailboxRegistry& operator=(const MailboxRegistry&) = delete;

  // A slot for an actor, whose mailbox the caller holds: then LetGo, or make it ready. InvalidArgument for bad options,
  // ResourceExhausted if the process has no slots left.
  absl::StatusOr<ActorSlot*> Register(ActorSlotPool::Cache& cache, const MailboxSpec& spec);
  // The same if it is easy: the usual options, and a slot at hand. Otherwise null, and nothing has happened.
  static ActorSlot* TryRegister(ActorSlotPool::Cache& cache, const MailboxSpec& spec);
  // The same for threads without a cache.
  absl::StatusOr<ActorSlot*> Register(const MailboxSpec& spec);

  // Leaves a new mailbox idle. If a late message for an earlier actor of the slot has come meanwhile, the actor is made
  // ready instead, and finds it.
  static void LetGo(ActorSlot& slot);

  // In the actor's turn: nothing leads to it any more.
  static void Unregister(ActorSlot& slot);
  // Its mailbox is empty and idle, and nobody needs the slot any more.
  void Release(ActorSlotPool::Cache& cache, ActorSlot& slot) { cache.Release(&slot); }
  void Release(ActorSlot& slot) { pool_->Release(&slot); }

  // An actor is to go with its system, whose executors are gone: ends what is in its mailbox.
  static void Abandon(ActorSlot& slot);
  // The same of a mailbox that the caller holds, and does not afterwards.
  static void Discard(ActorSlot& slot);

  // The number of an executor that has ended goes back when no actor of this registry can have it any more.
  void KeepDispatcher(uint16_t number);

  // No messages from foreign threads from now on.
  void RefuseForeign() { core_.Close(); }

  ActorSlotPool& slots() { return *pool_; }
  // Where the system's asks get their promises.
  PromiseSlotPool& promises() { return *promises_; }
  SystemCore& core() { return core_; }

 private:
  static void Prepare(ActorSlot& slot, uint32_t generation, const MailboxSpec& spec);
  template <class Pool>
  absl::StatusOr<ActorSlot*> RegisterIn(Pool& pool, const MailboxSpec& spec);

  SystemCore& core_;
  // Always there, until the end.
  std::optional<ActorSlotPool> pool_;
  std::optional<PromiseSlotPool> promises_;
  Mutex mutex_;
  std::vector<uint16_t> dispatchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_MAILBOX_REGISTRY_H_
