// Where an actor lives: two cache lines that belong to the process and are used by one actor after the other.
//
// The first line has all that sending to the actor and running it touches; the second what is rare. Who may touch what:
// - Any thread: the inbox, the generation, and what is fixed while an actor is in the slot and was written before it
//   could be reached (dispatcher, type).
// - The holder of the mailbox (see utils/queue/inbox.h): everything else. While a worker runs the actor it keeps the
//   lists and the gate in its Turn, and writes back what is left.
//
// A slot is never reset. An actor that ends makes its references stale (Deactivate), empties the mailbox into dead
// letters, lets go of it, and gives the slot back. A sender that was late between looking at the generation and pushing
// causes one more run, which finds a message for somebody else. The next actor takes the slot over by claiming the
// mailbox like any sender.
#ifndef FRAKTOR_ACTOR_SCHEDULER_ACTOR_SLOT_H_
#define FRAKTOR_ACTOR_SCHEDULER_ACTOR_SLOT_H_

#include <atomic>
#include <cstdint>

#include "fraktor/actor/mailbox/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/ready_queue_coordinator.h"
#include "fraktor/utils/queue/inbox.h"
#include "fraktor/utils/table/slot_pool.h"
#include "fraktor/utils/table/slot_table.h"

namespace fraktor::inline v0 {

class ActorInstance;

// Why an actor handles no user message at the moment: a bit each, so that reasons do not undo each other. Failures are
// counted apart, since they nest.
enum class Gate : uint8_t {
  kStopping = 1,      // Asked to stop, or stopped.
  kAwaiting = 2,      // A handler waits for something.
  kBackpressure = 4,  // It has sent to a full mailbox.
  kRateLimited = 8,
  kUserDefined = 16,
  kOrdered = 32,  // Not a suspension: its mailbox hands out messages in an order of its own, or counts them.
};

class alignas(64) ActorSlot final : public ReadyNode, public TableSlot {
 public:
  // First line.
  // For the holder: what is queued and not in the inbox.
  EnvelopeList user;
  Envelope* system = nullptr;
  ActorInstance* instance = nullptr;
  uint16_t dispatcher = 0;  // Fixed while the slot is in use.
  uint16_t type = 0;        // Fixed while the slot is in use.
  uint16_t failures = 0;    // Suspensions by supervision, which nest.
  uint8_t gate = 0;         // Bits of Gate.
  Inbox inbox;

  // Second line.
  // Set after a system message was pushed, cleared by the holder before it takes everything. A hint: a run that works
  // through a long list looks here instead of at the inbox, whose cache line the senders fight for. Relaxed; the inbox
  // orders.
  alignas(64) std::atomic<bool> system_hint{false};
};

static_assert(sizeof(ActorSlot) == 128);

using ActorSlotTable = SlotTable<ActorSlot>;
using ActorSlotPool = SlotPool<ActorSlot>;

// All slots of the process.
ActorSlotTable& ProcessSlots();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_ACTOR_SLOT_H_
