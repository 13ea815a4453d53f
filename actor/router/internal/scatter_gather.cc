// RouterStrategy::ScatterGather.
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/router/internal/broadcasting.h"
#include "fraktor/actor/router/internal/routee_asking.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

void FailAsk(ActorRef promise, absl::Duration within) {
  if (!promise.IsCurrent()) return;
  AnswerPromise(promise, MakeEnvelope<ErrorReply>(
                             ActorRef(), MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                                                   absl::StrCat("no routee replied within the router's time limit, ",
                                                                absl::FormatDuration(within))))
                             .release());
}

void FailAskThatThrew(ActorRef promise) {
  absl::Status thrown = StatusFromException(CaptureException());
  if (!promise.IsCurrent()) return;
  AnswerPromise(promise,
                MakeEnvelope<ErrorReply>(
                    ActorRef(), Annotate(std::move(thrown), "the message could not be copied for each of the routees"))
                    .release());
}

void AskAll(RouteeAsk ask, RuntimeToolbox& toolbox) {
  const absl::Duration within = absl::Nanoseconds(ask.all.plan.within_ns);
  const Instant deadline = toolbox.Now() + within;
  const bool has_routees = !ask.all.refs.empty();
  ask.message->set_sender(ask.promise);
  SendToAll(ask.router, ask.all.refs, std::move(ask.message)).IgnoreError();
  // An asker with a shorter timeout needs no timer here.
  if (!has_routees || DeadlineOf(ask.promise) <= deadline) return;
  toolbox.ScheduleAt(deadline, [promise = ask.promise, within] { FailAsk(promise, within); }).IgnoreError();
}

}  // namespace fraktor::inline v0::actor_internal
