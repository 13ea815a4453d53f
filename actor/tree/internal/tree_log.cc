#include "fraktor/actor/tree/internal/tree_log.h"

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

void TreeLog::Log(LogLevel level, ActorRef actor, std::string_view text, LogSite site) const {
  if (!IsOn(level)) return;
  const std::string path = paths_.PathOf(actor);
  const std::string type = types_.NameOf(actor.slot()->type.load(std::memory_order_relaxed));
  log_->Log(level, {.at = clock_.WallNow(), .path = path, .type = type, .text = text}, site);
}

void TreeLog::LogStall(std::string_view worker, const WorkerStall& stall) const {
  if (!IsOn(LogLevel::kWarning)) return;
  const std::string type = types_.NameOf(stall.actor_type);
  const std::string text = absl::StrCat(
      "has held worker ", ToAbsl(worker), " for ", absl::FormatDuration(absl::Trunc(stall.held, absl::Milliseconds(1))),
      ", and still does: others wait. Work that blocks belongs to a BlockingPool, to an actor of "
      "DispatcherChoice::kPinned, or to a pool with DispatcherOptions::may_block");
  log_->Log(LogLevel::kWarning, {.at = clock_.WallNow(), .type = type, .text = text});
}

}  // namespace fraktor::inline v0::actor_internal
