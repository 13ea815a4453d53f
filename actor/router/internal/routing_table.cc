#include "fraktor/actor/router/internal/routing_table.h"

#include <bit>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"

#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/router/internal/custom_routes.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

constinit std::atomic<RoutingTable*> RoutingTable::buckets_[kBuckets] = {};

// The free snapshots, by capacity.
struct RoutingTable::Pool {
  static constexpr uint32_t kSmallest = 16;

  static uint32_t CapacityFor(size_t words) {
    return static_cast<uint32_t>(std::bit_ceil(words < kSmallest ? size_t{kSmallest} : words));
  }

  Snapshot& Take(size_t words) ABSL_LOCKS_EXCLUDED(mutex) {
    const uint32_t capacity = CapacityFor(words);
    {
      MutexLock lock(mutex);
      std::vector<Snapshot*>& some = free[capacity];
      if (!some.empty()) {
        Snapshot* const taken = some.back();
        some.pop_back();
        return *taken;
      }
    }
    void* const memory = ::operator new (sizeof(Snapshot) + capacity * sizeof(uint64_t), std::align_val_t{64});
    auto* const made = ::new (memory) Snapshot(capacity);
    for (uint32_t i = 0; i < capacity; ++i) ::new (made->words() + i) std::atomic<uint64_t>(0);
    return *made;
  }

  void Give(Snapshot& snapshot) ABSL_LOCKS_EXCLUDED(mutex) {
    MutexLock lock(mutex);
    free[snapshot.capacity].push_back(&snapshot);
  }

  Mutex mutex;
  absl::flat_hash_map<uint32_t, std::vector<Snapshot*>> free ABSL_GUARDED_BY(mutex);
};

RoutingTable::Pool& RoutingTable::Snapshots() {
  static Pool& pool = *new Pool;
  return pool;
}

RoutingTable::RoutingTable(const ActorSlot& slot) : slot_(slot), current_(&Snapshots().Take(0)) {}

RoutingTable& RoutingTable::Bind(const ActorSlot& slot) {
  if (RoutingTable* const found = Find(slot)) return *found;
  // Only one thread has the slot at a time, but other threads may add to the same bucket.
  auto* const made = new RoutingTable(slot);  // NOLINT: it belongs to the process.
  std::atomic<RoutingTable*>& bucket = Bucket(slot);
  made->next_ = bucket.load(std::memory_order_relaxed);
  while (!bucket.compare_exchange_weak(made->next_, made, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  return *made;
}

void RoutingTable::Begin(uint64_t seed) {
  routees.clear();
  ticket_.store(0, std::memory_order_relaxed);
  seed_.store(seed, std::memory_order_relaxed);
  failures_.store(0, std::memory_order_relaxed);
  ResizeDone();
}

uint64_t RoutingTable::RandomOf(uint64_t ticket) const {
  return HashOfRoutingKey(seed_.load(std::memory_order_relaxed) + ticket * 0x9e3779b97f4a7c15);
}

void RoutingTable::Fill(Snapshot& snapshot, const RoutingPlan& plan, absl::Span<const ActorRef> to,
                        absl::Span<const uint64_t> ring, CustomRoutes* custom_routes) const {
  const uint64_t stamp = snapshot.stamp.load(std::memory_order_relaxed);
  snapshot.stamp.store(stamp + 1, std::memory_order_relaxed);
  snapshot.generation.store(slot_.generation(), std::memory_order_release);
  snapshot.size.store(static_cast<uint32_t>(to.size()), std::memory_order_release);
  snapshot.ring_size.store(static_cast<uint32_t>(ring.size()), std::memory_order_release);
  snapshot.resize_every.store(plan.resize_every, std::memory_order_release);
  snapshot.kind.store(plan.kind, std::memory_order_release);
  snapshot.within_ns.store(plan.within_ns, std::memory_order_release);
  snapshot.interval_ns.store(plan.interval_ns, std::memory_order_release);
  snapshot.mapping.store(plan.mapping, std::memory_order_release);
  snapshot.custom_routes.store(custom_routes, std::memory_order_release);
  std::atomic<uint64_t>* word = snapshot.words();
  for (const ActorRef routee : to) {
    (word++)->store(reinterpret_cast<uintptr_t>(routee.any_slot()), std::memory_order_release);
    (word++)->store(routee.word(), std::memory_order_release);
  }
  for (const uint64_t point : ring) (word++)->store(point, std::memory_order_release);
  snapshot.stamp.store(stamp + 2, std::memory_order_release);
}

void RoutingTable::Publish(const RoutingPlan& plan, absl::Span<const ActorRef> to, absl::Span<const uint64_t> ring,
                           CustomRoutes* custom_routes) {
  Snapshot& next = Snapshots().Take(2 * to.size() + ring.size());
  Fill(next, plan, to, ring, custom_routes);
  Snapshots().Give(*current_.exchange(&next, std::memory_order_acq_rel));
  // Only now: a reader that fails to acquire the routes of a snapshot finds another snapshot.
  if (CustomRoutes* const old = std::exchange(published_routes_, custom_routes)) old->Release();
}

RoutingPlan RoutingTable::View::plan() const {
  return {.kind = kind(),
          .resize_every = resize_every(),
          .within_ns = snapshot_.within_ns.load(std::memory_order_acquire),
          .interval_ns = snapshot_.interval_ns.load(std::memory_order_acquire),
          .mapping = snapshot_.mapping.load(std::memory_order_acquire)};
}

RoutingTable::RawRoutee RoutingTable::View::OwnerOf(uint64_t hash) const {
  const uint32_t routees_count = size();
  const uint32_t points =
      std::min(snapshot_.ring_size.load(std::memory_order_acquire), snapshot_.capacity - 2 * routees_count);
  if (points == 0 || routees_count == 0) return {};
  const std::atomic<uint64_t>* const ring = snapshot_.words() + 2 * size_t{routees_count};
  // Finds the first point at or behind the hash. The first point of the ring follows the last one.
  const uint64_t wanted = hash & ~uint64_t{UINT32_MAX};
  uint32_t low = 0;
  uint32_t high = points;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (ring[middle].load(std::memory_order_acquire) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const auto owner = static_cast<uint32_t>(ring[low == points ? 0 : low].load(std::memory_order_acquire));
  return routee(std::min(owner, routees_count - 1));
}

}  // namespace fraktor::inline v0::actor_internal
