#include "fraktor/actor/router/internal/routing_failure.h"

#include <bit>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/router/internal/routee_sending.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/actor/router/router_messages.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

namespace {

std::string PathOf(ActorRef router) {
  ActorWorker* const worker = ActorWorker::Current();
  return worker != nullptr ? worker->lifecycle.PathOf(router) : SystemCore::PathOf(router);
}

}  // namespace

absl::Status FailRouting(ActorRef router, EnvelopePtr message, std::string_view part, const absl::Status& error) {
  const RoutingTable* const table = RoutingTable::Find(*router.slot());
  const uint64_t failures = table == nullptr ? 0 : table->CountFailure();
  if (std::has_single_bit(failures)) {
    SendIntercepted(router, MakeEnvelope<RoutingFailed>(CacheOfThisThread(), ActorRef(), failures, std::string(part),
                                                        std::string(ToStd(error.message()))));
  }
  absl::Status reason(error.code(), absl::StrCat(ToAbsl(part), " of ", PathOf(router), " failed for ",
                                                 ToAbsl(message->type()->name()), ": ", error.message()));
  const ActorRef sender = message->sender();
  if (sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0 && sender.IsCurrent()) {
    AnswerPromise(sender, MakeEnvelope<ErrorReply>(CacheOfThisThread(), ActorRef(), reason).release());
  }
  LoseRouted(router, std::move(message), DeadLetterReason::kNoRecipient).IgnoreError();
  return reason;
}

absl::Status ErrorOfThrown() {
  try {
    std::rethrow_exception(CaptureException());
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("it threw an exception: ", error.what()));
  } catch (...) {
    return absl::InternalError("it threw a value that is no std::exception");
  }
}

}  // namespace fraktor::inline v0::actor_internal
