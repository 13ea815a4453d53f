#include "fraktor/actor/ask/internal/promise_watch.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"

namespace fraktor::inline v0::actor_internal {
namespace {

using PromiseWatch = SlotExtension::AskExtras::PromiseWatch;

}  // namespace

bool WatchPromise(ActorSlot& asker, ActorRef promise, ActorRef watcher) {
  if (asker.extension == nullptr || AskerOf(promise).any_slot() != &asker) return false;
  auto& extras = asker.extension->ask_extras;
  if (extras == nullptr) extras = std::make_unique<SlotExtension::AskExtras>();
  extras->watches[promise.Plain()].push_back({.promise = promise, .watcher = watcher, .order = extras->next_watch++});
  return true;
}

void promise_watch_internal::TellWatchers(const ActorWorker& worker, SlotExtension& extension, ActorRef promise) {
  auto& watches = extension.ask_extras->watches;
  const auto found = watches.find(promise.Plain());
  if (found == watches.end()) return;
  const auto ended = std::move(found->second);
  watches.erase(found);
  for (const PromiseWatch& watch : ended) worker.lifecycle.OnPromiseEnded(watch.promise, watch.watcher);
}

void TellAllPromiseWatchers(const ActorWorker& worker, const SlotExtension::AskExtras& extras) {
  // In the order of the watches: the order in the map differs from run to run.
  std::vector<PromiseWatch> all;
  for (const auto& [promise, watches] : extras.watches) all.insert(all.end(), watches.begin(), watches.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  for (const PromiseWatch& watch : all) worker.lifecycle.OnPromiseEnded(watch.promise, watch.watcher);
}

}  // namespace fraktor::inline v0::actor_internal
