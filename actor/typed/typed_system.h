// Typed actors of a system, from outside: the templates that ActorSystem declares.
//
//   ActorSystem system("bank");
//   auto account = system.Spawn<Account>("alice", /*balance=*/100);       // throws SpawnError if there is an "alice"
//   absl::StatusOr<RefOf<Account>> second = system.TrySpawn<Account>("alice", 100);      // AlreadyExists
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_SYSTEM_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_SYSTEM_H_

#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/typed_actor.h"

namespace fraktor::inline v0 {

template <class A, class... Args>
absl::StatusOr<typename A::Ref> ActorSystem::TrySpawn(std::string_view name, Args&&... args) {
  absl::StatusOr<ActorRef> ref = [&] {
    if constexpr (sizeof...(Args) == 0) {
      return SpawnActor(TypedPropsOf<A>(), name);
    } else {
      return SpawnActor(*MakeTypedProps<A>(PropsOptions(), std::forward<Args>(args)...), name);
    }
  }();
  if (!ref.ok()) return ref.status();
  return RefOf<A>::Unchecked(*ref);
}

template <class A, class... Args>
typename A::Ref ActorSystem::Spawn(std::string_view name, Args&&... args) {
  absl::StatusOr<RefOf<A>> ref = TrySpawn<A>(name, std::forward<Args>(args)...);
  if (!ref.ok()) throw SpawnError(ref.status());
  return *ref;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_SYSTEM_H_
