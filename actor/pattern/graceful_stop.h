// GracefulStop: tells an actor to end after the messages that it has, and waits until it has ended.
//
//   Future<void> stopping = GracefulStop(system, cart, absl::Seconds(5));
//   absl::Status stopped = co_await stopping;                              // OK, or DeadlineExceeded
//   Future<void> draining = GracefulStop(system, till, absl::Seconds(5), Drain{});   // instead of PoisonPill
//
// The future is OK at once if the actor has ended already. After the timeout it fails, but the
// actor still has the message.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_PATTERN_GRACEFUL_STOP_H_
#define FRAKTOR_ACTOR_PATTERN_GRACEFUL_STOP_H_

#include <type_traits>
#include <utility>

#include "absl/time/time.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

namespace graceful_stop_internal {

Future<void> Begin(ActorSystem& system, ActorRef actor, absl::Duration timeout, EnvelopePtr message,
                   bool is_intercepted);

}  // namespace graceful_stop_internal

template <class M = PoisonPill>
Future<void> GracefulStop(ActorSystem& system, ActorRef actor, absl::Duration timeout, M&& message = PoisonPill()) {
  using Message = std::decay_t<M>;
  return graceful_stop_internal::Begin(system, actor, timeout,
                                       MakeEnvelope<Message>(ActorRef(), std::forward<M>(message)),
                                       kIsInterceptedMessage<Message>);
}

// The same for a typed reference, which must take the message.
template <class Ref, class M = PoisonPill>
requires requires(const Ref& ref) { ref.untyped(); }
Future<void> GracefulStop(ActorSystem& system, const Ref& actor, absl::Duration timeout, M&& message = PoisonPill()) {
  Ref::template Check<M>();
  return GracefulStop(system, actor.untyped(), timeout, std::forward<M>(message));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_GRACEFUL_STOP_H_
