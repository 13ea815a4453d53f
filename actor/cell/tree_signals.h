// System messages between the actors of a tree.
#ifndef FRAKTOR_ACTOR_CELL_TREE_SIGNALS_H_
#define FRAKTOR_ACTOR_CELL_TREE_SIGNALS_H_

#include <string>

#include "absl/status/status.h"

#include "fraktor/actor/observe/observed_id.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

struct StopActor {};
struct SuspendActor {};  // Because an ancestor has failed.
struct ResumeActor {};   // The verdict on an ancestor, or on itself.
// The verdict.
struct RestartActor {
  absl::Status reason;
};
// The verdict is a restart, but not yet: who has asked need not wait for it.
struct RestartPutOff {};
// To the parent. The sender is the child.
struct ChildFailed {
  absl::Status error;
  FailureCause cause;
  // A descendant of the child failed at first, and `error` names it.
  bool is_escalated = false;
};
struct ChildrenEnded {};  // Those that the parent has been waiting for.

struct WatchActor {
  ActorRef watcher;
};
struct UnwatchActor {
  ActorRef watcher;
};
// To the watcher, from whoever spawned the actor for it.
struct WatchOther {
  ActorRef actor;
};
// To an actor that has been subscribed to the event stream: its end is the end of that.
struct SubscribedToEvents {};
// To the actor that has asked: `watcher` wants to know when the promise is over.
struct WatchPromiseOf {
  ActorRef promise;
  ActorRef watcher;
};
struct ActorEnded {
  ActorRef actor;
  bool existence_confirmed;
  bool address_terminated;
  std::string path = {};  // Empty if who says so does not know it.
};

// Metrics of the actor count for that id from now on.
struct ObserveActor {
  ObservedId id;
};
struct UnobserveActor {};

// A coroutine that is to run in the actor's turns.
struct TaskForActor {
  Task<void> task;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_TREE_SIGNALS_H_
