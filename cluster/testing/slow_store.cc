#include "fraktor/cluster/testing/slow_store.h"

#include <string>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/utils/future/future_result.h"

namespace fraktor::inline v0 {
namespace {

absl::Status Lost() { return absl::UnavailableError("lost on the way to the store, or from there"); }

}  // namespace

template <class T>
struct SlowStore::Letter {
  Promise<T> promise;
  Request<T> request;
  bool is_answer_lost = false;
  absl::Duration back = absl::ZeroDuration();
};

SlowStore::SlowStore(RuntimeToolbox& toolbox, Random random, TestStoreClients store,
                     std::shared_ptr<const StoreTrouble> trouble)
    : toolbox_(toolbox),
      store_(std::move(store)),
      trouble_(std::move(trouble)),
      random_(std::move(random)),
      executor_(SerialExecutor::Make(toolbox, {.name = "slow store"}).value()) {}

std::shared_ptr<SlowStore> SlowStore::Make(RuntimeToolbox& toolbox, Random random, TestStoreClients store,
                                           std::shared_ptr<const StoreTrouble> trouble) {
  return std::shared_ptr<SlowStore>(new SlowStore(toolbox, std::move(random), std::move(store), std::move(trouble)));
}

void SlowStore::After(absl::Duration delay, absl::AnyInvocable<void(SlowStore& self)> what) {
  toolbox_
      .ScheduleAfter(delay,
                     [weak = weak_from_this(), what = std::move(what)]() mutable {
                       if (const std::shared_ptr<SlowStore> self = weak.lock()) what(*self);
                     })
      .value();
}

absl::Duration SlowStore::Delay() {
  if (!random_.Bernoulli(trouble_->slow)) return absl::ZeroDuration();
  return random_.UniformDuration(absl::ZeroDuration(), trouble_->max_delay);
}

template <class T>
Future<T> SlowStore::Send(Request<T> request) {
  if (!trouble_->any()) return request(*store_.of_node);
  auto [promise, future] = MakePromise<T>();
  auto letter = std::make_shared<Letter<T>>(Letter<T>{.promise = std::move(promise), .request = std::move(request)});
  const bool is_lost = random_.Bernoulli(trouble_->lost);
  letter->is_answer_lost = random_.Bernoulli(trouble_->lost);
  const absl::Duration there = Delay();
  letter->back = Delay();
  After(there, [letter, is_lost, is_late = there > absl::ZeroDuration()](SlowStore& self) {
    const std::shared_ptr<EmbeddedClient> store = is_late ? self.store_.of_store() : self.store_.of_node;
    if (is_lost || store == nullptr) {
      letter->promise.Set(Lost());
    } else {
      self.Deliver(*store, letter);
    }
  });
  return std::move(future);
}

template <class T>
void SlowStore::Deliver(EmbeddedClient& store, const std::shared_ptr<Letter<T>>& letter) {
  answers_.remove_if([](const Future<void>& answer) { return answer.IsReady(); });
  answers_.push_back(letter->request(store).Then(*executor_, [this, letter](FutureResult<T> result) {
    auto answer =
        std::make_shared<FutureResult<T>>(letter->is_answer_lost ? FutureResult<T>(Lost()) : std::move(result));
    After(letter->back, [letter, answer](SlowStore&) { letter->promise.Set(std::move(*answer)); });
  }));
}

Future<PlacementLease> SlowStore::TryAcquire(GrainKey key, std::string owner, Instant now) {
  return Send<PlacementLease>([key = std::move(key), owner = std::move(owner), now](EmbeddedClient& store) {
    return store.TryAcquire(key, owner, now);
  });
}

Future<void> SlowStore::Release(PlacementLease lease) {
  return Send<void>([lease = std::move(lease)](EmbeddedClient& store) { return store.Release(lease); });
}

Future<LoadedActivation> SlowStore::Load(GrainKey key) {
  return Send<LoadedActivation>([key = std::move(key)](EmbeddedClient& store) { return store.Load(key); });
}

Future<void> SlowStore::Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) {
  return Send<void>([key = std::move(key), entry = std::move(entry), expected_token](EmbeddedClient& store) {
    return store.Store(key, entry, expected_token);
  });
}

Future<void> SlowStore::Remove(GrainKey key, uint64_t token) {
  return Send<void>([key = std::move(key), token](EmbeddedClient& store) { return store.Remove(key, token); });
}

}  // namespace fraktor::inline v0
