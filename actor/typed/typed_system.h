// Spawns typed actors from outside of actors: the templates that ActorSystem declares.
//
//   ActorSystem system("bank");
//   auto account = system.Spawn<Account>("alice", /*balance=*/100);       // throws SpawnError if there is an "alice"
//   absl::StatusOr<RefOf<Account>> second = system.TrySpawn<Account>("alice", 100);      // AlreadyExists
//   auto bounded = system.Spawn<Account>("bob", {.mailbox = {.capacity = 1000}}, /*balance=*/100);  // see SpawnOptions
//   auto carol = system.Spawn("carol", [] { return Account(/*balance=*/100); });      // called again at each restart
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_SYSTEM_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_SYSTEM_H_

#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/spawn_options.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/actor/typed/typed_props.h"

namespace fraktor::inline v0 {

template <class A, class... Args>
absl::StatusOr<typename A::Ref> ActorSystem::TrySpawn(std::string_view name, Args&&... args) {
  return typed_internal::SpawnBy<A>([&](const ActorProps& props) { return TrySpawn(props, name); },
                                    std::forward<Args>(args)...);
}
template <class A, class... Args>
absl::StatusOr<typename A::Ref> ActorSystem::TrySpawn(std::string_view name, const SpawnOptions& options,
                                                      Args&&... args) {
  return typed_internal::SpawnBy<A>([&](const ActorProps& props) { return TrySpawn(props, name); }, options,
                                    std::forward<Args>(args)...);
}

template <class A, class... Args>
typename A::Ref ActorSystem::Spawn(std::string_view name, Args&&... args) {
  return spawn_internal::OrThrow(TrySpawn<A>(name, std::forward<Args>(args)...));
}
template <class A, class... Args>
typename A::Ref ActorSystem::Spawn(std::string_view name, const SpawnOptions& options, Args&&... args) {
  return spawn_internal::OrThrow(TrySpawn<A>(name, options, std::forward<Args>(args)...));
}

template <int&... kDeduced, class Factory>
requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
absl::StatusOr<typename std::invoke_result_t<const Factory&>::Ref> ActorSystem::TrySpawn(std::string_view name,
                                                                                         Factory factory) {
  return TrySpawn<MadeBy<Factory>>(name, typed_internal::ByFactory<Factory>{std::move(factory)});
}
template <int&... kDeduced, class Factory>
requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
absl::StatusOr<typename std::invoke_result_t<const Factory&>::Ref> ActorSystem::TrySpawn(std::string_view name,
                                                                                         const SpawnOptions& options,
                                                                                         Factory factory) {
  return TrySpawn<MadeBy<Factory>>(name, options, typed_internal::ByFactory<Factory>{std::move(factory)});
}
template <int&... kDeduced, class Factory>
requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
typename std::invoke_result_t<const Factory&>::Ref ActorSystem::Spawn(std::string_view name, Factory factory) {
  return spawn_internal::OrThrow(TrySpawn(name, std::move(factory)));
}
template <int&... kDeduced, class Factory>
requires requires { typename std::invoke_result_t<const Factory&>::Ref; }
typename std::invoke_result_t<const Factory&>::Ref ActorSystem::Spawn(std::string_view name,
                                                                      const SpawnOptions& options, Factory factory) {
  return spawn_internal::OrThrow(TrySpawn(name, options, std::move(factory)));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_SYSTEM_H_
