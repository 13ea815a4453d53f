// Routers: one reference for many actors that do the same work.
//
//   auto workers = SpawnPool<Worker>(system, {.size = 5}, "workers");       // TypedRef, as of one Worker
//   workers.Tell(Job{1});                                                   // one of the five gets it
//   TellAllRoutees(workers, Reload{});                                      // all of them do
//   TellKeyed(workers, "alice", Job{2});                                    // the one that is responsible for "alice"
//
//   PropsPtr pool = MakePool({.strategy = RouterStrategy::SmallestMailbox(), .size = 5}, TypedPropsOf<Worker>()).value();
//   ActorRef router = context.TrySpawn(*pool, "workers").value();              // the same without types
//   PropsPtr group = MakeGroup({.routees = {a, b, c}}).value();             // actors that are there already
//
// The routees of a pool are the router's children; those of a group are anybody's. Messages are routed at once by who
// sends them, on that thread, and do not go through the router's mailbox, so a router is no bottleneck: its reference is
// an ActorRef as any other, and whatever can be sent to an actor can be sent to it. The sender of a routed message is
// its sender, and answers go straight to it.
//
// The router itself watches its routees and forgets those that have ended. A pool without any ends itself, unless it has
// a resizer; a group stays. It supervises the routees of a pool by escalating, unless its options say otherwise: then
// its own supervisor decides, and a restart of the router restarts all routees. See router_messages.h for how it is
// managed, and router_strategy.h for how it chooses.
//
// Cost: no lock and no allocation for a message that goes to one routee. One that goes to several is copied, but for the
// last. Routers may be routees of others, at most 32 deep.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTER_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTER_H_

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/resizer.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/router/router_strategy.h"
#include "fraktor/actor/scheduler/dispatcher_choice.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::inline v0 {

struct PoolOptions {
  RouterStrategy strategy = RouterStrategy::RoundRobin();
  // How many routees there are at first; 1 to 65536, within the bounds of the resizer.
  int size = 1;
  // At most one of them.
  std::optional<PressureResizerOptions> resizer = std::nullopt;
  std::optional<ExploringResizerOptions> exploring_resizer = std::nullopt;
  // How the routees are supervised; none: every failure is escalated.
  std::optional<SupervisorStrategyOptions> supervision = std::nullopt;
  // Where the router itself runs; its routees run where their recipe says.
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

// The recipe of a router whose routees are made by another recipe. InvalidArgument for bad options.
absl::StatusOr<PropsPtr> MakePool(const PoolOptions& options, const ActorProps& routee);
// The recipe of a router for actors that are there already.
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
Ref OrThrow(const absl::StatusOr<ActorRef>& spawned) {
  if (!spawned.ok()) throw SpawnError(spawned.status());
  return Ref::Unchecked(*spawned);
}

}  // namespace router_internal

// A pool of typed actors A(args...), from outside or in an actor's turn: `at` is a system or a context. Throws
// SpawnError if it cannot be, also for bad options.
template <class A, class At, class... Args>
RefOf<A> SpawnPool(At& at, const PoolOptions& options, std::string_view name = {}, Args&&... args) {
  const PropsPtr routee = typed_internal::MakePropsOf<A>(std::forward<Args>(args)...);
  return router_internal::OrThrow<RefOf<A>>(router_internal::SpawnBy(at, MakePool(options, *routee), name));
}
// The same with options of each routee: where it runs, its mailbox, how it supervises its own children.
template <class A, class At, class... Args>
RefOf<A> SpawnPool(At& at, const PoolOptions& options, std::string_view name, const SpawnOptions& of_routees,
                   Args&&... args) {
  const PropsPtr routee = typed_internal::MakePropsOf<A>(of_routees, std::forward<Args>(args)...);
  return router_internal::OrThrow<RefOf<A>>(router_internal::SpawnBy(at, MakePool(options, *routee), name));
}

// A group of actors that all handle the messages Ms.
template <class At, class... Ms>
TypedRef<Ms...> SpawnGroup(At& at, GroupOptions options, const std::vector<TypedRef<Ms...>>& routees,
                           std::string_view name = {}) {
  for (const TypedRef<Ms...> routee : routees) options.routees.push_back(routee.untyped());
  return router_internal::OrThrow<TypedRef<Ms...>>(router_internal::SpawnBy(at, MakeGroup(options), name));
}

// What router_messages.h has, for typed routers: with messages that the routees handle, and routees that handle what the
// router takes. Told to a reference of one who is no router they are unhandled messages.

// A message for all routees, whatever the strategy.
template <class... Ms, class M>
void TellAllRoutees(TypedRef<Ms...> router, M&& message) {
  TypedRef<Ms...>::template Check<M>();
  Tell(router.untyped(), Broadcast(std::forward<M>(message)));
}
// A message for the routee that is responsible for a key: a number, an enum or a text. Of ConsistentHashing.
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
