#include "fraktor/actor/ask/internal/ask_diagnosis.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/promise_reading.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {
namespace {

using AskExtras = SlotExtension::AskExtras;

// The error that the asker gets. `target` is the path of the target, `status` what it is doing.
absl::Status TimedOut(const ActorWorker& worker, std::string_view target, const AskCompletion& completion,
                      std::string_view status) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
      absl::StrCat("ask timed out: ", ToAbsl(target), " has not replied to ", ToAbsl(completion.asked_type->name()),
                   " of ", worker.lifecycle.PathOf(worker.turn_state.self()), " within ",
                   absl::FormatDuration(completion.timeout), "; ", ToAbsl(status)));
}

// Whether nothing keeps the actor from handling its next message.
bool IsIdle(const StatusReport& report) { return !report.has_failed && !report.has_handler && report.gate == 0; }

std::string TextOfSuspension(const StatusReport& report) {
  const ResumeCondition& resume_on = report.resume_on;
  return absl::StrCat("a middleware suspends it ",
                      resume_on.kind() == ResumeCondition::Kind::kAfter
                          ? absl::StrCat("for ", absl::FormatDuration(resume_on.delay()))
                          : absl::StrCat("until signal ", resume_on.key().value),
                      " (", ToAbsl(ToString(report.suspended_for)), ")");
}

std::string TextOfActivity(const StatusReport& report) {
  const auto has = [&](Gate gate) { return (report.gate & static_cast<uint8_t>(gate)) != 0; };
  if (report.has_failed) return "it has failed and waits for the verdict of its supervisor";
  if (has(Gate::kStopping)) return "it is stopping";
  if (report.has_handler) {
    return absl::StrCat(
        report.handler == nullptr ? "a task of it" : absl::StrCat("its handler of ", ToAbsl(report.handler->name())),
        " is waiting", has(Gate::kAwaiting) ? "" : " and lets other messages in");
  }
  if (has(Gate::kBackpressure)) return "it waits for room in a mailbox that it has sent to";
  if (has(Gate::kRateLimited) || has(Gate::kUserDefined)) return TextOfSuspension(report);
  return "none of its handlers is waiting";
}

std::string TextOf(const StatusReport& report) {
  const uint64_t n = report.waiting;
  return absl::StrCat(n == 0   ? "no message waits"
                      : n == 1 ? "1 message waits"
                               : absl::StrCat(n, n == StatusReport::kMaxCounted ? " or more" : "", " messages wait"),
                      " in its mailbox, and ", TextOfActivity(report),
                      n == 0 && IsIdle(report) ? ": if it has handled the message, it has forgotten to reply (return "
                                                 "the reply from the handler, or call context.Reply)"
                                               : "");
}

// Requests the status of the target, and keeps the completion until the report arrives. False if
// the target has ended, or there is no timer: then the caller still has the completion.
bool RequestStatus(ActorWorker& worker, SlotExtension& extension, ActorRef ask, ActorRef target,
                   AskCompletion* completion) {
  if (extension.ask_extras == nullptr) extension.ask_extras = std::make_unique<AskExtras>();
  AskExtras& extras = *extension.ask_extras;
  const uint64_t request = extras.status_requests + 1;
  // Before the request: an unnamed target that ends meanwhile has no path any more.
  std::string path = worker.lifecycle.PathOf(target);
  const ActorRef self = worker.turn_state.self();
  const absl::StatusOr<TimerId> timer = worker.toolbox->ScheduleAfter(
      kReportGrace, [self, request] { TellSystem(self, MakeEnvelope<StatusReportOverdue>(ActorRef(), request)); });
  if (!timer.ok()) return false;
  if (TellSystem(target, MakeEnvelope<StatusRequest>(worker.cache(), ActorRef(), self, request)) != nullptr) {
    worker.toolbox->CancelTimer(*timer);
    return false;
  }
  extras.status_requests = request;
  extras.requested[target.Plain()] = request;
  extras.late[request] = {.target = target,
                          .target_path = std::move(path),
                          .timer = *timer,
                          .asks = {{.ask = ask, .completion = completion}}};
  return true;
}

void SendMoreLateAsks(Turn turn, AskExtras& extras) {
  extras.sent_more = true;
  TellSystem(turn.state().self(), MakeEnvelope<MoreLateAsks>(turn.worker.cache(), ActorRef()));
}

// Fails asks whose targets have reported, as long as the budget lasts, but at least one.
uint32_t FailSome(Turn turn, AskExtras& extras, uint32_t used) {
  uint32_t count = 0;
  for (; !extras.reported.empty(); extras.reported.pop_front()) {
    const auto found = extras.late.find(extras.reported.front());
    AskExtras::LateAsks& late = found->second;
    while (!late.asks.empty()) {
      if (count != 0 && used + count >= turn.worker.slice.messages()) {
        SendMoreLateAsks(turn, extras);
        return count;
      }
      ++count;
      const AskExtras::LateAsk ask = late.asks.front();
      late.asks.pop_front();
      CompleteAskWithError(turn, ask.ask, ask.completion,
                           TimedOut(turn.worker, late.target_path, *ask.completion, *late.status));
    }
    const auto last = extras.requested.find(late.target.Plain());
    if (last != extras.requested.end() && last->second == found->first) extras.requested.erase(last);
    extras.late.erase(found);
  }
  return std::max<uint32_t>(count, 1);
}

// The asks that have waited for the report of this request begin to fail. `report` is null if none
// came.
uint32_t BeginToFail(Turn turn, uint64_t request, const StatusReport* report, uint32_t used) {
  AskExtras* const extras = turn.slot.extension->ask_extras.get();
  if (extras == nullptr) return 1;
  const auto found = extras->late.find(request);
  // A report may come when the asks have begun to fail without it.
  if (found == extras->late.end() || found->second.status.has_value()) return 1;
  AskExtras::LateAsks& late = found->second;
  turn.worker.toolbox->CancelTimer(late.timer);
  late.status = report != nullptr ? TextOf(*report) : turn.worker.lifecycle.DescribeFromOutside(late.target);
  extras->reported.push_back(request);
  if (extras->sent_more || turn.slot.extension->has_due_asks()) return 1;
  return FailSome(turn, *extras, used);
}

// Counts the messages in the mailbox, up to kMaxCounted.
uint64_t CountWaiting(Turn turn) {
  const EnvelopeList& user = turn.state().lists.user;
  const SlotExtension* const extension = turn.slot.extension;
  uint64_t waiting = extension == nullptr || extension->order == nullptr ? 0 : extension->order->size();
  for (const Envelope* message = user.first; message != nullptr && waiting < StatusReport::kMaxCounted;
       message = message == user.last ? nullptr : Envelope::Of(message->next)) {
    if (!IsMailboxBell(*message)) ++waiting;
  }
  return std::min(waiting, StatusReport::kMaxCounted);
}

}  // namespace

void FailTimedOutAsk(Turn turn, ActorRef ask, const PromiseSlot::Target& asked, AskCompletion* completion,
                     uint64_t first_request) {
  ActorWorker& worker = turn.worker;
  if (completion == nullptr) {
    CompleteAskWithError(turn, ask, nullptr, absl::DeadlineExceededError("no reply in time"));
    return;
  }
  const auto fail = [&](std::string_view path, std::string_view status) {
    CompleteAskWithError(turn, ask, completion, TimedOut(worker, path, *completion, status));
  };
  if (asked.is_remote) {
    const auto& there = static_cast<const RemoteSlot&>(*asked.slot);
    const RemoteLink::Asked known = there.link->DescribeAsked(there, asked.low_word);
    fail(known.path, known.status);
    return;
  }
  const ActorRef target = LivingTarget(asked);
  if (target.IsNoOne()) {
    if (asked.slot == nullptr) {
      fail("a promise", "it belongs to another ask");
    } else {
      fail(worker.lifecycle.PathOf(ActorRef(asked.slot, asked.low_word)), "it has ended without a reply");
    }
    return;
  }
  if (AskExtras* const extras = turn.slot.extension->ask_extras.get()) {
    const auto requested = extras->requested.find(target.Plain());
    if (requested != extras->requested.end() && requested->second >= first_request) {
      extras->late[requested->second].asks.push_back({.ask = ask, .completion = completion});
      return;
    }
  }
  if (RequestStatus(worker, *turn.slot.extension, ask, target, completion)) return;
  fail(worker.lifecycle.PathOf(target), worker.lifecycle.DescribeFromOutside(target));
}

uint32_t ReceiveStatusReport(Turn turn, const StatusReport& report, uint32_t used) {
  return BeginToFail(turn, report.request, &report, used);
}

uint32_t GiveUpStatusReport(Turn turn, uint64_t request, uint32_t used) {
  return BeginToFail(turn, request, nullptr, used);
}

uint32_t FailMoreLateAsks(Turn turn, uint32_t used) {
  AskExtras& extras = *turn.slot.extension->ask_extras;
  extras.sent_more = false;
  return FailSome(turn, extras, used);
}

void EndRound(Turn turn) {
  AskExtras* const extras = turn.slot.extension->ask_extras.get();
  if (extras != nullptr && !extras->reported.empty() && !extras->sent_more) SendMoreLateAsks(turn, *extras);
}

void SendStatusReport(Turn turn, const StatusRequest& request) {
  TurnState& state = turn.state();
  const SlotExtension* const extension = turn.slot.extension;
  if (!state.waiting.has_value()) state.waiting = CountWaiting(turn);
  const bool has_handler = extension != nullptr && !extension->handlers.empty();
  StatusReport report{.request = request.request,
                      .waiting = *state.waiting,
                      .handler = has_handler ? extension->handlers.FirstType() : nullptr,
                      .has_handler = has_handler,
                      .has_failed = state.failures != 0,
                      .gate = state.gate,
                      .suspended_for = extension == nullptr ? SuspendReason::kUserDefined : extension->suspended_for,
                      .resume_on = extension == nullptr ? ResumeCondition::ExternalSignal({}) : extension->resume_on};
  TellSystem(request.asker, MakeEnvelope<StatusReport>(turn.worker.cache(), ActorRef(), report));
}

}  // namespace fraktor::inline v0::actor_internal
