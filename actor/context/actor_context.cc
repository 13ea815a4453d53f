#include "fraktor/actor/context/actor_context.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/context/misuse.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/send/system_core.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

ActorSlotTable& ProcessSlots() {
  static ActorSlotTable& table = *new ActorSlotTable({}, &SlotWithContext::Make);
  return table;
}

absl::Status ActorContext::OutOfTurn(const char* call) const {
  const ActorWorker* const current = ActorWorker::Current();
  const ActorRef owner = const_cast<ActorContext*>(this)->slot().ref();
  const std::string path = current == nullptr ? SystemCore::PathOf(owner) : current->lifecycle.PathOf(owner);
  const ActorRef running = current == nullptr ? ActorRef() : current->turn.self();
  const std::string text =
      absl::StrCat(call, " of the context of ", path.empty() ? "an actor" : path, " was called outside of its turns, ",
                   current == nullptr  ? std::string("on a thread that is no worker")
                   : running.IsNoOne() ? std::string("when no actor was running, as in a timer or a callback")
                                       : absl::StrCat("in a turn of ", current->lifecycle.PathOf(running)),
                   ": keep context.self() instead, which may be told something anywhere, or co_await in the handler");
  if (IsMisuseFatal()) {
    std::fprintf(stderr, "fraktor: %s\n", text.c_str());
    std::abort();
  }
  return absl::FailedPreconditionError(text);
}

void ActorContext::StopChildren() {
  for (const ActorRef child : Children()) {
    Unwatch(child);
    Stop(child);
  }
}

EnvelopePtr ActorContext::Stash() {
  Turn& turn = here("Stash").turn;
  if (turn.current == nullptr || turn.current->is_system()) return nullptr;
  return EnvelopePtr(std::exchange(turn.current, nullptr));
}

void ActorContext::Unstash(EnvelopeList messages) {
  Turn& turn = here("Unstash").turn;
  if (SlotExtension* const extension = turn.running()->extension; extension != nullptr && extension->order != nullptr) {
    extension->order->AddFront(messages);
  } else {
    turn.lists.user.Prepend(messages);
  }
}

void ActorContext::Forward(ActorRef to) {
  Turn& turn = here("Forward").turn;
  if (turn.current == nullptr || turn.current->is_system()) return;
  Envelope* const message = std::exchange(turn.current, nullptr);
  worker().Send(to, message);
}

Future<void> ActorContext::Delay(absl::Duration delay) {
  if (!IsInTurn()) return MakeReadyFuture<void>(OutOfTurn("Delay"));
  auto [promise, future] = MakePromise<void>();
  RuntimeToolbox* const toolbox = worker().toolbox;
  // A timer that cannot be armed drops the promise, and the future says Cancelled; but with a reason it says more.
  if (toolbox == nullptr) {
    promise.Set(absl::FailedPreconditionError("this scheduler has no timers"));
    return std::move(future);
  }
  absl::StatusOr<TimerId> armed =
      toolbox->ScheduleAfter(delay, [promise = std::move(promise)]() mutable { promise.Set(absl::OkStatus()); });
  if (!armed.ok()) return MakeReadyFuture<void>(armed.status());
  return std::move(future);
}

}  // namespace fraktor::inline v0
