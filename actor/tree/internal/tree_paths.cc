#include "fraktor/actor/tree/internal/tree_paths.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"

namespace fraktor::inline v0::actor_internal {

std::string TreePaths::PathOf(ActorRef actor) const {
  if (actor.IsNoOne()) return "no one";
  if (actor.IsRemote()) return actor.remote_slot()->link->PathOf(actor);
  if (actor.IsPromise()) {
    std::string path = names_ == nullptr ? std::string() : names_->TextOfPromise(actor);
    if (!path.empty()) return path;
    return absl::StrCat(actor.IsCurrent() ? "an ask" : "an ask that is over", " (slot ",
                        PromiseSlotTable::IndexOf(actor.promise_slot()), ", generation ", actor.generation(), ")");
  }
  if (names_ != nullptr) {
    const ActorWorker* const worker = ActorWorker::Current();
    const ActorRef running = worker == nullptr ? ActorRef() : worker->turn_state.self();
    const bool in_its_turn = running.Plain() == actor.Plain();
    std::string path = in_its_turn ? names_->TextInTurnOf(actor) : names_->TextOf(actor);
    if (!path.empty()) return path;
  }
  const bool lives = actor.IsCurrent();
  if (!lives && names_ != nullptr) {
    if (std::string path = names_->TextOfEnded(actor); !path.empty()) return path;
  }
  return absl::StrCat(lives ? "an actor" : "an actor that has ended", " (slot ", ActorSlotTable::IndexOf(actor.slot()),
                      ", generation ", actor.generation(), ")");
}

std::string TreePaths::CanonicalPathOf(ActorRef actor) const {
  if (actor.IsNoOne()) return {};
  if (actor.IsRemote()) return actor.remote_slot()->link->CanonicalPathOf(actor);
  return names_ == nullptr ? std::string() : names_->CanonicalTextOf(actor);
}

}  // namespace fraktor::inline v0::actor_internal
