// TreeClock: the time for log lines, dead letters and restarts of a tree of actors.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_CLOCK_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_CLOCK_H_

#include "absl/time/time.h"

#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

class TreeClock {
 public:
  // Null: the toolbox of the current worker gives the time. Without a worker it is always zero.
  explicit TreeClock(const RuntimeToolbox* toolbox) : toolbox_(toolbox) {}

  Instant Now() const {
    const RuntimeToolbox* const toolbox = Toolbox();
    return toolbox == nullptr ? Instant() : toolbox->Now();
  }
  absl::Time WallNow() const {
    const RuntimeToolbox* const toolbox = Toolbox();
    return toolbox == nullptr ? absl::UnixEpoch() : toolbox->WallNow();
  }

 private:
  const RuntimeToolbox* Toolbox() const {
    if (toolbox_ != nullptr) return toolbox_;
    const ActorWorker* const worker = ActorWorker::Current();
    return worker == nullptr ? nullptr : worker->toolbox;
  }

  const RuntimeToolbox* const toolbox_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_CLOCK_H_
