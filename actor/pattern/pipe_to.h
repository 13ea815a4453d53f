// PipeTo: sends the result of a future as a message.
//
//   PipeTo(context, store.Load(id), context.self());       // a Loaded, or an ErrorReply, from this actor to itself
//   PipeTo(system, std::move(page), printer, /*sender=*/{});
//
// The value is the message; an error becomes an ErrorReply. The sender is the actor of the context,
// or the given one. The message is sent even if that actor has ended or was restarted meanwhile. If
// the future is ready already, its Maps run in the caller's turn; otherwise they run on a worker,
// and never on the thread that completes the future.
//
// Thread safety: the overload with a context belongs to the actor's turn; the one with a system is
// for any thread.
#ifndef FRAKTOR_ACTOR_PATTERN_PIPE_TO_H_
#define FRAKTOR_ACTOR_PATTERN_PIPE_TO_H_

#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

namespace pipe_to_internal {

// Sends an envelope with its sender, from any thread.
void Send(ActorRef to, EnvelopePtr message);

template <class T>
void SendResult(absl::StatusOr<T> result, ActorRef to, ActorRef sender) {
  if (result.ok()) {
    Send(to, MakeEnvelope<T>(sender, *std::move(result)));
  } else {
    Send(to, MakeEnvelope<ErrorReply>(sender, std::move(result).status()));
  }
}

template <class T>
Task<void> SendLater(Future<T> future, ActorRef to, ActorRef sender) {
  absl::StatusOr<T> result = co_await future;
  SendResult<T>(std::move(result), to, sender);
  start_task_internal::EndRunner();
}

}  // namespace pipe_to_internal

template <class T>
void PipeTo(ActorSystem& system, Future<T> future, ActorRef to, ActorRef sender) {
  static_assert(!std::is_void_v<T>, "a Future<void> has no message: map it to one first");
  static_assert(!kIsInterceptedMessage<T>, "messages to the actor system are told, not piped");
  if (future.IsReady()) {
    pipe_to_internal::SendResult<T>(future.Take(), to, sender);
    return;
  }
  const absl::StatusOr<ActorRef> runner = start_task_internal::SpawnRunner(system);
  if (!runner.ok()) {
    pipe_to_internal::SendResult<T>(runner.status(), to, sender);
    return;
  }
  start_task_internal::RunIn(*runner, pipe_to_internal::SendLater<T>(std::move(future), to, sender));
}

template <class T>
void PipeTo(ActorContext& context, Future<T> future, ActorRef to) {
  PipeTo<T>(context.system(), std::move(future), to, context.ActorContext::self());
}

// To a typed reference, which must take a T. Its actor should also handle ErrorReply. If it does
// not, the log shows the error.
template <class T, class Ref>
requires requires(const Ref& ref) { ref.untyped(); }
void PipeTo(ActorContext& context, Future<T> future, const Ref& to) {
  Ref::template Check<T>();
  PipeTo<T>(context, std::move(future), to.untyped());
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_PIPE_TO_H_
