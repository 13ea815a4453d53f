// SlotExtension: the parts of an actor's scheduling state that few actors need. It is created when
// the actor first needs it, and deleted with the actor, so other actors do not pay for it.
//
// Called by: the invoker, and the parts of actor/ask and actor/await. Thread: the holder of the
// mailbox.
#ifndef FRAKTOR_ACTOR_AWAIT_INTERNAL_SLOT_EXTENSION_H_
#define FRAKTOR_ACTOR_AWAIT_INTERNAL_SLOT_EXTENSION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/mailbox/internal/ordered_envelopes.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/lifecycle_state.h"
#include "fraktor/actor/slot/internal/open_asks.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"

namespace fraktor::inline v0::actor_internal {

struct SlotExtension {
  // A full mailbox in which messages of the actor wait for room.
  struct FullTarget {
    ActorRef target;
    uint64_t wait;
    TimerId timer;
  };

  // The messages of a mailbox with an order of its own; null for others.
  std::unique_ptr<OrderedEnvelopes> order;

  // The last suspension by a middleware, and the signal that ends it.
  SuspendReason suspended_for = SuspendReason::kUserDefined;
  ResumeCondition resume_on = ResumeCondition::ExternalSignal({});
  SignalKey resume_key;

  // While it is not empty, Gate::kBackpressure suspends the actor.
  absl::InlinedVector<FullTarget, 1> full_targets;
  uint64_t waits = 0;

  // The asks without a reply, and the deadline for which their timer is armed: the infinite future
  // if it is not armed, and the infinite past while asks that are due wait for the actor's next
  // turn.
  OpenAsks open_asks;
  Instant ask_timer = Instant::InfiniteFuture();
  TimerId ask_timer_id;
  // The timeout of the last ask, and the same in nanoseconds.
  absl::Duration ask_timeout;
  int64_t ask_timeout_ns = 0;
  bool has_due_asks() const { return ask_timer == Instant::InfinitePast(); }

  // State that few askers need. Created when it is needed.
  struct AskExtras {
    // An ask that has timed out. Its promise is released.
    struct LateAsk {
      ActorRef ask;
      AskCompletion* completion;
    };
    // The asks that fail when their target has sent the status report of one request.
    struct LateAsks {
      ActorRef target;
      std::string target_path;
      TimerId timer;
      // The activity of the target, for the error texts. Set when the request is in `reported`.
      std::optional<std::string> status = std::nullopt;
      std::deque<LateAsk> asks;
    };
    // By the number of the request. Ordered, so that the asks of an actor that ends are abandoned
    // in the order in which they have timed out.
    std::map<uint64_t, LateAsks> late;
    // The number of the last request to each target whose asks have not all failed yet.
    absl::flat_hash_map<ActorRef, uint64_t> requested;
    // The requests whose asks can fail, because their targets have reported, or have not in time.
    std::deque<uint64_t> reported;
    bool sent_more = false;  // A MoreLateAsks is on its way. Then `reported` is not empty.
    uint64_t status_requests = 0;

    // An actor that watches a promise of this actor.
    struct PromiseWatch {
      ActorRef promise;
      ActorRef watcher;
      uint64_t order;  // The number of watches before this one.
    };
    // By the plain reference of the promise.
    absl::flat_hash_map<ActorRef, absl::InlinedVector<PromiseWatch, 1>> watches;
    uint64_t next_watch = 0;
  };
  std::unique_ptr<AskExtras> ask_extras;

  // The handlers that wait.
  HandlerQueue handlers;

  // Whether the invoker calls ActorLifecycle::OnActivity after each message. Gate::kOrdered is set
  // then.
  bool watches_activity = false;
  // The system messages that the holder has taken have been searched: they are signals of the
  // scheduler, or replies.
  bool has_only_signals = false;
  std::unique_ptr<LifecycleState> lifecycle;

  static SlotExtension& Of(ActorSlot& slot) {
    // NOLINTNEXTLINE: MessageInvoker::End, or the registry, deletes it.
    if (slot.extension == nullptr) slot.extension = new SlotExtension;
    return *slot.extension;
  }
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_AWAIT_INTERNAL_SLOT_EXTENSION_H_
