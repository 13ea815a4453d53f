// How an actor system is set up.
//
//   ActorSystemOptions options{.config = {.system_name = "shop"}, .workers = 4};
//   FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ActorSystem> system, ActorSystem::Create(options));
#ifndef FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_OPTIONS_H_
#define FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_OPTIONS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/ready_queue_scheduler.h"
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
  // Name, scheme and paths.
  ActorSystemConfig config = {};
  // Where time, threads and chance come from; must outlive the system. Null: threads and the real clock.
  RuntimeToolbox* toolbox = nullptr;
  // Of the default pool, instead of what `scheduler` says; 0: as many as the machine has cores.
  int workers = 0;
  // Pools of the program's own, each with another name: actors choose one by
  // SpawnOptions::dispatcher. See fraktor/actor/dispatch/dispatchers.h. An unknown CPU, or a nice
  // value that the process may not set, fails the boot.
  std::vector<DispatcherOptions> dispatchers = {};
  ReadyQueueSchedulerOptions scheduler = {};
  // How /user supervises what is spawned from outside.
  SupervisorStrategyOptions guardian_strategy = {};
  // Must outlive the system; null: stderr.
  LogSink* log_sink = nullptr;
  LogLevel log_level = LogLevel::kInfo;
  // Of one place in a program.
  LogLimits log_limits = {};
  // Which dead letters are logged; `log` is set by the system.
  DeadLetterOptions dead_letters = {};
  EventStreamOptions events = {};
  // What can be stored and sent: see fraktor/actor/serialization/codec_registry.h. Null: numbers and texts.
  std::shared_ptr<const CodecRegistry> codecs = nullptr;
  // Is told of actors as they come and go; must outlive the system. Null: nobody is.
  TreeObserver* tree_observer = nullptr;
  // How the system goes down, with the program around it.
  CoordinatedShutdownOptions coordinated_shutdown = {};
  // How long the destructor waits for actors to end.
  absl::Duration shutdown_timeout = absl::Seconds(10);
  // Runs on the booting thread when the guardians are there, before the system takes anything from others. An error
  // fails the boot.
  std::function<absl::Status(ActorSystem& system)> on_boot = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_ACTOR_SYSTEM_OPTIONS_H_
