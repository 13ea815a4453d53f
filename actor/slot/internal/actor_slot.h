// ActorSlot: the memory of an actor: two cache lines that belong to the process. Actors use a slot
// one after the other.
//
// The first line has the fields for sending to the actor and running it; the second has the rest.
// Access:
// - Any thread: the inbox, the generation, the type, the limits, and the hint.
// - Any thread that checks the generation afterwards: the parent, the number and the flags of
//   references (see ActorKin).
// - The holder of the mailbox (see utils/queue/internal/inbox.h): everything else. A worker that
//   runs the actor keeps the lists and the gate in its TurnState, and writes them back at the end.
// - The holder of the parent's `kin_lock`: the links between the parent and its children, in both
//   directions.
//
// A slot is never reset. An actor that ends makes its references stale (Deactivate), empties the
// mailbox into dead letters, makes it idle, and releases the slot. A sender that has checked the
// generation and pushes afterwards causes one more run, which finds a stale message. The next actor
// claims the mailbox like any sender.
//
// The memory of an ActorSlot is never used for anything else: promises and other nodes have slots
// of their own types, in tables of their own (promise_slot.h, remote_sending.h). So a thread with a
// stale reference finds an ActorSlot, of whichever actor.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_ACTOR_SLOT_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_ACTOR_SLOT_H_

#include <sched.h>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <type_traits>

#include "fraktor/actor/mailbox/internal/queue_mailbox.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::inline v0 {

class ActorInstance;
class ActorProps;

namespace actor_internal {

class MailboxLimits;
struct ChildList;
struct SlotExtension;

// The reasons why the next message does not take the fast path: one bit each, so that they are
// independent. Failures are counted apart, since they nest.
enum class Gate : uint8_t {
  // The actor handles no user message while one of these is set.
  kStopping = 1,      // The actor stops, or has stopped.
  kBackpressure = 2,  // The actor has sent to a full mailbox.
  kRateLimited = 4,   // A middleware has suspended the actor.
  kUserDefined = 8,   // A middleware has suspended the actor.
  kAwaiting = 128,    // An exclusive handler waits in co_await.
  // These do not suspend.
  kStarting = 16,   // PreStart or PostRestart has not run yet.
  kOrdered = 32,    // The mailbox has an order of its own, or a limit.
  kMiddleware = 64  // There is middleware. Only in Turn::gate.
};

constexpr uint8_t operator|(Gate a, Gate b) { return static_cast<uint8_t>(a) | static_cast<uint8_t>(b); }
constexpr uint8_t operator|(uint8_t a, Gate b) { return a | static_cast<uint8_t>(b); }

inline constexpr uint8_t kSuspendingGates =
    Gate::kStopping | Gate::kBackpressure | Gate::kRateLimited | Gate::kUserDefined | Gate::kAwaiting;

class ActorSlot;

// The place of an actor in the tree. Siblings are named by the indices of their slots.
//
// Threads with a stale reference read `parent` and `number` while the next actor takes the slot. So
// both are written by release stores and read by acquire loads (ParentSlotOf, NumberOf), and a
// reader checks the generation afterwards: if it has read a value of a later actor, it sees a later
// generation too. The lock of the parent guards the list of children and the links between them. A
// free slot has no list. So a thread takes the lock, checks the generation, and walks the children.
struct ActorKin {
  static constexpr uint32_t kNone = UINT32_MAX;

  ActorSlot* parent = nullptr;  // Null for a root. The parent lives as long as the child.
  const ActorProps* props = nullptr;
  ChildList* children = nullptr;  // Null before the first child.
  uint32_t next_sibling = kNone;
  uint32_t previous_sibling = kNone;
  // The number of the actor among the children of its parent, for its automatic name; and two
  // flags.
  uint64_t number = 0;

  static constexpr uint64_t kMaxNumber = (uint64_t{1} << 62) - 1;
  // In `number`: the actor is registered in ActorNames.
  static constexpr uint64_t kIsRegistered = uint64_t{1} << 63;
  // In `number`: the actor has a name of its own, or its spawner is about to register one.
  static constexpr uint64_t kIsNamed = uint64_t{1} << 62;
};

// The part of an ActorSlot before its ReadyNode. It gives a TableSlot the address of its ActorSlot,
// so a conversion between them costs nothing.
class ActorSlotHead : public utils_internal::TableSlot {
 public:
  uint16_t failures = 0;  // How many failures, of the actor and its ancestors, suspend it.
  uint8_t gate = 0;       // Bits of Gate.
  // The flags of references to the actor: bit 32 of their words and above. Written before another
  // thread has a reference. Release: pairs with the acquire in RefAt. See ActorKin.
  std::atomic<uint8_t> ref_flags{0};
};

// ProcessSlots makes each slot with its context, which adds no bytes: see SlotWithContext.
class alignas(64) ActorSlot : public ActorSlotHead, public ReadyNode {
 public:
  // First line.
  uint16_t dispatcher = 0;  // Fixed while the slot is in use.
  // The number that metrics count for: that of the type, or of the actor while it is observed.
  // Relaxed: late senders read it too, and any value will do.
  std::atomic<uint16_t> type{0};
  QueueMailbox mailbox;
  ActorInstance* instance = nullptr;

  // For the holder of the mailbox, and for the holder of the parent's lock.
  ActorRef ref() const { return ActorRef(const_cast<ActorSlot*>(this), word()); }
  // The word of references to the actor. For the holder of the mailbox.
  uint64_t word() const { return generation() | static_cast<uint64_t>(flags()) << 32; }
  uint8_t flags() const { return ref_flags.load(std::memory_order_relaxed); }

  // The reference to the actor of that generation, or no one if it has ended. Any thread.
  ActorRef RefAt(uint32_t generation) const {
    const uint64_t flags = ref_flags.load(std::memory_order_acquire);
    return IsAt(generation) ? ActorRef(const_cast<ActorSlot*>(this), generation | flags << 32) : ActorRef();
  }

  // Second line.
  ActorKin kin;
  // Fields that few actors need. Made at the first use; ends with the actor.
  SlotExtension* extension = nullptr;
  // The limits belong to the slot: the first actor here with a bounded mailbox makes them, and they
  // are never freed, since late senders read them. Release by the spawner of that actor: pairs with
  // the acquire of senders.
  std::atomic<MailboxLimits*> limits{nullptr};
  // How far the actor has come in restarting or stopping: see tree_phase.h. The holder of the
  // mailbox reads it, and other threads with the lock; the holder writes it with the lock. The next
  // actor writes it without the lock: so other threads check the generation after reading. Release
  // of the writer: pairs with their acquire.
  std::atomic<uint8_t> phase{0};
  // Guards the children of the actor: see KinLock. Acquire and release pair with each other.
  std::atomic<bool> kin_lock{false};
  // A hint that a system message was pushed. The holder clears it before it empties the inbox. A
  // run with a long list reads it between messages instead of the inbox, whose cache line senders
  // contend for. Relaxed: the inbox orders.
  std::atomic<bool> system_hint{false};
  // The parent has stopped the actor, and waits for its end. With the parent's lock.
  bool leaving = false;
  // How many children are `leaving`. With the lock.
  uint32_t leaving_children = 0;
};

static_assert(sizeof(ActorSlot) == 128);

// Holds the lock of an actor's children. Critical sections are a few instructions, except while all
// children get a message; so a waiter spins, and yields now and then.
class KinLock {
 public:
  explicit KinLock(ActorSlot& slot) : slot_(slot) {
    for (int spins = 0; slot_.kin_lock.exchange(true, std::memory_order_acquire);) {
      if (++spins % kSpins == 0) sched_yield();
    }
  }
  ~KinLock() { slot_.kin_lock.store(false, std::memory_order_release); }
  KinLock(const KinLock&) = delete;
  KinLock& operator=(const KinLock&) = delete;

 private:
  static constexpr int kSpins = 64;

  ActorSlot& slot_;
};

using ActorSlotTable = utils_internal::SlotTable<ActorSlot>;
using ActorSlotPool = utils_internal::SlotPool<ActorSlot>;

// False if the actor or promise has ended, or for no one. True for every actor of another node,
// whose state is not known here.
inline bool MayLive(ActorRef actor) { return actor.IsRemote() || actor.IsCurrent(); }

}  // namespace actor_internal

inline actor_internal::ActorSlot* ActorRef::slot() const {
  assert(IsNoOne() || IsActor());
  return static_cast<actor_internal::ActorSlot*>(slot_);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_ACTOR_SLOT_H_
