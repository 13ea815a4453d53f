#include "fraktor/actor/pattern/actor_log.h"

#include "fraktor/actor/tree/internal/actor_tree.h"

namespace fraktor::inline v0 {

using actor_internal::ActorTree;

bool IsLogOn(ActorContext& context, LogLevel level) {
  if (!context.CheckTurn("IsLogOn").ok()) return false;
  return ActorTree::Of(context).log().IsOn(level);
}

void Log(ActorContext& context, LogLevel level, std::string_view text, LogSite site) {
  if (!context.CheckTurn("Log").ok()) return;
  ActorTree::Of(context).log().Log(level, context.self(), text, site);
}

}  // namespace fraktor::inline v0
