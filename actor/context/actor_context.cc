#include "fraktor/actor/context/actor_context.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/context/internal/misuse.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSlotTable;
using actor_internal::ActorWorker;
using actor_internal::EnvelopeList;
using actor_internal::IsMisuseFatal;
using actor_internal::SlotExtension;
using actor_internal::SystemCore;
using actor_internal::TurnState;

ActorSlotTable& ProcessSlots() {
  static ActorSlotTable& table = *new ActorSlotTable({}, &SlotWithContext::Make);
  return table;
}

absl::Status ActorContext::OutOfTurn(const char* call) const {
  const ActorWorker* const current = ActorWorker::Current();
  const ActorRef owner = const_cast<ActorContext*>(this)->slot().ref();
  const std::string path = current == nullptr ? SystemCore::PathOf(owner) : current->lifecycle.PathOf(owner);
  const ActorRef running = current == nullptr ? ActorRef() : current->turn_state.self();
  const std::string text =
      absl::StrCat(call, " of the context of ", path.empty() ? "an actor" : path, " was called outside of its turns, ",
                   current == nullptr  ? std::string("on a thread that is no worker")
                   : running.IsNoOne() ? std::string("when no actor was running, as in a timer or a callback")
                                       : absl::StrCat("in a turn of ", current->lifecycle.PathOf(running)),
                   ": keep context.self(), which any thread may send to, or co_await in the handler");
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

namespace {

// Takes the current message from its handler. If a middleware throws, the handler throws too.
Envelope* TakeCurrent(TurnState& state) {
  if (actor_internal::HandlerEndListener* const listener = std::exchange(state.end_listener, nullptr)) [[unlikely]] {
    const absl::Status ended = listener->OnHandlerEnd(state, *state.current, absl::OkStatus());
    if (!ended.ok()) throw std::runtime_error(std::string(ToStd(ended.message())));
  }
  return std::exchange(state.current, nullptr);
}

}  // namespace

EnvelopePtr ActorContext::Stash() {
  TurnState& state = here("Stash").turn_state;
  if (state.current == nullptr || state.current->is_system()) return nullptr;
  return EnvelopePtr(TakeCurrent(state));
}

void ActorContext::Unstash(EnvelopeList messages) {
  TurnState& state = here("Unstash").turn_state;
  if (SlotExtension* const extension = state.running()->extension;
      extension != nullptr && extension->order != nullptr) {
    extension->order->AddFront(messages);
  } else {
    state.lists.user.Prepend(messages);
  }
}

void ActorContext::Forward(ActorRef to) {
  TurnState& state = here("Forward").turn_state;
  if (state.current == nullptr || state.current->is_system()) return;
  worker().Send(to, TakeCurrent(state));
}

Future<void> ActorContext::Delay(absl::Duration delay) {
  if (!IsInTurn()) return MakeReadyFuture<void>(OutOfTurn("Delay"));
  RuntimeToolbox* const toolbox = worker().toolbox;
  if (toolbox == nullptr)
    return MakeReadyFuture<void>(absl::FailedPreconditionError(
        "Delay: the worker has no toolbox, and so no timers; run the actor in an ActorSystem"));
  return SleepFor(*toolbox, delay);
}

}  // namespace fraktor::inline v0
