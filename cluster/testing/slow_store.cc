#include "fraktor/cluster/testing/slow_store.h"

#include <string>
#include <utility>

namespace fraktor::inline v0 {

std::shared_ptr<SlowStore> SlowStore::Make(RuntimeToolbox& toolbox, Random random, TestStoreClients store,
                                           std::shared_ptr<const StoreTrouble> trouble) {
  return std::shared_ptr<SlowStore>(
      new SlowStore(SlowLine::Make(toolbox, std::move(random), std::move(trouble)), std::move(store)));
}

template <class T>
Future<T> SlowStore::Send(Request<T> request) {
  return line_->Send<T>([store = store_, request = std::move(request)](bool is_late) mutable {
    const std::shared_ptr<EmbeddedClient> client = is_late ? store.of_store() : store.of_node;
    return client == nullptr ? MakeReadyFuture<T>(SlowLine::Lost()) : request(*client);
  });
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
