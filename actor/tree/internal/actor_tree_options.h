// ActorTreeOptions: the collaborators of an ActorTree. They must outlive the tree.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TREE_OPTIONS_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TREE_OPTIONS_H_

#include <functional>

#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/tree/tree_observer.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class ActorSystem;

namespace actor_internal {

struct ActorTreeOptions {
  MailboxRegistry& mailboxes;
  Dispatchers& dispatchers;
  // Counts messages by the types of actors. Null: no metrics.
  ObservabilityHub* hub = nullptr;
  // Publishes messages that reached no actor. Null: they are not published.
  DeadLetters* dead_letters = nullptr;
  // Null: actors have no names and no paths.
  ActorNames* names = nullptr;
  // Null: no log.
  const Logger* log = nullptr;
  // Gives the time on threads that are no workers. Null: it is always zero there.
  RuntimeToolbox* toolbox = nullptr;
  // The stream that actors subscribe to (actor_subscriber.h). Null: there is none.
  EventStream* events = nullptr;
  // Null: there is none.
  TreeObserver* observer = nullptr;
  // The result of ActorContext::system().
  ActorSystem* system = nullptr;
  // Called in the last turn of a root, after all of its descendants have ended.
  std::function<void(ActorRef root)> on_root_ended = nullptr;
};

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TREE_OPTIONS_H_
