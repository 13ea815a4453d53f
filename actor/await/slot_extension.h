// What few actors need of the scheduler, so that the others do not carry it: made when it is needed, gone with the actor.
// The holder's.
#ifndef FRAKTOR_ACTOR_AWAIT_SLOT_EXTENSION_H_
#define FRAKTOR_ACTOR_AWAIT_SLOT_EXTENSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"

#include "fraktor/actor/await/awaiting_handler.h"
#include "fraktor/actor/mailbox/ordered_envelopes.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/lifecycle_state.h"
#include "fraktor/actor/slot/open_asks.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0 {

struct SlotExtension {
  // A full mailbox that the actor has sent to and waits for.
  struct FullTarget {
    ActorRef target;
    uint64_t wait;
    TimerId timer;
  };

  // Null unless its mailbox has an order of its own.
  std::unique_ptr<OrderedEnvelopes> order;

  // A suspension by a middleware, and the signal that ends it.
  SuspendReason suspended_for = SuspendReason::kUserDefined;
  ResumeCondition resume_on = ResumeCondition::ExternalSignal({});
  SignalKey resume_key;

  // As long as there is one, the actor is suspended by Gate::kBackpressure.
  absl::InlinedVector<FullTarget, 1> full_targets;
  uint64_t waits = 0;

  // Its asks that have no answer yet, and when the timer that looks at them fires: in the infinite
  // future if there is none.
  OpenAsks open_asks;
  Instant ask_timer = Instant::InfiniteFuture();
  TimerId ask_timer_id;
  // Of its last question, and the same in nanoseconds.
  absl::Duration ask_timeout;
  int64_t ask_timeout_ns = 0;

  // What few askers need besides: made when it is needed.
  struct AskExtras {
    // A question that has waited long enough. Its promise is gone; it fails when its target has said what it is at.
    struct LateAsk {
      ActorRef ask;
      ActorRef target;
      std::string target_path;
      AskCompletion* completion;
      uint64_t inquiry;
      TimerId timer;
    };
    std::vector<LateAsk> late;
    uint64_t inquiries = 0;

    // Who wants to know when a promise of this actor is over.
    struct PromiseWatch {
      ActorRef promise;
      ActorRef watcher;
    };
    std::vector<PromiseWatch> watches;
  };
  std::unique_ptr<AskExtras> ask_extras;

  // Handlers that wait.
  HandlerQueue handlers;

  // Whether the lifecycle hears of each message that is handled; then Gate::kOrdered is set.
  bool watches_activity = false;
  std::unique_ptr<LifecycleState> lifecycle;

  static SlotExtension& Of(ActorSlot& slot) {
    if (slot.extension == nullptr) slot.extension = new SlotExtension;  // NOLINT: End, or the registry, deletes it.
    return *slot.extension;
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_AWAIT_SLOT_EXTENSION_H_
