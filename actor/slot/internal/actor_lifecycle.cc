#include "fraktor/actor/slot/internal/actor_lifecycle.h"

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0::actor_internal {
namespace {

absl::Status NotHere(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("this scheduler runs without an actor system and cannot ", what));
}

}  // namespace

Envelope* ActorLifecycle::OnInterceptedMessage(Turn, Envelope* envelope) { return envelope; }

void ActorLifecycle::OnActivity(ActorSlot&) {}

void ActorLifecycle::OnThrown(ActorRef, const absl::Status&) {}

absl::StatusOr<ActorRef> ActorLifecycle::Spawn(ActorContext&, const ActorProps&, std::string_view) {
  return NotHere("spawn");
}

void ActorLifecycle::Stop(ActorContext&, ActorRef) {}

absl::Status ActorLifecycle::Watch(ActorContext&, ActorRef, EnvelopePtr, SameMessage) { return NotHere("watch"); }

void ActorLifecycle::Unwatch(ActorContext&, ActorRef) {}

ActorRef ActorLifecycle::ParentOf(ActorRef) const { return {}; }

ActorRef ActorLifecycle::ChildOf(ActorRef, std::string_view) const { return {}; }

std::vector<ActorRef> ActorLifecycle::ChildrenOf(ActorRef) const { return {}; }

std::string ActorLifecycle::PathOf(ActorRef) const { return "an actor"; }

absl::Status ActorLifecycle::OnUnhandled(ActorContext&, Envelope&) { return absl::OkStatus(); }

std::string ActorLifecycle::DescribeFromOutside(ActorRef) const {
  return "the target did not report which message it is handling";
}

void ActorLifecycle::OnPromiseEnded(ActorRef, ActorRef) {}

}  // namespace fraktor::inline v0::actor_internal
