// Who watches whom in a tree.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/cell/actor_tree.h"
#include "fraktor/actor/cell/cell_state.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::Status ActorTree::Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, SameMessage same) {
  if (actor.IsNoOne()) return absl::InvalidArgumentError("no one cannot be watched");
  const ActorRef self = context.self();
  if (actor == self) return absl::OkStatus();
  CellState& state = CellState::Of(context.slot());
  const auto found = state.watching.find(actor);
  if (found != state.watching.end()) {
    const MessageType* const before = found->second.message == nullptr ? nullptr : found->second.message->type();
    const MessageType* const now = message == nullptr ? nullptr : message->type();
    const bool is_same = before == now && (message == nullptr || same == nullptr ||
                                           same(found->second.message->payload(), message->payload()));
    if (is_same) return absl::OkStatus();
    const auto name = [](const MessageType* type) { return type == nullptr ? "Terminated" : ToAbsl(type->name()); };
    const std::string what = before == now ? absl::StrCat("another ", name(before))
                                           : absl::StrCat("a ", name(before), " and not for a ", name(now));
    return absl::FailedPreconditionError(
        absl::StrCat(PathOf(self), " watches ", PathOf(actor), " already, for ", what, "; unwatch it first"));
  }
  state.watching.try_emplace(actor, CellState::Watched{.message = std::move(message), .order = state.watches++});
  ActorContext::worker().outbox.Flush();
  if (actor.IsPromise()) {
    // It has no mailbox: who asked knows when it is over.
    if (TellSystem(AskerOf(actor),
                   MakeEnvelope<WatchPromiseOf>(ActorContext::worker().cache(), ActorRef(), actor, self)) != nullptr) {
      OnPromiseEnded(actor, self);
    }
    return absl::OkStatus();
  }
  if (TellSystem(actor, MakeEnvelope<WatchActor>(ActorContext::worker().cache(), ActorRef(), self)) != nullptr) {
    // Of an actor elsewhere, its node is gone.
    TellSystem(self, MakeEnvelope<ActorEnded>(ActorContext::worker().cache(), ActorRef(), actor, !actor.IsRemote(),
                                              actor.IsRemote(), PathOf(actor)));
  }
  return absl::OkStatus();
}

void ActorTree::OnPromiseEnded(ActorRef promise, ActorRef watcher) {
  TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), promise, true, false, PathOf(promise)));
}

void ActorTree::Unwatch(ActorContext& context, ActorRef actor) {
  CellState* const state = CellState::Find(context.slot());
  if (state == nullptr || state->watching.erase(actor) == 0) return;
  TellSystem(actor, MakeEnvelope<UnwatchActor>(ActorContext::worker().cache(), ActorRef(), context.self()));
}

// Goes behind what was sent before, past any limit.
void ActorTree::OnWatchedEnded(ActorWorker& worker, ActorSlot& slot, const ActorEnded& ended) {
  CellState* const state = CellState::Find(slot);
  if (state == nullptr) return;
  const auto found = state->watching.find(ended.actor);
  if (found == state->watching.end() || std::exchange(found->second.has_ended, true)) return;
  EnvelopePtr terminated =
      MakeEnvelope<Terminated>(worker.cache(), ended.actor, ended.actor, ended.existence_confirmed,
                               ended.address_terminated, ended.path.empty() ? PathOf(ended.actor) : ended.path);
  terminated->set_target_word(worker.turn.word | kMarked);
  if (worker.metrics != nullptr) worker.metrics->CountEnqueued(slot.type.load(std::memory_order_relaxed), 1);
  worker.turn.lists.user.PushBack(terminated.release());
}

Envelope* ActorTree::TakeTerminated(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  EnvelopePtr terminated(envelope);
  CellState* const state = CellState::Find(slot);
  // Nobody else can say that an actor has ended; and it may have been unwatched meanwhile.
  if (state == nullptr) return nullptr;
  const auto found = state->watching.find(envelope->As<Terminated>().actor);
  if (found == state->watching.end() || !found->second.has_ended) return nullptr;
  state->broke_death_pact = false;
  const bool is_other = found->second.message != nullptr;
  if (is_other) terminated = std::move(found->second.message);
  state->watching.erase(found);
  // What is to come instead may be one of the runtime's own.
  if (is_other && (terminated->Is<PoisonPill>() || terminated->Is<Kill>())) {
    return OnMarkedMessage(worker, slot, terminated.release());
  }
  // It can be put aside, and is not looked at again then.
  terminated->set_target_word(worker.turn.word);
  return terminated.release();
}

absl::Status ActorTree::OnUnhandled(ActorContext& context, Envelope& message) {
  if (const auto* terminated = message.TryAs<Terminated>()) {
    CellState::Of(context.slot()).broke_death_pact = true;
    return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kDeathPact,
                     absl::StrCat(PathOf(context.self()), " watches ",
                                  terminated->path.empty() ? PathOf(terminated->actor) : terminated->path,
                                  ", which has ended, and does not handle Terminated"));
  }
  FailAsk(message, [&] {
    return absl::UnimplementedError(
        absl::StrCat(PathOf(context.self()), " does not handle ", ToAbsl(message.type()->name())));
  });
  // The dead letter names its type only, and whoever looks for the mistake needs the error.
  if (const auto* const error = message.TryAs<ErrorReply>()) {
    Log(LogLevel::kWarning, context.self(),
        ToStd(absl::StrCat("got an error, and has no handler of ErrorReply: ", error->status.ToString())),
        LogSite::Here());
  }
  if (ActorWorker* const worker = ActorWorker::Current(); worker != nullptr && worker->metrics != nullptr) {
    worker->metrics->CountDeadLetter(DeadLetterReason::kUnhandled);
  }
  if (options_.dead_letters == nullptr) return absl::OkStatus();
  const std::string from = message.sender().IsNoOne() ? std::string() : PathOf(message.sender());
  const std::string to = PathOf(context.self());
  options_.dead_letters->Publish(
      UnhandledMessage{
          .sender = from,
          .recipient = to,
          .message = {.type_name = message.type()->name(), .type = message.type(), .message = message.payload()}},
      Now());
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
