#include "fraktor/actor/ref/actor_ref.h"

#include <atomic>
#include <ostream>
#include <sstream>
#include <string>

namespace fraktor::inline v0 {
namespace {

// The release store of SetActorRefDescriber pairs with the acquire load of ToText. Set once.
constinit std::atomic<ActorRefDescriber> describer{nullptr};

}  // namespace

void SetActorRefDescriber(ActorRefDescriber describe) { describer.store(describe, std::memory_order_release); }

std::string ToText(ActorRef ref) {
  if (ref.IsNoOne()) return "no one";
  if (const ActorRefDescriber describe = describer.load(std::memory_order_acquire)) return describe(ref);
  std::ostringstream text;
  text << "the actor in slot " << static_cast<const void*>(ref.any_slot()) << ", word " << ref.word();
  return text.str();
}

std::ostream& operator<<(std::ostream& out, ActorRef ref) { return out << ToText(ref); }

}  // namespace fraktor::inline v0
