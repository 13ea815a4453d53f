#include "fraktor/actor/router/internal/broadcasting.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::SharedSender;

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
    LoseRouted(router, std::move(message),
               to.empty() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kNotCopyable);
    return absl::OkStatus();
  }
  // The loss of one copy must not fail an ask that other routees have received as well.
  const ActorRef sender = message->sender();
  if (to.size() > 1) message->set_sender(SharedSender(sender));
  absl::Status first;
  for (size_t i = 0; i + 1 < to.size(); ++i) {
    absl::StatusOr<EnvelopePtr> copy = future_internal::InvokeForResult(CopyEnvelope, CacheOfThisThread(), *message);
    if (!copy.ok()) {
      // An ask fails, unless a routee has received it.
      if (i == 0) message->set_sender(sender);
      absl::Status threw = Annotate(
          copy.status(), ToStd(absl::StrCat("a copy of ", ToAbsl(message->type()->name()), " could not be made")));
      LoseRouted(router, std::move(message), DeadLetterReason::kNotCopyable);
      return threw;
    }
    absl::Status sent = SendOrMark(to[i], *std::move(copy));
    if (first.ok()) first = std::move(sent);
  }
  absl::Status sent = SendOrMark(to.back(), std::move(message));
  return first.ok() ? sent : first;
}

}  // namespace fraktor::inline v0
