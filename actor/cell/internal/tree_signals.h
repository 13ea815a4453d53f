// The system messages between the actors of a tree. Actors send them by TellSystem; ActorTree
// handles them in the turn of the recipient.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_TREE_SIGNALS_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_TREE_SIGNALS_H_

#include <string>

#include "absl/status/status.h"

#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0::actor_internal {

struct StopActor {};
// An ancestor has failed, or a sibling under an all-for-one strategy.
struct SuspendActor {};
// The verdict on an ancestor or on the recipient: it goes on.
struct ResumeActor {};
// The verdict on an ancestor or on the recipient: it restarts.
struct RestartActor {
  absl::Status reason;
  // A verdict on all children. The recipient replies with RestartBegun.
  bool is_of_all = false;
};
// From a child, which is the sender, to its parent: the restart of all children has reached it.
struct RestartBegun {};
// The verdict is a restart, which comes later.
struct RestartDeferred {};
// From a failed child, which is the sender, to its parent.
struct ChildFailed {
  absl::Status error;
  FailureCause cause;
  // A descendant of the child failed first, and `error` names it.
  bool is_escalated = false;
};
// To a stopping or restarting parent: the children that it waits for have ended.
struct ChildrenEnded {};

struct WatchActor {
  ActorRef watcher;
};
struct UnwatchActor {
  ActorRef watcher;
};
// From the spawner of `actor` to its watcher, which watches it from now on.
struct WatchOther {
  ActorRef actor;
};
// To an actor that is subscribed to the event stream: its end ends the subscription.
struct SubscribedToEvents {};
// To the asker: `watcher` watches its promise.
struct WatchPromiseOf {
  ActorRef promise;
  ActorRef watcher;
};
// To a watcher.
struct ActorEnded {
  ActorRef actor;
  bool existence_confirmed;
  bool address_terminated;
  std::string path = {};  // Empty if the sender does not know it.
};

// The metrics of the actor count for `id` from now on.
struct ObserveActor {
  ObservedId id;
};
// The metrics of the actor count for its type again.
struct UnobserveActor {};

// A coroutine that runs in the turns of the recipient.
struct TaskForActor {
  Task<void> task;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_TREE_SIGNALS_H_
