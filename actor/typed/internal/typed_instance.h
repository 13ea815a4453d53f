// The instance of a typed actor: it turns the calls of the runtime into calls of the actor's class.
#ifndef FRAKTOR_ACTOR_TYPED_INTERNAL_TYPED_INSTANCE_H_
#define FRAKTOR_ACTOR_TYPED_INTERNAL_TYPED_INSTANCE_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/typed/internal/handler_checks.h"
#include "fraktor/actor/typed/internal/handler_dispatch.h"
#include "fraktor/actor/typed/internal/member_reply.h"
#include "fraktor/actor/typed/internal/typed_instance_base.h"
#include "fraktor/actor/typed/typed_context.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::inline v0 {

template <class Self, class... Ms>
class Actor;

namespace typed_internal {

// The argument of an actor that a factory of the program makes.
template <class Factory>
struct ByFactory {
  Factory factory;
};

// The class that derives from the given Actor. Has no definition.
template <class Self, class... Ms>
Self SelfOf(const Actor<Self, Ms...>*);
// True also if A derives from a class that is the Self of its Actor.
template <class A>
inline constexpr bool kNamesItself = true;
template <class A>
requires requires(const A* actor) { SelfOf(actor); }
inline constexpr bool kNamesItself<A> = std::is_base_of_v<decltype(SelfOf(std::declval<const A*>())), A>;

template <class A, class C, class... Ms>
class TypedInstance : public TypedInstanceBase {
  static_assert(kNamesItself<A>,
                "the actor derives from Actor<Other, M...>: write its own name there, as in "
                "`class Greeter : public Actor<Greeter, Greet>`");
  static_assert(CheckHooks<A, C>());

 public:
  template <class... Args>
  explicit TypedInstance(const Args&... args) : actor_(args...) {}
  template <class Factory>
  explicit TypedInstance(const ByFactory<Factory>& by) : actor_(by.factory()) {}
  ~TypedInstance() override { EndBehaviors(); }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    absl::Status status;
    if (TypedBehavior* const replacing = behavior()) [[unlikely]]
      return ReceiveByBehavior(*replacing, context, message);
    if (ReceiveBy<A, C, Ms...>(actor_, context, message, status)) [[likely]]
      return status;
    return ReceiveOther(context, message);
  }

  absl::Status PreStart(ActorContext& context) override {
    if constexpr (CanPreStart<A, C>) {
      return CallHook([&] { return actor_.PreStart(C::Of(context)); });
    } else {
      return absl::OkStatus();
    }
  }
  void PostStop(ActorContext& context) override {
    if constexpr (CanPostStop<A, C>) actor_.PostStop(C::Of(context));
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override {
    if constexpr (CanPreRestart<A, C>) {
      return CallHook([&] { return actor_.PreRestart(C::Of(context), reason, message); });
    } else {
      return ActorInstance::PreRestart(context, reason, message);
    }
  }
  absl::Status PostRestart(ActorContext& context, const absl::Status& reason) override {
    if constexpr (CanPostRestart<A, C>) {
      return CallHook([&] { return actor_.PostRestart(C::Of(context), reason); });
    } else {
      return ActorInstance::PostRestart(context, reason);
    }
  }
  const SupervisorStrategy& supervision() const override {
    if constexpr (HasStrategy<A>) {
      return A::Supervision();
    } else {
      return ActorInstance::supervision();
    }
  }
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override {
    if constexpr (CanDecideOnFailure<A>) {
      return actor_.OnChildFailure(failure);
    } else {
      return ActorInstance::OnChildFailure(context, failure);
    }
  }

  void* ObjectOf(const void* type) override { return type == &kClassTag<A> ? &actor_ : nullptr; }

  static constexpr bool kHasStart = CanPreStart<A, C>;

 private:
  template <class Hook>
  static absl::Status CallHook(Hook hook) {
    if constexpr (std::is_void_v<decltype(hook())>) {
      hook();
      return absl::OkStatus();
    } else {
      return hook();
    }
  }

  [[gnu::noinline]] absl::Status ReceiveByBehavior(TypedBehavior& top, ActorContext& context, Envelope& message) {
    absl::Status status;
    {
      const actor_internal::OwnerScope scope(top);
      if (top.Receive(context, message, status)) return status;
    }
    return TryRuntimeMessages<A, C>(actor_, context, message, status) ? status : ReceiveOther(context, message);
  }

  A actor_;
};

template <class A, class R>
struct InstanceFor;
template <class A, class... Ms>
struct InstanceFor<A, TypedRef<Ms...>> {
  using Type = TypedInstance<A, TypedContext<Ms...>, Ms...>;
};
template <class A>
using InstanceOf = typename InstanceFor<A, RefOf<A>>::Type;

// An instance that was spawned with SpawnOptions::supervision.
template <class A>
class SupervisingInstance final : public InstanceOf<A> {
 public:
  template <class... Args>
  explicit SupervisingInstance(const SupervisorStrategy& strategy, const Args&... args)
      : InstanceOf<A>(args...), strategy_(strategy) {}

  const SupervisorStrategy& supervision() const override { return strategy_; }

 private:
  // Belongs to the recipe, which lives as long as the actor.
  const SupervisorStrategy& strategy_;
};

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERNAL_TYPED_INSTANCE_H_
