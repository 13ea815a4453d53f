// CellState: the state that the tree keeps for an actor beyond its slot: watches, restarts, the
// last failure, attachments. Few actors need it, so it is made at the first use and ends with the
// actor.
//
// Thread safety: belongs to the turn of the actor.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_CELL_STATE_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_CELL_STATE_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/table/indexed_set.h"

namespace fraktor::inline v0::actor_internal {

class CellState final : public LifecycleState {
 public:
  // An actor that this one watches.
  struct Watched {
    EnvelopePtr message;     // The message of WatchWith; null: Terminated.
    bool has_ended = false;  // The Terminated is in the mailbox.
    uint64_t order = 0;      // The number of watches before this one.
  };

  static CellState& Of(ActorSlot& slot) {
    SlotExtension& extension = SlotExtension::Of(slot);
    if (extension.lifecycle == nullptr) extension.lifecycle = std::make_unique<CellState>();
    return static_cast<CellState&>(*extension.lifecycle);
  }
  // Null if the actor has none.
  static CellState* Find(const ActorSlot& slot) {
    return slot.extension == nullptr ? nullptr : static_cast<CellState*>(slot.extension->lifecycle.get());
  }

  // The iteration order differs from run to run, since it depends on addresses. Code that visits
  // all watches sorts them by Watched::order.
  absl::flat_hash_map<ActorRef, Watched> watching;
  uint64_t watches = 0;
  // An actor may have very many watchers.
  IndexedSet<ActorRef, 2> watchers;

  struct Restarts {
    RestartStats stats;
    // The child was told to restart with all others, and has not begun.
    bool is_due = false;
  };
  // The restarts of each child that has been restarted.
  absl::flat_hash_map<ActorRef, Restarts> restarts;

  // The reason of a restart, or the error of the constructor, until the actor starts.
  absl::Status failure;
  // The message that the actor failed on, and its error, until the verdict.
  EnvelopePtr failed_on;
  absl::Status failed_with;
  // The actor did not handle a Terminated. If it fails on that message, the cause is kDeathPact.
  bool broke_death_pact = false;
  // The next start is that of a restart: PostRestart runs instead of PreStart.
  bool is_restarted = false;
  // The actor is subscribed to the event stream.
  bool is_subscribed = false;

  // In the order in which they were attached.
  struct Attached {
    const void* key;
    std::unique_ptr<CellAttachment> attachment;
  };
  absl::InlinedVector<Attached, 1> attachments;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_CELL_STATE_H_
