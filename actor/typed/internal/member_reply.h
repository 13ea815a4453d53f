// The reply of TypedContext::AskOnReply: it becomes a call of a member function of the actor.
#ifndef FRAKTOR_ACTOR_TYPED_INTERNAL_MEMBER_REPLY_H_
#define FRAKTOR_ACTOR_TYPED_INTERNAL_MEMBER_REPLY_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/ask/internal/ask_source.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/pooled_memory.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/utils/future/future_result.h"

namespace fraktor::inline v0 {

namespace typed_internal {

// The address identifies the class.
template <class A>
inline constexpr char kClassTag = 0;
absl::Status AskedByAnotherClass();

// A member function that takes replies.
template <class F>
struct ReplyFunction;
template <class Returned, class A, class C, class Answer>
struct ReplyFunction<Returned (A::*)(C&, Answer)> {
  using Actor = A;
  using Context = C;
  using Result = Returned;
  using Value = FutureValue<std::remove_cvref_t<Answer>>;
  static_assert(std::is_same_v<std::remove_cvref_t<Answer>, absl::StatusOr<Value>> && !std::is_void_v<Value>,
                "a function for replies takes the context and an absl::StatusOr of the reply");
  static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, absl::Status>,
                "a function for replies returns void or absl::Status");
};

// Calls a member function with the reply. After a restart it is a function of the new object.
template <auto kFunction>
class MemberReply final : public actor_internal::AskCompletion {
 public:
  using Function = ReplyFunction<decltype(kFunction)>;
  using A = typename Function::Actor;
  using R = typename Function::Value;
  using actor_internal::AskCompletion::AskCompletion;

  static void* operator new(size_t size) { return actor_internal::AllocatePooled(size); }
  static void operator delete(void* memory, size_t size) noexcept { actor_internal::FreePooled(memory, size); }

  static A* ActorOf(ActorContext& context) { return static_cast<A*>(context.slot().instance->ObjectOf(&kClassTag<A>)); }

  void TakeReply(Envelope& reply) noexcept override { Call(actor_internal::ReadReply<R>(asked_type, reply), &reply); }
  void Fail(absl::Status error) noexcept override { Call(std::move(error), nullptr); }
  void Abandon() noexcept override { delete this; }

 private:
  ~MemberReply() = default;

  void Call(absl::StatusOr<R> result, Envelope* answer) noexcept {
    const MessageType* const asked = asked_type;
    delete this;
    actor_internal::CallForReply(asked, answer, [&]() -> absl::Status {
      using C = typename Function::Context;
      C& context = C::Of(ActorContext::Of(*ActorContext::worker().turn_state.running()));
      A* const actor = ActorOf(context);
      // A restart failed to construct the actor, and it will be constructed again, or end.
      if (actor == nullptr) return absl::OkStatus();
      if constexpr (std::is_void_v<typename Function::Result>) {
        (actor->*kFunction)(context, std::move(result));
        return absl::OkStatus();
      } else {
        return (actor->*kFunction)(context, std::move(result));
      }
    });
  }
};

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERNAL_MEMBER_REPLY_H_
