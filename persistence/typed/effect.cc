#include "fraktor/persistence/typed/effect.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::typed_internal {

using actor_internal::Gate;

absl::Status AnswersOtherwise(std::string_view actor, std::string_view command, std::string_view reply,
                              std::string_view given) {
  return absl::InternalError(absl::StrCat(
      ToAbsl(actor), " answers ", ToAbsl(command), " with a ", ToAbsl(given), ", but its Reply is ", ToAbsl(reply),
      ": nothing is stored. Let Handle return a ReplyEffect<", ToAbsl(reply), ">, and the compiler finds where"));
}

bool RefusesToStoreAndStop(ActorContext& context, std::string_view actor, const Envelope& command) {
  if (!ActorContext::worker().turn_state.Has(Gate::kStopping)) return false;
  const absl::Status refused = absl::FailedPreconditionError(absl::StrCat(
      ToAbsl(actor), " has called Stop() in its Handle of ", ToAbsl(command.type()->name()),
      ", and returns something to store, whose answer nobody would be there to give: nothing is stored. Return "
      "Persist(...).ThenReply(...).ThenStop() instead"));
  Log(context, LogLevel::kError, ToStd(refused.message()));
  if (!context.sender().IsNoOne()) context.Reply(ErrorReply{refused});
  return true;
}

}  // namespace fraktor::inline v0::typed_internal
