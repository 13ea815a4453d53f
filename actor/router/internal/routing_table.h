// RoutingTable: the routees of a router, which any thread reads without a lock while the router
// changes them.
//
// The spawner or the router calls Bind for its slot, and then Publish. A sender calls Find with the
// slot of its reference, and Read with the generation.
//
// A table belongs to a slot as long as the process lives, because a sender may come late: the
// router may have ended, and its slot may serve another actor. A sender reads a snapshot, which is
// complete when it is published. The memory of a snapshot is reused for later snapshots of any
// router, but never freed. A stamp tells a reader that its snapshot was reused during the read:
// then it reads the current one. So readers write nothing and wait for nobody.
//
// Thread safety: Find and Read from any thread; the rest from turns of the router, or by its
// spawner before the first turn.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_TABLE_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/routing_plan.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

class CustomRoutes;

class RoutingTable {
 private:
  struct Snapshot;

 public:
  RoutingTable(const RoutingTable&) = delete;
  RoutingTable& operator=(const RoutingTable&) = delete;

  // Returns the table of a slot, and makes it at the first call.
  static RoutingTable& Bind(const ActorSlot& slot);
  // Null if the slot has never had a router.
  static RoutingTable* Find(const ActorSlot& slot) {
    // Acquire: pairs with the release of Bind.
    for (RoutingTable* table = Bucket(slot).load(std::memory_order_acquire); table != nullptr; table = table->next_) {
      if (&table->slot_ == &slot) return table;
    }
    return nullptr;
  }

  class View;

  // A routee in a snapshot. During a Read it may be torn: the slot of one routee and the word of
  // another, or points of a ring. So it is no ActorRef, and nothing can follow it by mistake.
  class RawRoutee {
   public:
    constexpr RawRoutee() = default;
    // Call it only after Read has returned true, or after View::IsWhole has.
    ActorRef ref() const { return ActorRef(reinterpret_cast<utils_internal::TableSlot*>(slot_), word_); }  // NOLINT

   private:
    friend class View;
    constexpr RawRoutee(uint64_t slot, uint64_t word) : slot_(slot), word_(word) {}

    uint64_t slot_ = 0;
    uint64_t word_ = 0;
  };

  // The values may be torn until Read returns, except those that were loaded before IsWhole
  // returned true. So nothing here leads to memory outside of tables.
  class View {
   public:
    // Returns whether all values that were loaded so far belong to one publication. Once it returns
    // false, Read will call its reader again.
    bool IsWhole() const {
      // The loads before pair with the release stores of Fill, as in Read.
      return snapshot_.stamp.load(std::memory_order_relaxed) == stamp_;
    }
    RoutingPlan plan() const;
    RoutingKind kind() const { return snapshot_.kind.load(std::memory_order_acquire); }
    uint32_t resize_every() const { return snapshot_.resize_every.load(std::memory_order_acquire); }
    uint32_t size() const { return std::min(snapshot_.size.load(std::memory_order_acquire), snapshot_.capacity / 2); }
    RawRoutee routee(uint32_t i) const {
      const std::atomic<uint64_t>* const words = snapshot_.words();
      return RawRoutee(words[2 * i].load(std::memory_order_acquire), words[2 * i + 1].load(std::memory_order_acquire));
    }
    // The routee that owns a hash, or no one if there is no ring.
    RawRoutee OwnerOf(uint64_t hash) const;
    // The routes of a router with a RoutingLogic; null for others. Call TryAcquire after Read has
    // returned true, and read again if it fails.
    CustomRoutes* custom_routes() const { return snapshot_.custom_routes.load(std::memory_order_acquire); }

   private:
    friend class RoutingTable;
    View(const Snapshot& snapshot, uint64_t stamp) : snapshot_(snapshot), stamp_(stamp) {}
    const Snapshot& snapshot_;
    const uint64_t stamp_;
  };

  // Calls `read` with a view of the routees, and again if they changed meanwhile. `read` must only
  // change its own variables. False if the router of that generation has ended, or has no table
  // here.
  template <class Reader>
  bool Read(uint32_t generation, Reader read) const {
    for (;;) {
      // Acquire: pairs with the release of Publish.
      const Snapshot& snapshot = *current_.load(std::memory_order_acquire);
      const uint64_t stamp = snapshot.stamp.load(std::memory_order_acquire);
      // Odd: the snapshot is being reused, and there is a newer one.
      if (stamp % 2 == 1) continue;
      const bool is_known = snapshot.generation.load(std::memory_order_acquire) == generation;
      if (is_known) read(View(snapshot, stamp));
      // The loads above pair with the release stores of Fill: if one of them saw the next use of
      // the snapshot, this load sees its stamp.
      if (snapshot.stamp.load(std::memory_order_relaxed) == stamp) return is_known;
    }
  }

  // Returns another number at each call. Relaxed, because it orders nothing. Any thread.
  uint64_t NextTicket() const { return ticket_.fetch_add(1, std::memory_order_relaxed); }
  // The number of tickets so far. It may lag behind.
  uint64_t tickets() const { return ticket_.load(std::memory_order_relaxed); }
  // The random number that belongs to a ticket.
  uint64_t RandomOf(uint64_t ticket) const;

  // True for the first sender that wants the pool to check its size; then false until ResizeDone.
  bool TryRequestResize() const {
    return !resize_requested_.load(std::memory_order_relaxed) &&
           !resize_requested_.exchange(true, std::memory_order_relaxed);
  }
  void ResizeDone() { resize_requested_.store(false, std::memory_order_relaxed); }

  // Counts one failure of FailRouting, and returns how many there were in the life of the router.
  uint64_t CountFailure() const { return 1 + failures_.fetch_add(1, std::memory_order_relaxed); }

  // For the router.

  uint32_t generation() const { return slot_.generation(); }
  // Begins the life of a new router. Senders find no routees until Publish.
  void Begin(uint64_t seed);
  // `ring` is sorted. A point has the upper half of a hash, and in its lower half the number of a
  // routee. Takes over a reference to `custom_routes`, and releases it when other ones are
  // published.
  void Publish(const RoutingPlan& plan, absl::Span<const ActorRef> routees, absl::Span<const uint64_t> ring,
               CustomRoutes* custom_routes = nullptr);

  // The routees as the router knows them. Only the router uses them; they survive its restarts.
  std::vector<ActorRef> routees;

 private:
  struct alignas(64) Snapshot {
    explicit Snapshot(uint32_t words_count) : capacity(words_count) {}

    std::atomic<uint64_t>* words() { return reinterpret_cast<std::atomic<uint64_t>*>(this + 1); }
    const std::atomic<uint64_t>* words() const { return reinterpret_cast<const std::atomic<uint64_t>*>(this + 1); }

    // Odd while the snapshot is filled. Fill stores all members below with release after the stamp
    // is odd, and readers load them with acquire. So a reader that has seen a new value sees a new
    // stamp.
    std::atomic<uint64_t> stamp{0};
    std::atomic<uint32_t> generation{0};
    std::atomic<uint32_t> size{0};
    std::atomic<uint32_t> ring_size{0};
    std::atomic<uint32_t> resize_every{0};
    std::atomic<RoutingKind> kind{RoutingKind::kRoundRobin};
    // The number of words that follow: two for each routee, then the ring. It never changes.
    const uint32_t capacity;
    std::atomic<int64_t> within_ns{0};
    std::atomic<int64_t> interval_ns{0};
    std::atomic<RoutingMapping> mapping{nullptr};
    std::atomic<CustomRoutes*> custom_routes{nullptr};
  };
  static_assert(sizeof(Snapshot) == 64);

  struct Pool;

  explicit RoutingTable(const ActorSlot& slot);

  static constexpr size_t kBuckets = 4096;
  static std::atomic<RoutingTable*>& Bucket(const ActorSlot& slot) {
    // Slots are 128 bytes apart.
    return buckets_[(reinterpret_cast<uintptr_t>(&slot) >> 7) % kBuckets];
  }
  // Stored with release when a table is complete: pairs with the acquire of Find. Tables live for
  // ever.
  static constinit std::atomic<RoutingTable*> buckets_[kBuckets];

  static Pool& Snapshots();
  void Fill(Snapshot& snapshot, const RoutingPlan& plan, absl::Span<const ActorRef> to, absl::Span<const uint64_t> ring,
            CustomRoutes* custom_routes) const;

  const ActorSlot& slot_;
  RoutingTable* next_ = nullptr;
  // Never null. Stored with release when the snapshot is complete: pairs with the acquire of Read.
  std::atomic<Snapshot*> current_;
  // Relaxed: the flag orders nothing.
  mutable std::atomic<bool> resize_requested_{false};
  // Relaxed: the sum orders nothing.
  mutable std::atomic<uint64_t> failures_{0};
  // The table holds a reference to the routes of the current snapshot. Null for built-in
  // strategies.
  CustomRoutes* published_routes_ = nullptr;
  // Senders write these: they have a cache line apart from the members that senders only read.
  // Relaxed: they order nothing.
  alignas(64) mutable std::atomic<uint64_t> ticket_{0};
  std::atomic<uint64_t> seed_{0};
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_TABLE_H_
