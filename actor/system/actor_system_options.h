// ActorSystemOptions: the settings of an ActorSystem.
//
//   ActorSystemOptions options{.config = {.system_name = "shop"}, .workers = 4};
//   FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ActorSystem> system, ActorSystem::Create(options));
//
// Thread safety: a value. The system copies it, so one object may serve for several systems, one
// after the other. The comments of members that are functions name the threads that call them.
#ifndef FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_OPTIONS_H_
#define FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_OPTIONS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/scheduler_options.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class ActorSystem;
class CodecRegistry;
class TreeObserver;

struct ActorSystemOptions {
  // The name, the scheme and the paths.
  ActorSystemConfig config = {};
  // Gives time, threads and random numbers. Must outlive the system. Null: threads and the real
  // clock.
  RuntimeToolbox* toolbox = nullptr;
  // The workers of the default pool. 0: the number in scheduler.dispatchers.default_pool, or
  // without one, one per core. InvalidArgument if both are set and differ.
  int workers = 0;
  // Further pools, each with a name of its own. Actors choose one by SpawnOptions::dispatcher. See
  // fraktor/actor/dispatch/dispatchers.h. An unknown CPU, or a nice value that the process may not
  // set, fails the boot.
  std::vector<DispatcherOptions> dispatchers = {};
  ReadyQueueSchedulerOptions scheduler = {};
  // How /user supervises its children.
  SupervisorStrategyOptions guardian_strategy = {};
  // Receives the log. Must outlive the system. Null: stderr.
  LogSink* log_sink = nullptr;
  LogLevel log_level = LogLevel::kInfo;
  // Limits the lines of one place in a program.
  LogLimits log_limits = {};
  // Which dead letters are logged. The system sets `log` if it is null.
  DeadLetterOptions dead_letters = {};
  EventStreamOptions events = {};
  // The messages that can be stored and sent: see fraktor/actor/serialization/codec_registry.h.
  // Null: numbers and texts.
  std::shared_ptr<const CodecRegistry> codecs = nullptr;
  // Hears of each actor that is spawned or ends. Must outlive the system. Null: there is none.
  TreeObserver* tree_observer = nullptr;
  // The phases of the shutdown, and SIGTERM.
  CoordinatedShutdownOptions coordinated_shutdown = {};
  // How long the destructor waits for actors to end.
  absl::Duration shutdown_timeout = absl::Seconds(10);
  // Called on the booting thread after the guardians have started, and before other threads can
  // spawn or resolve. An error fails the boot.
  std::function<absl::Status(ActorSystem& system)> on_boot = nullptr;

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_OPTIONS_H_
