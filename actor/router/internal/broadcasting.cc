#include "fraktor/actor/router/internal/broadcasting.h"

#include <cstddef>
#include <utility>

#include "fraktor/actor/router/internal/routing_failure.h"
#include "fraktor/actor/send/internal/remote_sending.h"

namespace fraktor::inline v0::actor_internal {

namespace {

// The content of a Broadcast may be an intercepted message, such as PoisonPill.
absl::Status SendOrMark(ActorRef to, EnvelopePtr message) {
  if (!message->type()->is_intercepted()) return SendToRoutee(to, std::move(message));
  SendIntercepted(to, std::move(message));
  return absl::OkStatus();
}

}  // namespace

absl::Status SendToAll(ActorRef router, const RefList& to, EnvelopePtr message) {
  if (to.empty() || (to.size() > 1 && !message->type()->is_copyable())) {
    return LoseRouted(router, std::move(message),
                      to.empty() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kNotCopyable);
  }
  // The loss of one copy must not fail an ask that other routees have received as well.
  const ActorRef sender = message->sender();
  if (to.size() > 1) message->set_sender(SharedSender(sender));
  absl::Status first;
  bool is_taken = false;
  const auto send = [&](ActorRef routee, EnvelopePtr one) {
    absl::Status sent = SendOrMark(routee, std::move(one));
    is_taken = is_taken || sent.ok();
    if (first.ok()) first = std::move(sent);
  };
  for (size_t i = 0; i + 1 < to.size(); ++i) {
    EnvelopePtr copy;
    try {
      copy = CopyEnvelope(CacheOfThisThread(), *message);
    } catch (...) {
      const absl::Status thrown = ErrorOfThrown();
      // If no routee has the ask, its loss must fail it.
      if (!is_taken) message->set_sender(sender);
      const absl::Status failed = FailRouting(router, std::move(message), "the copy for each routee", thrown);
      return is_taken ? absl::OkStatus() : failed;
    }
    send(to[i], std::move(copy));
  }
  send(to.back(), std::move(message));
  return is_taken ? absl::OkStatus() : first;
}

}  // namespace fraktor::inline v0::actor_internal
