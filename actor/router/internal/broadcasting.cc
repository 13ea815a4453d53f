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
  for (size_t i = 0; i + 1 < to.size(); ++i) {
    EnvelopePtr copy;
    try {
      copy = CopyEnvelope(CacheOfThisThread(), *message);
    } catch (...) {
      const absl::Status thrown = ErrorOfThrown();
      // Nobody has received the ask yet, so its loss must fail it.
      if (i == 0) message->set_sender(sender);
      return FailRouting(router, std::move(message), "the copy for each routee", thrown);
    }
    absl::Status sent = SendOrMark(to[i], std::move(copy));
    if (first.ok()) first = std::move(sent);
  }
  absl::Status sent = SendOrMark(to.back(), std::move(message));
  return first.ok() ? sent : first;
}

}  // namespace fraktor::inline v0::actor_internal
