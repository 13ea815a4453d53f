// Whom a router sends to: a list that any thread reads without a lock while the router changes it.
//
//   RoutingTable& table = RoutingTable::Bind(slot);                     // by the spawner or the router, for its slot
//   table.Publish({.kind = RoutingKind::kRoundRobin}, routees, {});
//   ...
//   if (const RoutingTable* found = RoutingTable::Find(*ref.slot())) {  // any thread
//     table.Read(ref.generation(), [&](const RoutingTable::View& view) { chosen = view.routee(i); });
//   }
//
// A table belongs to a slot for as long as the process lives, as slots do: a sender may come late, when the router has
// ended or its slot is in use by another. What it reads is a snapshot that is complete when it is published, and whose
// memory is used again for later ones, of any router, but never freed. A stamp tells a reader that this happened while
// it read: then it reads the next. So readers write nothing, wait for nobody, and are never in the way.
//
// Thread safety: Find and Read from any thread; the rest from the router's turn, or by its spawner before it begins.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTING_TABLE_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTING_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/turn/actor_slot.h"

namespace fraktor::inline v0 {

enum class RoutingKind : uint8_t {
  kRoundRobin,
  kRandom,
  kBroadcast,
  kSmallestMailbox,
  kConsistentHashing,
  kScatterGather,
  kTailChopping,
};

// The key of a message, or none. A plain function: senders call it, perhaps when its router has ended.
using RoutingMapping = std::optional<uint64_t> (*)(const Envelope& message);

// How a router chooses; a constant of its life.
struct RoutingPlan {
  RoutingKind kind = RoutingKind::kRoundRobin;
  // Every so many messages the pool looks whether its size is right; 0: never.
  uint32_t resize_every = 0;
  int64_t within_ns = 0;
  int64_t interval_ns = 0;
  RoutingMapping mapping = nullptr;
};

class RoutingTable {
 private:
  struct Snapshot;

 public:
  static constexpr size_t kMaxRoutees = 1 << 16;
  static constexpr size_t kMaxRingPoints = 1 << 22;

  RoutingTable(const RoutingTable&) = delete;
  RoutingTable& operator=(const RoutingTable&) = delete;

  // The table of a slot, made at the first call.
  static RoutingTable& Bind(const ActorSlot& slot);
  // Null if the slot has never had a router.
  static RoutingTable* Find(const ActorSlot& slot) {
    // Acquire: pairs with the release of Bind.
    for (RoutingTable* table = Bucket(slot).load(std::memory_order_acquire); table != nullptr; table = table->next_) {
      if (&table->slot_ == &slot) return table;
    }
    return nullptr;
  }

  // What is read may be torn until Read says that it was good: so nothing here leads to memory that is not a table's.
  class View {
   public:
    RoutingPlan plan() const;
    RoutingKind kind() const { return snapshot_.kind.load(std::memory_order_acquire); }
    uint32_t resize_every() const { return snapshot_.resize_every.load(std::memory_order_acquire); }
    uint32_t size() const { return std::min(snapshot_.size.load(std::memory_order_acquire), snapshot_.capacity / 2); }
    ActorRef routee(uint32_t i) const {
      const std::atomic<uint64_t>* const words = snapshot_.words();
      return ActorRef(reinterpret_cast<TableSlot*>(words[2 * i].load(std::memory_order_acquire)),  // NOLINT
                      words[2 * i + 1].load(std::memory_order_acquire));
    }
    // The routee that is responsible for a hash, or no one if there is no ring.
    ActorRef OwnerOf(uint64_t hash) const;

   private:
    friend class RoutingTable;
    explicit View(const Snapshot& snapshot) : snapshot_(snapshot) {}
    const Snapshot& snapshot_;
  };

  // Calls `read` with a view of the routees, again if they changed meanwhile: it must have no effect but on its own
  // variables. False if the router of that generation has ended, or is not known here.
  template <class Reader>
  bool Read(uint32_t generation, Reader read) const {
    for (;;) {
      // Acquire: pairs with the release of Publish.
      const Snapshot& snapshot = *current_.load(std::memory_order_acquire);
      const uint64_t stamp = snapshot.stamp.load(std::memory_order_acquire);
      // Odd: it is being used for something else already, and there is another one.
      if (stamp % 2 == 1) continue;
      const bool is_known = snapshot.generation.load(std::memory_order_acquire) == generation;
      if (is_known) read(View(snapshot));
      // The loads above acquire what Fill released: if they saw anything of the next use, this sees its stamp.
      if (snapshot.stamp.load(std::memory_order_relaxed) == stamp) return is_known;
    }
  }

  // Another number each time, for whose turn it is. Relaxed, by any thread.
  uint64_t NextTicket() const { return ticket_.fetch_add(1, std::memory_order_relaxed); }
  // How many were taken, or a few less.
  uint64_t tickets() const { return ticket_.load(std::memory_order_relaxed); }
  // A random number for a ticket.
  uint64_t RandomOf(uint64_t ticket) const;

  // True for the first of those who find that the pool should look at its size; until ResizeDone.
  bool TryRequestResize() const {
    return !resize_requested_.load(std::memory_order_relaxed) &&
           !resize_requested_.exchange(true, std::memory_order_relaxed);
  }
  void ResizeDone() { resize_requested_.store(false, std::memory_order_relaxed); }

  // For the router.

  // A new router: forgets the one before. Nobody is sent to until Publish.
  void Begin(uint64_t seed);
  // A point of the ring is the upper half of a hash, and the number of a routee below; they are sorted.
  void Publish(const RoutingPlan& plan, absl::Span<const ActorRef> routees, absl::Span<const uint64_t> ring);

  // Its routees, as it knows them. Of the router, which may be restarted meanwhile.
  std::vector<ActorRef> routees;

 private:
  struct alignas(64) Snapshot {
    explicit Snapshot(uint32_t words_count) : capacity(words_count) {}

    std::atomic<uint64_t>* words() { return reinterpret_cast<std::atomic<uint64_t>*>(this + 1); }
    const std::atomic<uint64_t>* words() const { return reinterpret_cast<const std::atomic<uint64_t>*>(this + 1); }

    // Odd while it is being filled. Everything below is stored with release after it became odd, and loaded with
    // acquire, so that a reader who has seen something new sees a new stamp too.
    std::atomic<uint64_t> stamp{0};
    std::atomic<uint32_t> generation{0};
    std::atomic<uint32_t> size{0};
    std::atomic<uint32_t> ring_size{0};
    std::atomic<uint32_t> resize_every{0};
    std::atomic<RoutingKind> kind{RoutingKind::kRoundRobin};
    // So many words follow: two for each routee, then the ring. Never changes.
    const uint32_t capacity;
    std::atomic<int64_t> within_ns{0};
    std::atomic<int64_t> interval_ns{0};
    std::atomic<RoutingMapping> mapping{nullptr};
  };
  static_assert(sizeof(Snapshot) == 64);

  struct Pool;

  explicit RoutingTable(const ActorSlot& slot);

  static constexpr size_t kBuckets = 4096;
  static std::atomic<RoutingTable*>& Bucket(const ActorSlot& slot) {
    // Slots are 128 bytes apart.
    return buckets_[(reinterpret_cast<uintptr_t>(&slot) >> 7) % kBuckets];
  }
  // Stored with release when the table is complete; a table stays for ever.
  static constinit std::atomic<RoutingTable*> buckets_[kBuckets];

  static Pool& Snapshots();
  void Fill(Snapshot& snapshot, const RoutingPlan& plan, absl::Span<const ActorRef> to,
            absl::Span<const uint64_t> ring) const;

  const ActorSlot& slot_;
  RoutingTable* next_ = nullptr;
  // Never null. Stored with release when it is complete.
  std::atomic<Snapshot*> current_;
  // A flag that orders nothing.
  mutable std::atomic<bool> resize_requested_{false};
  // Written by senders: apart from what they only read.
  alignas(64) mutable std::atomic<uint64_t> ticket_{0};
  std::atomic<uint64_t> seed_{0};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTING_TABLE_H_
