// What few actors need of the tree: made when it is needed, gone with the actor. The holder's.
#ifndef FRAKTOR_ACTOR_CELL_CELL_STATE_H_
#define FRAKTOR_ACTOR_CELL_CELL_STATE_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/cell/cell_attachment.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/table/indexed_set.h"

namespace fraktor::inline v0 {

class CellState final : public LifecycleState {
 public:
  // An actor that this one watches.
  struct Watched {
    EnvelopePtr message;     // Instead of Terminated; null for that.
    bool has_ended = false;  // Its Terminated is in the mailbox.
    uint64_t order = 0;      // How many were watched before it.
  };

  static CellState& Of(ActorSlot& slot) {
    SlotExtension& extension = SlotExtension::Of(slot);
    if (extension.lifecycle == nullptr) extension.lifecycle = std::make_unique<CellState>();
    return static_cast<CellState&>(*extension.lifecycle);
  }
  // Null if it has none.
  static CellState* Find(const ActorSlot& slot) {
    return slot.extension == nullptr ? nullptr : static_cast<CellState*>(slot.extension->lifecycle.get());
  }

  // Found by address, which no run shares with another: what is done for all of them is done by their order.
  absl::flat_hash_map<ActorRef, Watched> watching;
  uint64_t watches = 0;
  // One actor may have very many watchers.
  IndexedSet<ActorRef, 2> watchers;

  // Of its children that have been restarted.
  absl::flat_hash_map<ActorRef, RestartStats> restarts;

  // Its own failure, and the message that it failed on, until the verdict.
  absl::Status failure;
  EnvelopePtr failed_on;
  // How it failed on that message.
  absl::Status failed_with;
  // The actor has left a Terminated unhandled, and fails because of that, if it fails on it.
  bool broke_death_pact = false;
  // The new instance of a restart is about to start.
  bool is_restarted = false;
  // It gets events of the stream.
  bool is_subscribed = false;

  // In the order of their arrival.
  struct Attached {
    const void* key;
    std::unique_ptr<CellAttachment> attachment;
  };
  absl::InlinedVector<Attached, 1> attachments;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_CELL_STATE_H_
