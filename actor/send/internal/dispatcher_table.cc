#include "fraktor/actor/send/internal/dispatcher_table.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/ready_keeper.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// Counts the threads that use the coordinator, so that Close can wait for them. Only foreign sends
// to idle actors come here.
struct alignas(64) Entry {
  // Sequentially consistent together with `users`: a user increments the count and then reads the
  // pointer; Close stores null and then reads the count.
  std::atomic<ReadyQueueCoordinator*> coordinator{nullptr};
  std::atomic<uint32_t> users{0};
  // The number of the entry that gets late messages while this one is closed, or kNoHeir. Relaxed:
  // Close writes it before it stores null to `coordinator`, and a user reads it after it has seen
  // the null.
  std::atomic<uint32_t> heir{kNoHeir};

  static constexpr uint32_t kNoHeir = UINT32_MAX;

  // Schedules an actor. False if the entry is closed.
  bool Register(ActorSlot& slot) {
    users.fetch_add(1, std::memory_order_seq_cst);
    ReadyQueueCoordinator* const open = coordinator.load(std::memory_order_seq_cst);
    if (open != nullptr) open->RegisterReady(kForeign, slot, ReadyQueueCoordinator::Placement::kBack);
    users.fetch_sub(1, std::memory_order_seq_cst);
    return open != nullptr;
  }
};

constexpr uint32_t kEntriesPerBlock = 256;
constexpr uint32_t kBlocks = DispatcherTable::kMaxDispatchers / kEntriesPerBlock;

struct Table {
  // Each block is stored once, under the mutex. The release pairs with the acquire of EntryOf.
  std::atomic<Entry*> blocks[kBlocks] = {};
  Mutex mutex;
  std::vector<uint16_t> free ABSL_GUARDED_BY(mutex);
  uint32_t made ABSL_GUARDED_BY(mutex) = 0;
};

Table& TheTable() {
  static Table& table = *new Table;
  return table;
}

Entry& EntryOf(uint16_t number) {
  return TheTable().blocks[number / kEntriesPerBlock].load(std::memory_order_acquire)[number % kEntriesPerBlock];
}

// Statistics. Relaxed: it pairs with nothing.
std::atomic<uint64_t> late_dead_letters{0};

void DropAll(ActorSlot& slot, Envelope* envelope) {
  while (envelope != nullptr) {
    Envelope* const next = Envelope::Of(envelope->next);
    EnvelopePtr ended(envelope);
    UncountLimited(&slot, *ended);
    if (!ended->is_system() || IsLostReply(*ended)) DispatcherTable::CountLateDeadLetter();
    envelope = next;
  }
}

}  // namespace

absl::StatusOr<uint16_t> DispatcherTable::Open(ReadyQueueCoordinator& coordinator) {
  Table& table = TheTable();
  MutexLock lock(table.mutex);
  if (table.free.empty()) {
    if (table.made == kMaxDispatchers) {
      return absl::ResourceExhaustedError(
          absl::StrCat("all ", kMaxDispatchers,
                       " dispatchers of this process are in use; each pinned actor has one, so stop some of them"));
    }
    if (table.made % kEntriesPerBlock == 0) {
      table.blocks[table.made / kEntriesPerBlock].store(new Entry[kEntriesPerBlock], std::memory_order_release);
    }
    table.free.push_back(static_cast<uint16_t>(table.made++));
  }
  const uint16_t number = table.free.back();
  table.free.pop_back();
  EntryOf(number).coordinator.store(&coordinator, std::memory_order_seq_cst);
  return number;
}

void DispatcherTable::Close(uint16_t number, std::optional<uint16_t> heir) {
  Entry& entry = EntryOf(number);
  // Relaxed: the store to `coordinator` below releases it.
  entry.heir.store(heir.has_value() ? *heir : Entry::kNoHeir, std::memory_order_relaxed);
  entry.coordinator.store(nullptr, std::memory_order_seq_cst);
  while (entry.users.load(std::memory_order_seq_cst) != 0) {
    // Another thread is in the middle of Register.
  }
}

void DispatcherTable::Release(uint16_t number) {
  Table& table = TheTable();
  MutexLock lock(table.mutex);
  table.free.push_back(number);
}

void DispatcherTable::RegisterOrEmpty(ActorSlot& slot) {
  if (ReadyKeeper* const keeper = ReadyKeeper::OfThisThread(); keeper != nullptr && keeper->Keep(slot)) return;
  Entry& entry = EntryOf(slot.dispatcher);
  if (entry.Register(slot)) return;
  const uint32_t heir = entry.heir.load(std::memory_order_relaxed);
  if (heir != Entry::kNoHeir && EntryOf(static_cast<uint16_t>(heir)).Register(slot)) return;
  EmptyInTurn(slot);
}

// The destructor of a message, and a sender that resumes, may send to another actor whose system
// has ended. That mailbox is emptied after this one, so that a long row of such actors needs no
// deep stack.
void DispatcherTable::EmptyInTurn(ActorSlot& slot) {
  thread_local std::vector<ActorSlot*>* waiting = nullptr;
  if (waiting != nullptr) {
    waiting->push_back(&slot);
    return;
  }
  std::vector<ActorSlot*> slots = {&slot};
  waiting = &slots;
  const absl::Cleanup is_done = [] { waiting = nullptr; };
  while (!slots.empty()) {
    ActorSlot& next = *slots.back();
    slots.pop_back();
    Empty(next);
  }
}

void DispatcherTable::Empty(ActorSlot& slot) {
  // The thread may be a worker in the middle of a send, so its outbox must not be used here.
  const WorkerScope no_worker(nullptr);
  const MailLists lists = slot.mailbox.Hold();
  DropAll(slot, lists.user.first);
  DropAll(slot, lists.system);
  while (!slot.mailbox.inbox.TryGoIdle()) DropAll(slot, Envelope::Of(slot.mailbox.inbox.TakeNewestFirst()));
}

uint64_t DispatcherTable::LateDeadLetters() { return late_dead_letters.load(std::memory_order_relaxed); }

void DispatcherTable::CountLateDeadLetter() { late_dead_letters.fetch_add(1, std::memory_order_relaxed); }

}  // namespace fraktor::inline v0::actor_internal
