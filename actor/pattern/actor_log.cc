#include "fraktor/actor/pattern/actor_log.h"

#include "fraktor/actor/cell/actor_tree.h"

namespace fraktor::inline v0 {

bool IsLogOn(ActorContext& context, LogLevel level) {
  if (!context.CheckTurn("IsLogOn").ok()) return false;
  const Logger* const log = ActorTree::Of(context).options().log;
  return log != nullptr && log->IsOn(level);
}

void Log(ActorContext& context, LogLevel level, std::string_view text, LogSite site) {
  if (!context.CheckTurn("Log").ok()) return;
  ActorTree::Of(context).Log(level, context.self(), text, site);
}

}  // namespace fraktor::inline v0
