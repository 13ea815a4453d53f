// Recipes of typed actors, for routers, remoting and other code that spawns by ActorProps.
//
//   PropsPtr recipe = MakeTypedProps<Account>(PropsOptions(), /*balance=*/100);
//   ActorRef account = system.TrySpawn(*recipe, "alice").value();
//   const ActorProps& shared = TypedPropsOf<Greeter>();          // one for the whole process
//
// Thread safety: recipes are immutable.
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_PROPS_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_PROPS_H_

#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/typed/internal/typed_instance.h"
#include "fraktor/actor/typed/spawn_options.h"
#include "fraktor/actor/typed/typed_context.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::inline v0 {

// Returns the recipe of an A(args...), as MakeProps does for untyped actors (actor_props.h).
template <class A, class... Args>
PropsPtr MakeTypedProps(const PropsOptions& options, Args&&... args) {
  return MakePropsFor<A, typed_internal::InstanceOf<A>>(options, std::forward<Args>(args)...);
}
// The recipe of an A without arguments. It lives as long as the process.
template <class A>
const ActorProps& TypedPropsOf() {
  static const ActorProps& props = *MakeTypedProps<A>(PropsOptions()).release();
  return props;
}

namespace typed_internal {

template <class A, class... Args>
PropsPtr MakePropsWith(const SpawnOptions& options, Args&&... args) {
  const PropsOptions usual{.dispatcher = options.dispatcher, .mailbox = options.mailbox};
  if (!options.supervision.has_value()) return MakeTypedProps<A>(usual, std::forward<Args>(args)...);
  return MakePropsFor<A, SupervisingInstance<A>>(usual, *options.supervision, std::forward<Args>(args)...);
}

template <class... Args>
inline constexpr bool kBeginsWithOptions = false;
template <class First, class... Rest>
inline constexpr bool kBeginsWithOptions<First, Rest...> = std::is_same_v<std::decay_t<First>, SpawnOptions>;

// Whether an A can be constructed from copies of the arguments, not counting SpawnOptions at their
// beginning.
template <class A, class... Args>
inline constexpr bool kCanBeMadeOf = std::is_constructible_v<A, const std::decay_t<Args>&...>;
template <class A, class First, class... Rest>
requires(kBeginsWithOptions<First, Rest...>) inline constexpr bool kCanBeMadeOf<A, First, Rest...> =
    kCanBeMadeOf<A, Rest...>;

template <class A, class Factory>
inline constexpr bool kCanBeMadeOf<A, ByFactory<Factory>> = true;

template <class A, class... Args>
constexpr void CheckArguments() {
  static_assert(
      kCanBeMadeOf<A, Args...>,
      "the actor has no public constructor for these arguments; the recipe keeps copies of them, and calls the "
      "constructor with const references to the copies at each start and restart; for arguments that cannot be copied, "
      "pass a factory: Spawn(name, [] { return MyActor(...); })");
}

// The recipe for an A(args...). SpawnOptions at the beginning of `args` are options of the recipe.
template <class A, class... Args>
PropsPtr MakePropsOf(Args&&... args) {
  CheckArguments<A, Args...>();
  if constexpr (kBeginsWithOptions<Args...>) {
    return MakePropsWith<A>(std::forward<Args>(args)...);
  } else {
    return MakeTypedProps<A>(PropsOptions(), std::forward<Args>(args)...);
  }
}

// Calls `spawn` with the recipe for an A(args...).
template <class A, class Spawn, class... Args>
absl::StatusOr<RefOf<A>> SpawnBy(Spawn spawn, Args&&... args) {
  CheckArguments<A, Args...>();
  absl::StatusOr<ActorRef> ref = [&] {
    if constexpr (sizeof...(Args) == 0) {
      return spawn(TypedPropsOf<A>());
    } else {
      return spawn(*MakePropsOf<A>(std::forward<Args>(args)...));
    }
  }();
  if (!ref.ok()) return ref.status();
  return RefOf<A>::Unchecked(*ref);
}

}  // namespace typed_internal

template <class... Ms>
template <class A, class... Args>
absl::StatusOr<RefOf<A>> TypedContext<Ms...>::TrySpawn(std::string_view name, Args&&... args) {
  return typed_internal::SpawnBy<A>([&](const ActorProps& props) { return ActorContext::TrySpawn(props, name); },
                                    std::forward<Args>(args)...);
}
template <class... Ms>
template <class A, class... Args>
absl::StatusOr<RefOf<A>> TypedContext<Ms...>::TrySpawn(std::string_view name, const SpawnOptions& options,
                                                       Args&&... args) {
  return typed_internal::SpawnBy<A>([&](const ActorProps& props) { return ActorContext::TrySpawn(props, name); },
                                    options, std::forward<Args>(args)...);
}

template <class... Ms>
template <int&... kDeduced, ActorFactory Factory>
absl::StatusOr<RefOf<MadeBy<Factory>>> TypedContext<Ms...>::TrySpawn(std::string_view name, Factory factory) {
  return TrySpawn<MadeBy<Factory>>(name, typed_internal::ByFactory<Factory>{std::move(factory)});
}
template <class... Ms>
template <int&... kDeduced, ActorFactory Factory>
absl::StatusOr<RefOf<MadeBy<Factory>>> TypedContext<Ms...>::TrySpawn(std::string_view name, const SpawnOptions& options,
                                                                     Factory factory) {
  return TrySpawn<MadeBy<Factory>>(name, options, typed_internal::ByFactory<Factory>{std::move(factory)});
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_PROPS_H_
