#include "fraktor/actor/tree/internal/tree_watching.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/promise_watch.h"
#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

absl::Status TreeWatching::Watch(ActorContext& context, ActorRef actor, EnvelopePtr message,
                                 ActorLifecycle::SameMessage same) {
  if (actor.IsNoOne()) {
    return absl::InvalidArgumentError("Watch got a reference to no one, such as a default ActorRef; pass an actor");
  }
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
    return absl::FailedPreconditionError(absl::StrCat(paths_.PathOf(self), " watches ", paths_.PathOf(actor),
                                                      " already, for ", what, "; unwatch it first"));
  }
  state.watching.try_emplace(actor, CellState::Watched{.message = std::move(message), .order = state.watches++});
  ActorContext::worker().outbox.Flush();
  NodeCache& cache = ActorContext::worker().cache();
  if (actor.IsPromise()) {
    // A promise has no mailbox. Its asker tells the watcher.
    if (TellSystem(AskerOf(actor), MakeEnvelope<WatchPromiseOf>(cache, ActorRef(), actor, self)) != nullptr) {
      TellEnded(cache, self, actor);
    }
    return absl::OkStatus();
  }
  if (TellSystem(actor, MakeEnvelope<WatchActor>(cache, ActorRef(), self)) != nullptr) {
    // A remote actor counts as ended because its node is gone.
    TellSystem(self, MakeEnvelope<ActorEnded>(cache, ActorRef(), actor, !actor.IsRemote(), actor.IsRemote(),
                                              paths_.PathOf(actor)));
  }
  return absl::OkStatus();
}

void TreeWatching::Unwatch(ActorContext& context, ActorRef actor) {
  CellState* const state = CellState::Find(context.slot());
  if (state == nullptr || state->watching.erase(actor) == 0) return;
  TellSystem(actor, MakeEnvelope<UnwatchActor>(ActorContext::worker().cache(), ActorRef(), context.self()));
}

void TreeWatching::OnWatch(ActorSlot& slot, const WatchActor& watch) {
  CellState::Of(slot).watchers.Insert(watch.watcher);
}

void TreeWatching::OnWatchPromise(ActorSlot& slot, const WatchPromiseOf& watch) {
  if (WatchPromise(slot, watch.promise, watch.watcher)) return;
  TellEnded(ActorContext::worker().cache(), watch.watcher, watch.promise);
}

void TreeWatching::OnUnwatch(ActorSlot& slot, const UnwatchActor& unwatch) {
  if (CellState* const state = CellState::Find(slot)) state->watchers.Erase(unwatch.watcher);
}

void TreeWatching::OnEnded(Turn turn, const ActorEnded& ended) {
  CellState* const state = CellState::Find(turn.slot);
  if (state == nullptr) return;
  const auto found = state->watching.find(ended.actor);
  if (found == state->watching.end() || std::exchange(found->second.has_ended, true)) return;
  EnvelopePtr terminated =
      MakeEnvelope<Terminated>(turn.worker.cache(), ended.actor, ended.actor, ended.existence_confirmed,
                               ended.address_terminated, ended.path.empty() ? paths_.PathOf(ended.actor) : ended.path);
  EnqueueIntercepted(ActorContext::Of(turn.slot), std::move(terminated));
}

EnvelopePtr TreeWatching::TakeTerminated(Turn turn, EnvelopePtr terminated) {
  CellState* const state = CellState::Find(turn.slot);
  // Only the runtime may say that an actor has ended, and only to an actor that still watches.
  if (state == nullptr) return nullptr;
  const auto found = state->watching.find(terminated->As<Terminated>().actor);
  if (found == state->watching.end() || !found->second.has_ended) return nullptr;
  state->broke_death_pact = false;
  if (found->second.message != nullptr) terminated = std::move(found->second.message);
  state->watching.erase(found);
  // Without the flag kIntercepted: if the actor stashes the message, the runtime does not intercept
  // it again.
  terminated->set_target_word(turn.state().word);
  return terminated;
}

absl::Status TreeWatching::BreakDeathPact(ActorContext& context, const Terminated& terminated) const {
  CellState::Of(context.slot()).broke_death_pact = true;
  return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kDeathPact,
                   absl::StrCat(paths_.PathOf(context.self()), " watches ",
                                terminated.path.empty() ? paths_.PathOf(terminated.actor) : terminated.path,
                                ", which has ended, and does not handle Terminated"));
}

void TreeWatching::TellEnded(NodeCache& cache, ActorRef watcher, ActorRef ended) const {
  TellSystem(watcher, MakeEnvelope<ActorEnded>(cache, ActorRef(), ended, true, false, paths_.PathOf(ended)));
}

void TreeWatching::OnActorEnded(NodeCache& cache, ActorRef ended, const CellState& state,
                                const std::string& path) const {
  for (const ActorRef watcher : state.watchers) {
    TellSystem(watcher, MakeEnvelope<ActorEnded>(cache, ActorRef(), ended, true, false, path));
  }
  // In the order of the watches: the order in the map differs from run to run.
  std::vector<std::pair<uint64_t, ActorRef>> watched;
  for (const auto& [actor, how] : state.watching) {
    if (!how.has_ended) watched.emplace_back(how.order, actor);
  }
  std::sort(watched.begin(), watched.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, actor] : watched) {
    TellSystem(actor, MakeEnvelope<UnwatchActor>(cache, ActorRef(), ended));
  }
}

}  // namespace fraktor::inline v0::actor_internal
