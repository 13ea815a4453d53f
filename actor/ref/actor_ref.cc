#include "fraktor/actor/ref/actor_ref.h"

#include <atomic>
#include <ostream>
#include <string>

namespace fraktor::inline v0 {
namespace {

// The release store of SetActorRefDescriber pairs with the acquire load of operator<<. Set once.
constinit std::atomic<ActorRefDescriber> describer{nullptr};

}  // namespace

void SetActorRefDescriber(ActorRefDescriber describe) { describer.store(describe, std::memory_order_release); }

std::ostream& operator<<(std::ostream& out, ActorRef ref) {
  if (ref.IsNoOne()) return out << "no one";
  if (const ActorRefDescriber describe = describer.load(std::memory_order_acquire)) return out << describe(ref);
  return out << "the actor in slot " << static_cast<const void*>(ref.any_slot()) << ", word " << ref.word();
}

}  // namespace fraktor::inline v0
