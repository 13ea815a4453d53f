// Where an actor lives: two cache lines that belong to the process and are used by one actor after the other.
//
// The first line has all that sending to the actor and running it touches; the second what is rare. Who may touch what:
// - Any thread: the inbox, the generation, the type, the limits, and the hint.
// - Any thread, if it checks the generation afterwards: the parent, the number and the flags of references (see
//   ActorKin).
// - The holder of the mailbox (see utils/queue/inbox.h): everything else. While a worker runs the actor it keeps the
//   lists and the gate in its Turn, and writes back what is left.
// - The holder of the parent's `kin_lock`: the links between the parent and its children, in both directions.
//
// A slot is never reset. An actor that ends makes its references stale (Deactivate), empties the mailbox into dead
// letters, lets go of it, and gives the slot back. A sender that was late between looking at the generation and pushing
// causes one more run, which finds a message for somebody else. The next actor takes the slot over by claiming the
// mailbox like any sender.
//
// The memory of an ActorSlot is never anything else: promises and other nodes have slots of their own types, in tables
// of their own (promise_slot.h, remote_sending.h). So a thread with a stale reference finds an ActorSlot, whoever uses
// it.
#ifndef FRAKTOR_ACTOR_SLOT_ACTOR_SLOT_H_
#define FRAKTOR_ACTOR_SLOT_ACTOR_SLOT_H_

#include <sched.h>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <type_traits>

#include "fraktor/actor/mailbox/queue_mailbox.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/utils/table/slot_pool.h"
#include "fraktor/utils/table/slot_table.h"

namespace fraktor::inline v0 {

class ActorInstance;
class ActorProps;
class MailboxLimits;
struct ChildList;
struct SlotExtension;

// What an actor's next message has to pass: a bit each, so that reasons do not undo each other. Failures are counted
// apart, since they nest.
enum class Gate : uint8_t {
  // It handles no user message as long as one of these is set.
  kStopping = 1,      // Asked to stop, or stopped.
  kBackpressure = 2,  // It has sent to a full mailbox.
  kRateLimited = 4,
  kUserDefined = 8,
  kAwaiting = 128,  // One of its handlers waits for something, and does not let others in meanwhile.
  // These do not suspend.
  kStarting = 16,    // It has not begun yet.
  kOrdered = 32,     // Its mailbox has an order of its own, or a limit.
  kIntercepted = 64  // There is middleware. Of the run, not of the slot.
};

constexpr uint8_t operator|(Gate a, Gate b) { return static_cast<uint8_t>(a) | static_cast<uint8_t>(b); }
constexpr uint8_t operator|(uint8_t a, Gate b) { return a | static_cast<uint8_t>(b); }

inline constexpr uint8_t kSuspendingGates =
    Gate::kStopping | Gate::kBackpressure | Gate::kRateLimited | Gate::kUserDefined | Gate::kAwaiting;

class ActorSlot;

// An actor's place in the tree. The indices of their slots stand for the siblings.
//
// Threads with a stale reference read `parent` and `number` while the next actor takes the slot over. So both are
// written by release stores and read by acquire loads (ParentSlotOf, NumberOf), and a reader checks the generation
// after it has read: if it has read what a later actor wrote, it sees a later generation too. The lock of the parent
// guards the list of children and the links between them. A free slot has no list; so whoever has the lock may walk
// along the children, and checks the generation once it has the lock.
struct ActorKin {
  static constexpr uint32_t kNone = UINT32_MAX;

  ActorSlot* parent = nullptr;  // Null for a root. It lives as long as the child.
  const ActorProps* props = nullptr;
  ChildList* children = nullptr;  // Null before the first child.
  uint32_t next_sibling = kNone;
  uint32_t previous_sibling = kNone;
  // Which child of its parent it is, up to kMaxNumber, for its automatic name; and two flags.
  uint64_t number = 0;

  static constexpr uint64_t kMaxNumber = (uint64_t{1} << 62) - 1;
  // In `number`: the registry of paths knows the actor.
  static constexpr uint64_t kIsRegistered = uint64_t{1} << 63;
  // In `number`: the actor has a name of its own, or gets one before it begins.
  static constexpr uint64_t kIsNamed = uint64_t{1} << 62;
};

// The part of an ActorSlot that comes before its ReadyNode: so a TableSlot has the address of its ActorSlot, and a
// conversion between them costs nothing.
class ActorSlotHead : public TableSlot {
 public:
  uint16_t failures = 0;  // Suspensions by supervision, which nest.
  uint8_t gate = 0;       // Bits of Gate.
  // The flags of its references, from bit 32 of their words on. Written before others have a reference. The release
  // pairs with the acquire of RefAt: see ActorKin.
  std::atomic<uint8_t> ref_flags{0};
};

// The slots of ProcessSlots are made with their contexts, which add nothing: see SlotWithContext.
class alignas(64) ActorSlot : public ActorSlotHead, public ReadyNode {
 public:
  // First line.
  uint16_t dispatcher = 0;  // Fixed while the slot is in use.
  // What it counts for in metrics: the number of its type, or its own while it is observed alone. Relaxed, since late
  // senders look at it too.
  std::atomic<uint16_t> type{0};
  QueueMailbox mailbox;
  ActorInstance* instance = nullptr;

  // For the holder, and for whoever has the lock of the parent.
  ActorRef ref() const { return ActorRef(const_cast<ActorSlot*>(this), word()); }
  // For the holder: what the words of its references are.
  uint64_t word() const { return generation() | static_cast<uint64_t>(flags()) << 32; }
  uint8_t flags() const { return ref_flags.load(std::memory_order_relaxed); }

  // For any thread: the reference to the actor of that generation, or no one if it has ended.
  ActorRef RefAt(uint32_t generation) const {
    const uint64_t flags = ref_flags.load(std::memory_order_acquire);
    return IsAt(generation) ? ActorRef(const_cast<ActorSlot*>(this), generation | flags << 32) : ActorRef();
  }

  // Second line.
  ActorKin kin;
  // What few actors need; made when it is needed, gone with the actor.
  SlotExtension* extension = nullptr;
  // Of the slot, not of the actor: set once, by the first actor here whose mailbox has a limit, and never freed, since
  // late senders look at it. Release by that actor's spawner, acquire by senders.
  std::atomic<MailboxLimits*> limits{nullptr};
  // The lifecycle's: how far the actor has come in restarting or stopping. Read by the holder, and by others with the
  // lock; written by the holder with the lock. Also by the next actor, without it: so the others check the generation
  // after they have read it, and the release of whoever writes pairs with their acquire.
  std::atomic<uint8_t> phase{0};
  // Guards the children of the actor: see KinLock.
  std::atomic<bool> kin_lock{false};
  // Set after a system message was pushed, cleared by the holder before it takes everything. A hint: a run that works
  // through a long list looks here instead of at the inbox, whose cache line the senders fight for. Relaxed; the inbox
  // orders.
  std::atomic<bool> system_hint{false};
  // Told to stop by its parent, which waits for its end. With the parent's lock.
  bool leaving = false;
  // So many of its children are. With the lock.
  uint32_t leaving_children = 0;
};

static_assert(sizeof(ActorSlot) == 128);

inline ActorSlot* ActorRef::slot() const {
  assert(IsNoOne() || IsActor());
  return static_cast<ActorSlot*>(slot_);
}

// Holds the lock of an actor's children for as long as it lives. A few instructions, except while all children are told
// something; so it spins, and then lets others run.
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

using ActorSlotTable = SlotTable<ActorSlot>;
using ActorSlotPool = SlotPool<ActorSlot>;

// False if the actor or promise has ended, or if it is no one. Nothing is known here of an actor of another node: it is
// taken for living.
inline bool MayLive(ActorRef actor) { return actor.IsRemote() || actor.IsCurrent(); }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_ACTOR_SLOT_H_
