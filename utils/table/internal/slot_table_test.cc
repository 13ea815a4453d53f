#include "fraktor/utils/table/internal/slot_table.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/table/internal/slot_pool.h"

namespace fraktor {

using utils_internal::Inbox;
using utils_internal::InboxNode;
using utils_internal::InboxPush;
using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;
using utils_internal::SlotTableOptions;
using utils_internal::TableSlot;

namespace {

struct Cell : TableSlot {
  uint32_t flags = 0;
  Inbox inbox;
  std::atomic<uint64_t> stamp{0};
  int value = 0;
};
static_assert(sizeof(Cell) == 32, "the generation costs four bytes and no padding");

// Chunks of one page, with 63 slots.
using Table = SlotTable<Cell, 4096>;
using Pool = SlotPool<Cell, 4096>;
using Handle = SlotHandle<Cell>;

int system_a = 0;
int system_b = 0;

// A reference by number, which names a slot and its generation.
struct Index {
  uint32_t slot = 0;
  uint32_t generation = 0;
};
Index IndexOf(const Handle& handle) { return {Table::IndexOf(handle.slot), handle.generation}; }
Cell* Resolve(const Table& table, Index index) { return Table::Resolve({table.At(index.slot), index.generation}); }

TEST(SlotPool, FreesAHandleOnce) {
  SlotTable<Cell, 4096> table;
  int owner = 0;
  SlotPool<Cell, 4096> pool(table, &owner);
  const auto handle = pool.Allocate().value();
  EXPECT_TRUE(pool.Free(handle));
  EXPECT_FALSE(pool.Free(handle));
  const auto first = pool.Allocate().value();
  const auto second = pool.Allocate().value();
  EXPECT_NE(first.slot, second.slot);
  EXPECT_FALSE(pool.Free(handle)) << "its slot is in use again";
  EXPECT_NE((SlotTable<Cell, 4096>::Resolve(first)), nullptr);
}

// Slots may be objects of a class that derives from the class of the table.
TEST(SlotTable, MakesItsSlotsAsItIsTold) {
  struct Derived : Cell {
    Derived() { value = 7; }
    int Twice() const { return 2 * value; }
  };
  Table table({}, [](void* memory) -> Cell* { return ::new (memory) Derived(); });
  Pool pool(table, &system_a);
  const Handle first = pool.Allocate().value();
  const Handle second = pool.Allocate().value();
  EXPECT_EQ(static_cast<const Derived&>(*first.slot).Twice(), 14);
  EXPECT_EQ(static_cast<const Derived&>(*second.slot).Twice(), 14);
}

TEST(SlotPool, LetsOneOfManyDeactivate) {
  Table table;
  Pool pool(table, &system_a);
  const Handle handle = pool.Reserve().value();
  Pool::Activate(handle);
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { winners.fetch_add(Pool::TryDeactivate(handle) ? 1 : 0); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners.load(), 1);
  EXPECT_EQ(Table::Resolve(handle), nullptr);
  pool.Release(handle.slot);
}

TEST(SlotPool, ShowsWhatIsInUseOnly) {
  Table table;
  Pool a(table, &system_a);
  Pool b(table, &system_b);
  const Handle used = a.Allocate().value();
  const Handle freed = a.Allocate().value();
  a.Free(freed);
  EXPECT_TRUE(b.Allocate().ok());
  std::vector<Cell*> seen;
  a.ForEachInUse([&seen](Cell& cell) { seen.push_back(&cell); });
  EXPECT_EQ(seen, std::vector<Cell*>({used.slot}));
}

TEST(SlotPool, KnowsItsOwnSlots) {
  Table table;
  Pool a(table, &system_a);
  Pool b(table, &system_b);
  EXPECT_TRUE(a.Owns(a.Allocate().value().slot));
  EXPECT_FALSE(a.Owns(b.Allocate().value().slot));
}

TEST(SlotTable, ResolvesWhatWasAllocatedByHandleAndByIndex) {
  Table table;
  Pool pool(table, &system_a);
  const Handle handle = pool.Allocate().value();
  EXPECT_EQ(Table::Resolve(handle), handle.slot);
  const Index index = IndexOf(handle);
  EXPECT_EQ(Resolve(table, index), handle.slot);
  EXPECT_EQ(index.generation, handle.generation);
  EXPECT_TRUE(handle.slot->IsAt(handle.generation));
}

TEST(SlotTable, ResolvesNothingThatWasFreed) {
  Table table;
  Pool pool(table, &system_a);
  const Handle handle = pool.Allocate().value();
  pool.Free(handle);
  EXPECT_EQ(Table::Resolve(handle), nullptr);
  EXPECT_EQ(Resolve(table, IndexOf(handle)), nullptr);
  const Handle again = pool.Allocate().value();
  ASSERT_EQ(again.slot, handle.slot);
  EXPECT_GT(again.generation, handle.generation);
  EXPECT_EQ(Table::Resolve(handle), nullptr);
  EXPECT_EQ(Table::Resolve(again), again.slot);
  EXPECT_EQ(Resolve(table, IndexOf(again)), again.slot);
}

TEST(SlotTable, ResolvesNothingThatWasNeverIssued) {
  Table table({.max_chunks = 3});
  EXPECT_EQ(Resolve(table, Index{0, 1}), nullptr);  // No chunk yet.
  Pool pool(table, &system_a);
  const Handle handle = pool.Allocate().value();
  EXPECT_EQ(Table::Resolve(Handle()), nullptr);
  EXPECT_EQ(Resolve(table, Index{Table::IndexOf(handle.slot) + 1, 1}), nullptr);
  EXPECT_EQ(Resolve(table, Index{63, 1}), nullptr);  // Between two chunks.
  EXPECT_EQ(Resolve(table, Index{64, 1}), nullptr);  // In a chunk that is not mapped.
  EXPECT_EQ(Resolve(table, Index{3 * 64, 1}), nullptr);
  EXPECT_EQ(Resolve(table, Index{0xffffffff, 0xffffffff}), nullptr);
}

TEST(SlotTable, TurnsSlotsIntoIndexesAndBack) {
  Table table;
  Pool pool(table, &system_a);
  std::set<uint32_t> indexes;
  for (int i = 0; i < 200; ++i) {
    const Handle handle = pool.Allocate().value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(handle.slot) % 64, 0u);
    const uint32_t index = Table::IndexOf(handle.slot);
    EXPECT_TRUE(indexes.insert(index).second);
    EXPECT_EQ(table.At(index), handle.slot);
  }
  EXPECT_EQ(table.chunks(), 4u);
}

TEST(SlotTable, KeepsAFreedSlotReachable) {
  Table table;
  Handle handle;
  {
    Pool pool(table, &system_a);
    handle = pool.Allocate().value();
    EXPECT_EQ(Table::OwnerOf(handle.slot), &system_a);
  }
  InboxNode node;
  EXPECT_EQ(Table::Resolve(handle), nullptr);
  EXPECT_EQ(handle.slot->inbox.Push(&node), InboxPush::kClaimed);
  EXPECT_TRUE(handle.slot->inbox.TryGoIdle());
  EXPECT_EQ(Table::OwnerOf(handle.slot), nullptr);
}

TEST(SlotTable, SaysHowToGetMoreWhenItIsFull) {
  Table table({.max_chunks = 2});
  Pool pool(table, &system_a);
  std::vector<Handle> handles;
  for (size_t i = 0; i < 2 * Table::kSlotsPerChunk; ++i) handles.push_back(pool.Allocate().value());
  const absl::Status full = pool.Allocate().status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(full.message()).find("max_chunks = 2"), std::string::npos) << full;
  pool.Free(handles[7]);
  EXPECT_EQ(pool.Allocate().value().slot, handles[7].slot);
}

TEST(SlotTable, SaysWhatToDoWhenItsAddressesCannotBeReserved) {
  struct Large : TableSlot {
    char bytes[1 << 20];
  };
  SlotTable<Large, size_t{1} << 40> table({.max_chunks = 1 << 10});  // More than any address space has.
  SlotPool<Large, size_t{1} << 40> pool(table, &system_a);
  const absl::Status status = pool.Allocate().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("lower max_chunks"), std::string::npos) << status;
}

TEST(SlotTable, RetiresASlotWhoseGenerationWouldWrap) {
  Table table({.max_chunks = 1, .max_generation = 6});  // For the uses 1, 3 and 5.
  Pool pool(table, &system_a);
  Cell* const first = pool.Allocate().value().slot;
  pool.Free({first, 1});
  for (uint32_t use = 3; use <= 5; use += 2) {
    const Handle handle = pool.Allocate().value();
    ASSERT_EQ(handle, (Handle{first, use}));
    EXPECT_EQ(table.retired(), 0u);
    pool.Free(handle);
  }
  EXPECT_EQ(table.retired(), 1u);
  size_t left = 0;
  while (pool.Allocate().ok()) ++left;
  EXPECT_EQ(left, Table::kSlotsPerChunk - 1);
  EXPECT_EQ(Resolve(table, Index{Table::IndexOf(first), 7}), nullptr);
}

TEST(SlotTable, RetiresAtTheEndOfThirtyTwoBitsByDefault) { EXPECT_EQ(SlotTableOptions().max_generation, 0xfffffffeu); }

TEST(SlotTable, LeavesRetiredSlotsOutForLaterOwnersToo) {
  Table table({.max_chunks = 1, .max_generation = 2});  // For one use.
  {
    Pool pool(table, &system_a);
    for (int i = 0; i < 3; ++i) pool.Free(pool.Allocate().value());
    for (int i = 0; i < 2; ++i) pool.Allocate().value();  // The pool ends them.
  }
  EXPECT_EQ(table.retired(), 5u);
  Pool pool(table, &system_b);
  size_t left = 0;
  while (pool.Allocate().ok()) ++left;
  EXPECT_EQ(left, Table::kSlotsPerChunk - 5);
}

// From some number of chunks on the table gets memory for several chunks at once. The last ones may
// be too few for that.
TEST(SlotTable, UsesAllChunksWhetherTheyComeAloneOrInHugePages) {
  for (const size_t chunks : {8, 9, 10, 11}) {
    SlotTable<Cell> table({.max_chunks = chunks});
    SlotPool<Cell> pool(table, &system_a);
    size_t allocated = 0;
    for (absl::StatusOr<Handle> slot = pool.Allocate(); slot.ok(); slot = pool.Allocate()) {
      slot->slot->value = 1;
      ++allocated;
    }
    EXPECT_EQ(allocated, chunks * SlotTable<Cell>::kSlotsPerChunk);
    EXPECT_EQ(table.chunks(), chunks);
  }
}

TEST(SlotTable, MapsFullSizedChunksWithoutWaste) {
  struct alignas(64) Full : TableSlot {
    char bytes[124];
  };
  using FullTable = SlotTable<Full>;
  static_assert(FullTable::kSlotBytes == 128 && FullTable::kSlotsPerChunk == 8191);
  FullTable table;
  SlotPool<Full> pool(table, &system_a);
  for (int i = 0; i < 8192; ++i) {
    const SlotHandle<Full> handle = pool.Allocate().value();
    EXPECT_EQ(table.At(FullTable::IndexOf(handle.slot)), handle.slot);
  }
  EXPECT_EQ(table.chunks(), 2u);
}

TEST(SlotPool, KeepsOwnersApart) {
  Table table;
  Pool a(table, &system_a);
  Pool b(table, &system_b);
  const Handle of_a = a.Allocate().value();
  const Handle of_b = b.Allocate().value();
  EXPECT_EQ(Table::OwnerOf(of_a.slot), &system_a);
  EXPECT_EQ(Table::OwnerOf(of_b.slot), &system_b);
  EXPECT_EQ(table.chunks(), 2u);
}

TEST(SlotPool, LeavesItsSlotsToLaterOwnersWithGenerationsGoingOn) {
  Table table({.max_chunks = 1});
  std::vector<Handle> old;
  {
    Pool a(table, &system_a);
    for (size_t i = 0; i < Table::kSlotsPerChunk; ++i) old.push_back(a.Allocate().value());
    a.Free(old.back());
  }
  Pool b(table, &system_b);
  for (size_t i = 0; i < Table::kSlotsPerChunk; ++i) {
    const Handle handle = b.Allocate().value();
    EXPECT_EQ(handle.generation, 3u);
    EXPECT_EQ(Table::OwnerOf(handle.slot), &system_b);
  }
  for (const Handle& handle : old) EXPECT_EQ(Table::Resolve(handle), nullptr);
  EXPECT_EQ(table.chunks(), 1u);
}

TEST(SlotPool, ReservesWithoutMakingAHandleThatResolves) {
  Table table;
  Pool pool(table, &system_a);
  const Handle handle = pool.Reserve().value();
  EXPECT_EQ(Table::Resolve(handle), nullptr);
  EXPECT_EQ(Resolve(table, IndexOf(handle)), nullptr);
  Pool::Activate(handle);
  EXPECT_EQ(Table::Resolve(handle), handle.slot);
  Pool::Deactivate(handle);
  EXPECT_EQ(Table::Resolve(handle), nullptr);
  EXPECT_NE(pool.Reserve().value().slot, handle.slot);
  pool.Release(handle.slot);
  EXPECT_EQ(pool.Reserve().value().slot, handle.slot);
}

// Only the generation orders this: the index is passed on relaxed. Under ThreadSanitizer this
// checks memory orders.
TEST(SlotPool, ShowsWhatWasWrittenBeforeActivateToWhoeverResolves) {
  Table table;
  Pool pool(table, &system_a);
  for (const bool by_index : {true, false}) {
    const Handle handle = pool.Reserve().value();
    std::atomic<bool> told{false};
    std::thread maker([&] {
      handle.slot->value = 7;
      Pool::Activate(handle);
      told.store(true, std::memory_order_relaxed);
    });
    while (!told.load(std::memory_order_relaxed)) std::this_thread::yield();
    Cell* cell = nullptr;
    while (cell == nullptr) cell = by_index ? Resolve(table, IndexOf(handle)) : Table::Resolve(handle);
    EXPECT_EQ(cell->value, 7);
    maker.join();
  }
}

TEST(SlotPool, TakesBackASlotThatWasReservedOnly) {
  Table table;
  Pool pool(table, &system_a);
  const Handle handle = pool.Reserve().value();
  pool.Release(handle.slot);
  EXPECT_EQ(pool.Reserve().value(), handle);
}

TEST(SlotPoolCache, GetsWhatAnotherCacheFreed) {
  Table table({.max_chunks = 4});
  Pool pool(table, &system_a);
  const size_t all = 4 * Table::kSlotsPerChunk;
  Pool::Cache maker(pool);
  for (int round = 0; round < 5; ++round) {
    std::vector<Handle> handles;
    while (handles.size() < all) handles.push_back(maker.Allocate().value());
    EXPECT_EQ(maker.Allocate().status().code(), absl::StatusCode::kResourceExhausted);
    Pool::Cache breaker(pool);
    for (const Handle& handle : handles) breaker.Free(handle);
  }
}

TEST(SlotPoolCache, KeepsAtMostTwoMagazinesForItself) {
  Table table({.max_chunks = 4});
  Pool pool(table, &system_a);
  const size_t all = 4 * Table::kSlotsPerChunk;
  Pool::Cache keeper(pool);
  std::vector<Handle> handles;
  while (handles.size() < all) handles.push_back(keeper.Allocate().value());
  for (const Handle& handle : handles) keeper.Free(handle);
  Pool::Cache other(pool);
  size_t got = 0;
  while (other.Allocate().ok()) ++got;
  EXPECT_GE(got, all - 2 * Pool::kMagazineSlots);
}

// Writers allocate, publish and free; readers resolve everything that was published, stale or not.
TEST(SlotTableStress, AHandleThatResolvesNamesTheUseThatItWasIssuedFor) {
  constexpr int kPlaces = 64;
  constexpr int kUses = 30'000;
  Table table({.max_chunks = 8});
  Pool pool(table, &system_a);
  const auto pack = [](Index index) { return uint64_t{index.slot} << 32 | index.generation; };
  std::vector<std::atomic<uint64_t>> published(kPlaces);
  std::atomic<int> writing{2};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      Pool::Cache cache(pool);
      std::vector<Handle> mine(kPlaces);
      uint64_t random = writer + 1;
      for (int i = 0; i < kUses; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const int place = static_cast<int>(random >> 33) % kPlaces;
        if (mine[place].slot != nullptr) cache.Free(mine[place]);
        const Handle handle = cache.Reserve().value();
        const uint64_t packed = pack(IndexOf(handle));
        // Release: a reader that sees this stamp sees that the slot's earlier use has ended.
        handle.slot->stamp.store(packed, std::memory_order_release);
        Pool::Activate(handle);
        mine[place] = handle;
        published[place].store(packed, std::memory_order_relaxed);
      }
      for (const Handle& handle : mine) {
        if (handle.slot != nullptr) cache.Free(handle);
      }
      writing.fetch_sub(1);
    });
  }
  threads.emplace_back([&] {
    for (int place = 0; writing.load() > 0; place = (place + 1) % kPlaces) {
      const uint64_t packed = published[place].load(std::memory_order_relaxed);
      // Nobody has published to the place yet: generation 0 is that of a slot that was never used.
      if (packed == 0) continue;
      const Index index{static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
      Cell* const cell = Resolve(table, index);
      if (cell == nullptr) continue;
      const uint64_t stamp = cell->stamp.load(std::memory_order_acquire);
      if (stamp != packed && cell->IsAt(index.generation)) wrong.fetch_add(1);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  for (const std::atomic<uint64_t>& packed : published) {
    EXPECT_EQ(Resolve(table, Index{static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)}), nullptr);
  }
}

// Actors without a scheduler: the thread that claims an inbox runs its owner at once. Senders use
// references that may be stale, and stop and spawn. The members of the cells, except the inbox and
// the generation, are ordinary memory.
struct Letter : InboxNode {
  uint32_t generation = 0;
  bool stop = false;
};

class Actors {
 public:
  explicit Actors(int places) : published_(places) {}

  void Use(int seed, int letters) {
    Pool::Cache cache(pool_);
    uint64_t random = seed + 1;
    for (int i = 0; i < letters; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::atomic<uint64_t>& place = published_[(random >> 33) % published_.size()];
      const uint64_t packed = place.load(std::memory_order_relaxed);
      const Index index{static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
      Cell* const cell = table_.At(index.slot);
      // Half of the late senders check first. The others act as if the actor had ended between
      // check and push. A place that nobody has published to has no reference: generation 0 is the
      // one of a slot that was never used.
      if (packed == 0 || cell == nullptr || (!cell->IsAt(index.generation) && (random & (1u << 20)) != 0)) {
        Spawn(cache, place);
        continue;
      }
      auto* letter = new Letter;
      letter->generation = index.generation;
      letter->stop = (random >> 50) % 16 == 0;
      sent_.fetch_add(1, std::memory_order_relaxed);
      if (cell->inbox.Push(letter) == InboxPush::kClaimed) Run(cache, *cell, letter);
    }
  }

  void ExpectNothingLost() {
    EXPECT_EQ(sent_.load(), delivered_.load() + dead_.load());
    EXPECT_GT(delivered_.load(), 0u);
    EXPECT_EQ(foreign_.load(), 0u);
  }

 private:
  void Spawn(Pool::Cache& cache, std::atomic<uint64_t>& place) {
    const Handle handle = cache.Reserve().value();
    if (!handle.slot->inbox.TryClaim()) {  // A late letter is being discarded on it.
      cache.Release(handle.slot);
      return;
    }
    handle.slot->value = static_cast<int>(handle.generation);
    Pool::Activate(handle);
    const Index index = IndexOf(handle);
    place.store(uint64_t{index.slot} << 32 | index.generation, std::memory_order_relaxed);
    if (!handle.slot->inbox.TryGoIdle()) Run(cache, *handle.slot, handle.slot->inbox.TakeAll().first);
  }

  void Run(Pool::Cache& cache, Cell& cell, InboxNode* node) {
    bool stopped = false;
    for (;;) {
      while (node != nullptr) {
        const std::unique_ptr<Letter> letter(static_cast<Letter*>(node));
        node = node->next;
        if (!cell.IsAt(letter->generation)) {
          dead_.fetch_add(1, std::memory_order_relaxed);
          continue;
        }
        delivered_.fetch_add(1, std::memory_order_relaxed);
        if (cell.value != static_cast<int>(letter->generation)) foreign_.fetch_add(1, std::memory_order_relaxed);
        if (!letter->stop) continue;
        Pool::Deactivate({&cell, letter->generation});
        stopped = true;
      }
      if (cell.inbox.TryGoIdle()) break;
      node = cell.inbox.TakeAll().first;
    }
    if (stopped) cache.Release(&cell);
  }

  Table table_{{.max_chunks = 16}};
  Pool pool_{table_, &system_a};
  std::vector<std::atomic<uint64_t>> published_;
  // Counters that are compared after all threads have ended.
  std::atomic<uint64_t> sent_{0}, delivered_{0}, dead_{0}, foreign_{0};
};

TEST(SlotTableStress, LateSendersOfRecycledSlotsMeetAStaleGeneration) {
  Actors actors(/*places=*/16);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&actors, i] { actors.Use(i, 60'000); });
  for (std::thread& thread : threads) thread.join();
  actors.ExpectNothingLost();
}

}  // namespace
}  // namespace fraktor
