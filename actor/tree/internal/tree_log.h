// TreeLog: log lines about actors, with their paths and types.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_LOG_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_LOG_H_

#include <string_view>

#include "fraktor/actor/dispatch/internal/worker_watch.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/tree/internal/actor_types.h"
#include "fraktor/actor/tree/internal/tree_clock.h"
#include "fraktor/actor/tree/internal/tree_paths.h"

namespace fraktor::inline v0::actor_internal {

class TreeLog {
 public:
  // A null `log` writes nothing. All must outlive this object.
  TreeLog(const Logger* log, const TreePaths& paths, const ActorTypes& types, const TreeClock& clock)
      : log_(log), paths_(paths), types_(types), clock_(clock) {}

  bool IsOn(LogLevel level) const { return log_ != nullptr && log_->IsOn(level); }

  // A line about an actor, which may have ended.
  void Log(LogLevel level, ActorRef actor, std::string_view text, LogSite site = LogSite::Here()) const;
  // A warning about an actor that keeps a worker busy for too long.
  void LogStall(std::string_view worker, const WorkerStall& stall) const;

 private:
  const Logger* const log_;
  const TreePaths& paths_;
  const ActorTypes& types_;
  const TreeClock& clock_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_LOG_H_
