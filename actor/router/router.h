// Routers: one reference for many actors that do the same work.
//
//   auto workers = SpawnPool<Worker>(system, {.size = 5}, "workers");       // TypedRef, as of one Worker
//   workers.Tell(Job{1});                                                   // one of the five gets it
//   TellAllRoutees(workers, Reload{});                                      // all of them do
//   TellKeyed(workers, "alice", Job{2});                                    // the one that is responsible for "alice"
//
//   const PoolOptions options{.strategy = RouterStrategy::SmallestMailbox(), .size = 5};
//   PropsPtr pool = MakePool(options, TypedPropsOf<Worker>()).value();
//   ActorRef router = context.TrySpawn(*pool, "workers").value();              // the same without types
//   PropsPtr group = MakeGroup({.routees = {a, b, c}}).value();             // actors that are there already
//
// The routees of a pool are children of the router; those of a group have parents of their own. A
// sender routes its message at once, on its own thread. The message does not go through the mailbox
// of the router, so a router is no bottleneck. The reference of a router is an ActorRef as any
// other, and takes every message that an actor takes. A routed message keeps its sender, and the
// reply goes straight to that sender.
//
// The router watches its routees and removes those that have ended. A pool without routees stops,
// unless it has a resizer; a group stays. A pool escalates the failures of its routees, unless its
// options say otherwise: then the supervisor of the pool decides, and a restart of the pool
// restarts all routees. router_messages.h has the messages that manage a router, router_strategy.h
// the ways to choose a routee, and routing_logic.h the way to write another one.
//
// Cost: no lock and no allocation for a message to one routee. A message to several routees is
// copied for all but the last. Routers may be routees of routers, up to 32 levels deep.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_H_

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/resizer.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/router/router_strategy.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::inline v0 {

struct PoolOptions {
  RouterStrategy strategy = RouterStrategy::RoundRobin();
  // The number of routees at the start: 1 to 65536, within the bounds of the resizer.
  int size = 1;
  // At most one of the two.
  std::optional<PressureResizerOptions> resizer = std::nullopt;
  std::optional<ExploringResizerOptions> exploring_resizer = std::nullopt;
  // How the pool supervises its routees. Without a value it escalates every failure.
  std::optional<SupervisorStrategyOptions> supervision = std::nullopt;
  // The dispatcher of the router itself. Routees have the dispatcher of their recipe.
  DispatcherSelector dispatcher = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

struct GroupOptions {
  RouterStrategy strategy = RouterStrategy::RoundRobin();
  std::vector<ActorRef> routees = {};
  DispatcherSelector dispatcher = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// Returns the recipe of a router that spawns its routees by the recipe `routee`. InvalidArgument
// for invalid options.
absl::StatusOr<PropsPtr> MakePool(const PoolOptions& options, const ActorProps& routee);
// Returns the recipe of a router for existing actors.
absl::StatusOr<PropsPtr> MakeGroup(const GroupOptions& options);

namespace router_internal {

inline absl::StatusOr<ActorRef> SpawnBy(ActorSystem& system, const absl::StatusOr<PropsPtr>& props,
                                        std::string_view name) {
  return props.ok() ? system.TrySpawn(**props, name) : props.status();
}
inline absl::StatusOr<ActorRef> SpawnBy(ActorContext& context, const absl::StatusOr<PropsPtr>& props,
                                        std::string_view name) {
  return props.ok() ? context.TrySpawn(**props, name) : props.status();
}

template <class Ref>
absl::StatusOr<Ref> Typed(const absl::StatusOr<ActorRef>& spawned) {
  if (!spawned.ok()) return spawned.status();
  return Ref::Unchecked(*spawned);
}

}  // namespace router_internal

// Spawns a pool of typed actors A(args...). `at` is a system, or a context in a turn of its actor.
// SpawnPool throws SpawnError; TrySpawnPool returns its status. Errors: those of MakePool and of
// ActorContext::TrySpawn, for the pool and for each of its first routees. After an error of a
// routee the pool and its routees end, and the name is free when they have.
template <class A, class At, class... Args>
absl::StatusOr<RefOf<A>> TrySpawnPool(At& at, const PoolOptions& options, std::string_view name = {}, Args&&... args) {
  const PropsPtr routee = typed_internal::MakePropsOf<A>(std::forward<Args>(args)...);
  return router_internal::Typed<RefOf<A>>(router_internal::SpawnBy(at, MakePool(options, *routee), name));
}
template <class A, class At, class... Args>
RefOf<A> SpawnPool(At& at, const PoolOptions& options, std::string_view name = {}, Args&&... args) {
  return spawn_internal::OrThrow(TrySpawnPool<A>(at, options, name, std::forward<Args>(args)...));
}
// The same with options for each routee: dispatcher, mailbox, supervision of its own children.
template <class A, class At, class... Args>
absl::StatusOr<RefOf<A>> TrySpawnPool(At& at, const PoolOptions& options, std::string_view name,
                                      const SpawnOptions& of_routees, Args&&... args) {
  const PropsPtr routee = typed_internal::MakePropsOf<A>(of_routees, std::forward<Args>(args)...);
  return router_internal::Typed<RefOf<A>>(router_internal::SpawnBy(at, MakePool(options, *routee), name));
}
template <class A, class At, class... Args>
RefOf<A> SpawnPool(At& at, const PoolOptions& options, std::string_view name, const SpawnOptions& of_routees,
                   Args&&... args) {
  return spawn_internal::OrThrow(TrySpawnPool<A>(at, options, name, of_routees, std::forward<Args>(args)...));
}

// The same for routees that `factory()` makes, each at its start and again at each restart: for
// actors whose state cannot be copied (TypedContext::Spawn).
template <int&... kDeduced, class At, ActorFactory Factory>
absl::StatusOr<RefOf<MadeBy<Factory>>> TrySpawnPool(At& at, const PoolOptions& options, std::string_view name,
                                                    Factory factory) {
  return TrySpawnPool<MadeBy<Factory>>(at, options, name, typed_internal::ByFactory<Factory>{std::move(factory)});
}
template <int&... kDeduced, class At, ActorFactory Factory>
RefOf<MadeBy<Factory>> SpawnPool(At& at, const PoolOptions& options, std::string_view name, Factory factory) {
  return spawn_internal::OrThrow(TrySpawnPool(at, options, name, std::move(factory)));
}
template <int&... kDeduced, class At, ActorFactory Factory>
absl::StatusOr<RefOf<MadeBy<Factory>>> TrySpawnPool(At& at, const PoolOptions& options, std::string_view name,
                                                    const SpawnOptions& of_routees, Factory factory) {
  return TrySpawnPool<MadeBy<Factory>>(at, options, name, of_routees,
                                       typed_internal::ByFactory<Factory>{std::move(factory)});
}
template <int&... kDeduced, class At, ActorFactory Factory>
RefOf<MadeBy<Factory>> SpawnPool(At& at, const PoolOptions& options, std::string_view name,
                                 const SpawnOptions& of_routees, Factory factory) {
  return spawn_internal::OrThrow(TrySpawnPool(at, options, name, of_routees, std::move(factory)));
}

// Spawns a group of actors that all handle the messages Ms. SpawnGroup throws SpawnError;
// TrySpawnGroup returns its status. Errors: those of MakeGroup and of ActorContext::TrySpawn.
template <class At, class... Ms>
absl::StatusOr<TypedRef<Ms...>> TrySpawnGroup(At& at, GroupOptions options, const std::vector<TypedRef<Ms...>>& routees,
                                              std::string_view name = {}) {
  for (const TypedRef<Ms...> routee : routees) options.routees.push_back(routee.untyped());
  return router_internal::Typed<TypedRef<Ms...>>(router_internal::SpawnBy(at, MakeGroup(options), name));
}
template <class At, class... Ms>
TypedRef<Ms...> SpawnGroup(At& at, GroupOptions options, const std::vector<TypedRef<Ms...>>& routees,
                           std::string_view name = {}) {
  return spawn_internal::OrThrow(TrySpawnGroup(at, std::move(options), routees, name));
}

// The messages of router_messages.h for typed routers: the routees must handle the message, and a
// new routee must handle all messages of the router. An actor that is no router does not handle
// them.

// Sends a message to all routees, with any strategy.
template <class... Ms, class M>
void TellAllRoutees(TypedRef<Ms...> router, M&& message) {
  TypedRef<Ms...>::template Check<M>();
  Tell(router.untyped(), Broadcast(std::forward<M>(message)));
}
// Sends a message to the routee that owns a key: a number, an enum or a text. For
// ConsistentHashing, and for a RoutingLogic that uses RoutingCall::key().
template <class... Ms, class K, class M>
void TellKeyed(TypedRef<Ms...> router, const K& key, M&& message) {
  TypedRef<Ms...>::template Check<M>();
  Tell(router.untyped(), Keyed(key, std::forward<M>(message)));
}
template <class... Ms, class... Os>
void AddRouteeTo(TypedRef<Ms...> router, TypedRef<Os...> routee) {
  (TypedRef<Os...>::template Check<Ms>(), ...);
  Tell(router.untyped(), AddRoutee{routee.untyped()});
}
template <class... Ms, class... Os>
void RemoveRouteeFrom(TypedRef<Ms...> router, TypedRef<Os...> routee) {
  Tell(router.untyped(), RemoveRoutee{routee.untyped()});
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTER_H_
