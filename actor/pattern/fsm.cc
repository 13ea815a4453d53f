#include "fraktor/actor/pattern/fsm.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::fsm_internal {

using actor_internal::ActorWorker;
using actor_internal::MayLive;

std::string NumberOfState(int64_t number) { return absl::StrCat("number ", number); }

absl::Status NoSuchState(ActorContext& context, std::string_view state) {
  return absl::InternalError(
      absl::StrCat(context.Path(), " goes to state ", ToAbsl(state), ", which has no handler; give it one by When"));
}

absl::Status NotStarted(ActorContext& context) {
  return absl::FailedPreconditionError(
      absl::StrCat(context.Path(), " is a state machine without a first state; call StartWith in its constructor"));
}

void LogFailure(ActorContext& context, const absl::Status& error) {
  if (IsLogOn(context, LogLevel::kError)) {
    Log(context, LogLevel::kError, absl::StrCat("a state machine stopped after: ", error.message()));
  }
}

void LogThrown(ActorContext& context) {
  const absl::Status thrown = StatusFromException(CaptureException());
  if (IsLogOn(context, LogLevel::kError)) {
    Log(context, LogLevel::kError, absl::StrCat("OnTermination of a state machine threw: ", thrown.message()));
  }
}

void SendReply(ActorRef to, EnvelopePtr reply) {
  ActorWorker& worker = ActorContext::worker();
  reply->set_sender(worker.turn_state.self());
  worker.Send(to, reply.release());
}

void FailAsk(ActorContext& context, const absl::Status& error) {
  if (!error.ok() && context.sender().IsPromise())
    SendReply(context.sender(), MakeEnvelope<ErrorReply>(ActorRef(), error));
}

bool HasEnded(ActorRef actor) { return !MayLive(actor); }

}  // namespace fraktor::inline v0::fsm_internal
