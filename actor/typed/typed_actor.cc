#include "fraktor/actor/typed/typed_actor.h"

#include <utility>

namespace fraktor::inline v0::typed_internal {

TypedInstanceBase::~TypedInstanceBase() {
  while (!behaviors_.empty()) Pop();
  Sweep();
}

void TypedInstanceBase::Push(bool replace, void* behavior, const BehaviorTable* table) {
  if (replace) Pop();
  behaviors_.push_back({behavior, table});
}

bool TypedInstanceBase::Pop() {
  if (behaviors_.empty()) return false;
  // It may be the one that runs.
  replaced_.push_back(behaviors_.back());
  behaviors_.pop_back();
  return true;
}

void TypedInstanceBase::Sweep() {
  for (const Behavior& behavior : std::exchange(replaced_, {})) behavior.table->destroy(behavior.object);
}

}  // namespace fraktor::inline v0::typed_internal
