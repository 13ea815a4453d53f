// ReadyQueueSchedulerOptions: the dispatchers and the metrics of an actor system
// (ActorSystemOptions::scheduler).
//
//   ActorSystemOptions options;
//   options.scheduler.observability.max_actors = 16;
//   options.scheduler.dispatchers.default_pool.workers = 2;
//
// Thread safety: a value.
#ifndef FRAKTOR_ACTOR_DISPATCH_SCHEDULER_OPTIONS_H_
#define FRAKTOR_ACTOR_DISPATCH_SCHEDULER_OPTIONS_H_

#include "absl/status/status.h"

#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/observe/observability_hub.h"

namespace fraktor::inline v0 {

struct ReadyQueueSchedulerOptions {
  DispatchersOptions dispatchers = {};
  ObservabilityOptions observability = {};

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_SCHEDULER_OPTIONS_H_
