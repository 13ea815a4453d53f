// TreeDeadLetters: what a tree of actors does with messages that reach no actor or no handler. It
// publishes them, and fails the asks among them at once, so that no asker waits for its timeout.
//
// Thread safety: any thread, except OnUnhandled, which is called in the turn of the actor.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_DEAD_LETTERS_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_DEAD_LETTERS_H_

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/tree/internal/tree_clock.h"
#include "fraktor/actor/tree/internal/tree_log.h"
#include "fraktor/actor/tree/internal/tree_paths.h"
#include "fraktor/actor/tree/tree_observer.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::inline v0::actor_internal {

class TreeDeadLetters {
 public:
  // A null pointer means that the listener does not exist.
  struct Listeners {
    DeadLetters* dead_letters = nullptr;
    EventStream* events = nullptr;
    TreeObserver* observer = nullptr;
  };

  TreeDeadLetters(const Listeners& listeners, const TreePaths& paths, const TreeLog& log, const TreeClock& clock)
      : listeners_(listeners), paths_(paths), log_(log), clock_(clock) {}

  // See ActorLifecycle::PublishOrphan.
  bool PublishOrphan(utils_internal::TableSlot* slot, EnvelopePtr& envelope, DeadLetterReason reason) const;
  // A user message, or a reply that came too late. See ActorLifecycle::OnDeadLetter.
  void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, utils_internal::TableSlot* slot,
                    DeadLetterReason reason) const;
  // The actor has no handler for a message, which is not Terminated.
  void OnUnhandled(ActorContext& context, Envelope& message) const;

 private:
  const Listeners listeners_;
  const TreePaths& paths_;
  const TreeLog& log_;
  const TreeClock& clock_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_DEAD_LETTERS_H_
