// Calls the handler of a typed actor for a message, and does what its result says.
#ifndef FRAKTOR_ACTOR_TYPED_INTERNAL_HANDLER_DISPATCH_H_
#define FRAKTOR_ACTOR_TYPED_INTERNAL_HANDLER_DISPATCH_H_

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/typed/internal/handler_checks.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

namespace typed_internal {

// Handles the result of a handler: a reply, an error as the reply, or a failure of the actor, which
// it returns.
template <class R>
absl::Status Answer(ActorContext& context, R&& result) {
  using Result = std::decay_t<R>;
  if constexpr (std::is_same_v<Result, absl::Status>) {
    return std::forward<R>(result);
  } else if constexpr (kIsStatusOr<Result>) {
    if (!result.ok()) {
      context.Reply(ErrorReply{result.status()});
      return absl::OkStatus();
    }
    return Answer(context, *std::forward<R>(result));
  } else if constexpr (kIsDeferred<Result>) {
    return result.status();
  } else if constexpr (kIsForwarded<Result>) {
    return absl::OkStatus();
  } else {
    const ActorRef asker = context.sender();
    if (std::is_same_v<Result, ErrorReply> || !asker.IsNoOne()) context.Tell(asker, std::forward<R>(result));
    return absl::OkStatus();
  }
}

// A running coroutine handler.
template <class T>
class TypedTaskHandler final : public actor_internal::AwaitingHandler {
 public:
  explicit TypedTaskHandler(Task<T> task) : running_(std::move(task), static_cast<TaskDriver&>(*this)) {}

  bool Step() override { return running_.Resume(); }
  absl::Status Finish(ActorContext& context) override {
    if (std::exception_ptr thrown = running_.exception()) std::rethrow_exception(thrown);
    return Answer(context, running_.TakeResult());
  }

 private:
  RunningTask<T> running_;
};

// Calls the handler of M and handles its result.
template <class C, class A, class M>
absl::Status Dispatch(A& actor, ActorContext& context, Envelope& envelope) {
  C& typed = C::Of(context);
  M& message = envelope.As<M>();
  using R = HandlerResult<A, C, M>;
  if constexpr (std::is_void_v<R>) {
    CallHandler(actor, typed, message);
    return absl::OkStatus();
  } else if constexpr (kIsTask<R>) {
    using T = typename TaskValue<R>::Type;
    return actor_internal::RunHandler(
        context, std::make_unique<TypedTaskHandler<T>>(CallHandler(actor, typed, message)), kAwaitMode<R>);
  } else {
    return Answer(context, CallHandler(actor, typed, message));
  }
}

template <class A, class C, class M>
bool TryOne(A& actor, ActorContext& context, Envelope& message, absl::Status& status) {
  if (!message.Is<M>()) return false;
  status = Dispatch<C, A, M>(actor, context, message);
  return true;
}

// Tries the handlers for messages of the runtime, which a class may have.
template <class A, class C>
[[gnu::noinline]] bool TryRuntimeMessages(A& actor, ActorContext& context, Envelope& message, absl::Status& status) {
  if constexpr (Handles<A, C, Terminated>) {
    if (TryOne<A, C, Terminated>(actor, context, message, status)) return true;
  }
  if constexpr (Handles<A, C, ReceiveTimeout>) {
    if (TryOne<A, C, ReceiveTimeout>(actor, context, message, status)) return true;
  }
  if constexpr (Handles<A, C, ActorIdentity>) {
    if (TryOne<A, C, ActorIdentity>(actor, context, message, status)) return true;
  }
  if constexpr (Handles<A, C, ErrorReply>) {
    if (TryOne<A, C, ErrorReply>(actor, context, message, status)) return true;
  }
  return false;
}

template <class A, class C, class... Ms>
[[gnu::always_inline]] inline bool ReceiveBy(A& actor, ActorContext& context, Envelope& message, absl::Status& status) {
  static_assert((CheckHandles<A, C, Ms>() && ...));
  static_assert(CheckRuntimeMessage<A, C, Terminated>() && CheckRuntimeMessage<A, C, ReceiveTimeout>() &&
                CheckRuntimeMessage<A, C, ActorIdentity>() && CheckRuntimeMessage<A, C, ErrorReply>());
  return (TryOne<A, C, Ms>(actor, context, message, status) || ...) ||
         TryRuntimeMessages<A, C>(actor, context, message, status);
}

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERNAL_HANDLER_DISPATCH_H_
