// Where an actor lives: two cache lines that belong to the process and are used by one actor after the other.
//
// The first line has all that sending to the actor and running it touches; the second what is rare. Who may touch what:
// - Any thread: the inbox, the generation, the type, the limits, and the hint.
// - The holder of the mailbox (see utils/queue/inbox.h): everything else. While a worker runs the actor it keeps the
//   lists and the gate in its Turn, and writes back what is left. What connects an actor with its children, on both
//   sides, is whoever's has the parent's `kin_lock`.
//
// A slot is never reset. An actor that ends makes its references stale (Deactivate), empties the mailbox into dead
// letters, lets go of it, and gives the slot back. A sender that was late between looking at the generation and pushing
// causes one more run, which finds a message for somebody else. The next actor takes the slot over by claiming the
// mailbox like any sender.
//
// A slot may also be a promise: the reference that an ask gives as the sender (see reply_promise.h). Then it has no
// mailbox, and nobody pushes, since its references say what they are. The same goes for the slots of other nodes (see
// remote_sending.h), which are never used for anything else.
#ifndef FRAKTOR_ACTOR_TURN_ACTOR_SLOT_H_
#define FRAKTOR_ACTOR_TURN_ACTOR_SLOT_H_

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "fraktor/actor/mailbox/queue_mailbox.h"
#include "fraktor/actor/ready/ready_queue_coordinator.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/table/slot_pool.h"
#include "fraktor/utils/table/slot_table.h"

namespace fraktor::inline v0 {

class ActorInstance;
class ActorProps;
class MailboxLimits;
class RemoteLink;
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
struct ActorKin {
  static constexpr uint32_t kNone = UINT32_MAX;

  ActorSlot* parent;  // Null for a root. It lives as long as the child.
  const ActorProps* props;
  ChildList* children;  // Null before the first child.
  uint32_t next_sibling;
  uint32_t previous_sibling;
  // Which child of its parent it is, up to kMaxNumber, for its automatic name; and kIsRegistered.
  uint64_t number;

  static constexpr uint64_t kMaxNumber = (uint64_t{1} << 62) - 1;
  // In `number`: the registry of paths knows the actor.
  static constexpr uint64_t kIsRegistered = uint64_t{1} << 63;
};

// A reference to an actor of this process in 8 bytes: the number of its slot, and the generation.
struct alignas(8) PackedRef {
  uint32_t slot = UINT32_MAX;
  uint32_t generation = 0;

  bool IsNoOne() const { return generation == 0; }
};

// A promise: who waits for the answer, of whom, and its place among the questions of that actor, earliest deadline
// first. Fixed before the reference is given away, except for the links, which are the asker's. Others look at it while
// they walk along a chain of questions, and may be late: what they find is good only if the generation is still the
// same.
struct PendingAsk {
  // In `answering.slot`: the asker handles other messages while it waits.
  static constexpr uint32_t kFree = UINT32_MAX - 1;

  PackedRef asker;
  PackedRef target;
  // The question that the asker was answering when it asked, if it can go on only after this one.
  PackedRef answering;
  uint32_t previous;
  uint32_t next;
  int64_t deadline_ns;
};

// Takes an answer, or the news that there is none. The promise's; goes by itself after either.
class AskCompletion;

class alignas(64) ActorSlot final : public ReadyNode, public TableSlot {
 public:
  // First line.
  QueueMailbox mailbox;
  ActorInstance* instance = nullptr;
  uint16_t dispatcher = 0;  // Fixed while the slot is in use.
  // What it counts for in metrics: the number of its type, or its own while it is observed alone. Relaxed, since late
  // senders look at it too.
  std::atomic<uint16_t> type{0};
  uint16_t failures = 0;  // Suspensions by supervision, which nest.
  uint8_t gate = 0;       // Bits of Gate.
  uint8_t ref_flags = 0;  // The flags of its references, from bit 32 of their words on.

  ActorRef ref() const { return ActorRef(const_cast<ActorSlot*>(this), word()); }
  // For the holder: what the words of its references are.
  uint64_t word() const { return generation() | static_cast<uint64_t>(ref_flags) << 32; }

  // Second line.
  union {
    ActorKin kin;
    PendingAsk ask;
  };
  union {
    // What few actors need; made when it is needed, gone with the actor.
    SlotExtension* extension = nullptr;
    // Of a promise. Null: the asker's OnReply hears of it.
    AskCompletion* completion;
    // Of another node: what leads there.
    RemoteLink* link;
  };
  // Of the slot, not of the actor: set once, by the first actor here whose mailbox has a limit, and never freed, since
  // late senders look at it. Release by that actor's spawner, acquire by senders.
  std::atomic<MailboxLimits*> limits{nullptr};
  // The lifecycle's: how far the actor has come in restarting or stopping. Read by the holder, and by others with the
  // lock; written by the holder with the lock.
  uint8_t phase = 0;
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

  ActorSlot() : kin{} {}
};

static_assert(sizeof(ActorSlot) == 128);

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
static_assert(std::is_trivially_copyable_v<ActorKin> && std::is_trivially_copyable_v<PendingAsk>);

using ActorSlotTable = SlotTable<ActorSlot>;
using ActorSlotPool = SlotPool<ActorSlot>;

// All slots of the process.
ActorSlotTable& ProcessSlots();

// Whether an actor is there: of one elsewhere that is not known here, and taken for granted.
inline bool MayLive(ActorRef actor) {
  return !actor.IsNoOne() && (actor.IsRemote() || actor.slot()->IsAt(actor.generation()));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_ACTOR_SLOT_H_
