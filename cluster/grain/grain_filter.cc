#include "fraktor/cluster/grain/grain_filter.h"

#include <cxxabi.h>

#include <cstddef>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;
using actor_internal::OpenPromise;

namespace {

absl::Status CallBefore(GrainCallFilter& filter, const GrainCallView& call) {
  try {
    return filter.Before(call);
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("a filter of ", call.key.ToString(), " threw: ", e.what()));
  } catch (...) {
    return absl::InternalError(
        absl::StrCat("a filter of ", call.key.ToString(), " threw something that is no std::exception"));
  }
}

// Of the first `count`, in reverse.
void CallAfter(const GrainCallFilters& chain, size_t count, const GrainCallView& call,
               const GrainCallOutcome& outcome) {
  while (count > 0) {
    try {
      chain[--count]->After(call, outcome);
    } catch (abi::__forced_unwind&) {
      throw;
    } catch (...) {  // NOLINT(bugprone-empty-catch): the call is over, and there is nobody to be told.
    }
  }
}

}  // namespace

FilteredCalls::Entry FilteredCalls::Enter(ActorContext& context, const GrainCallFilters& chain, const GrainKey& key,
                                          Envelope& message, absl::Duration timeout) {
  RuntimeToolbox& toolbox = context.system().toolbox();
  const bool is_question = timeout > absl::ZeroDuration() && !message.sender().IsNoOne();
  const Instant begun = toolbox.Now();
  GrainCallView call{.key = key,
                     .type = message.type(),
                     .sender = message.sender(),
                     .is_question = is_question,
                     .message = message.payload()};
  Entry entry;
  absl::Status& status = entry.status;
  size_t passed = 0;
  while (passed < chain.size() && status.ok()) {
    status = CallBefore(*chain[passed], call);
    if (status.ok()) ++passed;
  }
  entry.is_refused = !status.ok();
  absl::StatusOr<ActorRef> ask = ActorRef();
  if (status.ok() && is_question) {
    if (calls_.size() >= limit_) {
      status = absl::ResourceExhaustedError(
          absl::StrCat(calls_.size(), " questions that filters look at wait for their answers; try again later"));
    } else {
      ask = OpenPromise(ActorContext::worker(), {.timeout = timeout});
      status = ask.status();
    }
  }
  if (status.ok() && is_question) {
    calls_.emplace(*ask, Call{.chain = &chain, .key = key, .type = call.type, .sender = call.sender, .begun = begun});
    message.set_sender(*ask);
    return entry;
  }
  call.message = nullptr;
  CallAfter(chain, passed, call, {.status = status, .duration = toolbox.Now() - begun});
  return entry;
}

void FilteredCalls::OnReply(ActorContext& context, ActorRef ask, const absl::StatusOr<Envelope*>& answer) {
  const auto found = calls_.find(ask);
  if (found == calls_.end()) return;
  const Call call = std::move(found->second);
  calls_.erase(found);
  GrainCallOutcome outcome{.status = answer.status(), .duration = context.system().toolbox().Now() - call.begun};
  if (answer.ok()) {
    outcome.answer = *answer;
    if (const ErrorReply* const error = outcome.answer->TryAs<ErrorReply>()) outcome.status = error->status;
  }
  CallAfter(*call.chain, call.chain->size(),
            {.key = call.key, .type = call.type, .sender = call.sender, .is_question = true}, outcome);
  // Without an answer the time of the asker is over as well.
  if (!answer.ok()) return;
  ActorWorker& worker = ActorContext::worker();
  EnvelopePtr copy = CopyEnvelope(worker.cache(), *outcome.answer);
  if (copy == nullptr) {
    context.Tell(call.sender, ErrorReply{absl::UnimplementedError(absl::StrCat(
                                  "the answer of ", call.key.ToString(), ", ", ToAbsl(outcome.answer->type()->name()),
                                  ", cannot be copied: the answers of grains with filters must be"))});
    return;
  }
  copy->UnmarkAsSystem();
  worker.Send(call.sender, copy.release());
}

}  // namespace fraktor::inline v0
