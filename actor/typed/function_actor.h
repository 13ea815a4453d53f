// FunctionActor: an actor that is a function, without state.
//
//   Pong Echo(ActorContext& context, const Ping& ping) { return {ping.number}; }
//
//   auto echo = system.Spawn<FunctionActor<&Echo>>("echo");      // TypedRef<Ping>
//
// The function may return everything that a handler may return (typed_actor.h). A coroutine takes
// its message by value.
#ifndef FRAKTOR_ACTOR_TYPED_FUNCTION_ACTOR_H_
#define FRAKTOR_ACTOR_TYPED_FUNCTION_ACTOR_H_

#include <type_traits>
#include <utility>

#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/actor/typed/typed_context.h"

namespace fraktor::inline v0 {
namespace typed_internal {

template <class F>
struct HandlerFunction;
template <class R, class C, class M>
struct HandlerFunction<R (*)(C&, M)> {
  using Result = R;
  using Message = std::remove_cvref_t<M>;
};

}  // namespace typed_internal

template <auto kFunction>
class FunctionActor
    : public Actor<FunctionActor<kFunction>, typename typed_internal::HandlerFunction<decltype(kFunction)>::Message> {
 public:
  using Message = typename typed_internal::HandlerFunction<decltype(kFunction)>::Message;
  using Result = typename typed_internal::HandlerFunction<decltype(kFunction)>::Result;

  Result On(TypedContext<Message>& context, Message& message) {
    if constexpr (std::is_invocable_v<decltype(kFunction), TypedContext<Message>&, Message&>) {
      return kFunction(context, message);
    } else {
      return kFunction(context, std::move(message));
    }
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_FUNCTION_ACTOR_H_
