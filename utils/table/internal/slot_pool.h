// SlotPool: allocates and frees the slots of one owner in a SlotTable.
//
//   SlotPool<Cell> pool(table, &system);
//   SlotPool<Cell>::Cache cache(pool);                    // one per worker: no lock, no read-modify-write
//   absl::StatusOr<SlotHandle<Cell>> handle = cache.Allocate();
//   cache.Free(*handle);                                  // any cache of the pool may free it
//
// Allocate is Reserve and Activate; Free is Deactivate and Release. An owner whose slots other
// threads may still access calls the four steps itself:
//   Reserve     takes a free slot, and returns it with its next generation; no thread can resolve that yet
//   Activate    makes the handle resolve; a thread that resolves it sees everything written to the slot before
//   Deactivate  makes all handles of the slot stale; the slot is not used again yet
//               (TryDeactivate, if several threads may do this)
//   Release     returns the slot to the pool
//
// Thread safety: any thread may call the methods of SlotPool; they lock, and are for threads that
// allocate rarely. One thread at a time may use a Cache. Caches exchange slots with the pool in
// magazines of kMagazineSlots, so they lock once per that many calls. Only the thread that
// allocated the slot, or took it over, may call Activate and Deactivate; one thread at a time.
//
// Limits: those of the table. A cache keeps up to 2 * kMagazineSlots free slots that other caches
// cannot get.
#ifndef FRAKTOR_UTILS_TABLE_INTERNAL_SLOT_POOL_H_
#define FRAKTOR_UTILS_TABLE_INTERNAL_SLOT_POOL_H_

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::inline v0::utils_internal {

template <typename T, size_t kChunkBytes = size_t{1} << 20, typename Atomics = StdAtomics>
class SlotPool {
 public:
  using Table = SlotTable<T, kChunkBytes, Atomics>;
  using Handle = SlotHandle<T>;
  class Cache;

  static constexpr size_t kMagazineSlots = 64;

  // SlotTable::OwnerOf returns `owner` for the slots of this pool. It must not be null, and must
  // live as long as the process or the table. `table` outlives the pool.
  SlotPool(Table& table, void* owner);

  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // Deactivates the slots that are still in use, and leaves all slots to later owners. There must
  // be no cache left, and no call may be running.
  ~SlotPool();

  // The methods of Cache, for any thread.
  absl::StatusOr<Handle> Allocate();
  bool Free(Handle handle);
  absl::StatusOr<Handle> Reserve();
  void Release(T* slot);

  static void Activate(Handle handle);
  static void Deactivate(Handle handle);
  // The same for several threads that may try it: returns true for exactly one of them, which owns
  // the slot then.
  static bool TryDeactivate(Handle handle);

  // True if a slot of the table belongs to this pool.
  bool Owns(const T* slot) const { return Table::OwnerOf(slot) == owner_; }

  // Calls `visit(slot)` for each slot that is in use. No thread may allocate or free meanwhile.
  template <typename Visit>
  void ForEachInUse(Visit visit) {
    MutexLock lock(mutex_);
    for (Chunk* const chunk : chunks_) {
      for (size_t i = 0; i < Table::kSlotsPerChunk; ++i) {
        if (chunk->slot(i)->generation() % 2 == 1) visit(*chunk->slot(i));
      }
    }
  }

  Table& table() { return table_; }

 private:
  using Chunk = typename Table::Chunk;

  // Free slots. The slot that was freed last is used first, since it is still in the cache of the
  // CPU.
  struct Magazine {
    bool empty() const { return count == 0; }
    bool full() const { return count == kMagazineSlots; }
    size_t count = 0;
    std::array<T*, kMagazineSlots> slots;
  };
  using MagazinePointer = std::unique_ptr<Magazine>;

  // Exchanges an empty magazine for one with slots, or fills it from a chunk. Returns
  // ResourceExhausted if the table is full.
  absl::Status Refill(MagazinePointer& magazine);
  // Exchanges a full magazine for an empty one.
  void Drain(MagazinePointer& magazine);
  // Gives a new cache an empty magazine: one that another cache has returned, if there is one.
  MagazinePointer Lend();
  // Takes the magazine of a cache that ends. Combines its slots with those of other caches that
  // have ended.
  void TakeBack(MagazinePointer magazine);

  MagazinePointer TakeEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Fills an empty magazine with slots of the current chunk that this pool has not used yet.
  void Carve(Magazine& magazine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Table& table_;
  void* const owner_;

  Mutex mutex_;
  std::vector<Chunk*> chunks_ ABSL_GUARDED_BY(mutex_);
  size_t carved_ ABSL_GUARDED_BY(mutex_) = 0;  // How many slots of the last chunk Carve has processed.
  // Together with the magazines of the caches, these are as many as caches and free slots have
  // needed at a time: two for each cache, one for every kMagazineSlots free slots, and one. Like
  // slots, they are never returned to the system.
  std::vector<MagazinePointer> filled_ ABSL_GUARDED_BY(mutex_);  // All are full except, at most, the last one.
  std::vector<MagazinePointer> empty_ ABSL_GUARDED_BY(mutex_);

  // For callers without a cache. Locked before mutex_.
  Mutex shared_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::unique_ptr<Cache> shared_cache_ ABSL_GUARDED_BY(shared_mutex_);
};

template <typename T, size_t kChunkBytes, typename Atomics>
class SlotPool<T, kChunkBytes, Atomics>::Cache {
 public:
  // `pool` outlives the cache.
  explicit Cache(SlotPool& pool) : pool_(pool), loaded_(pool.Lend()), spare_(pool.Lend()) {}

  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  ~Cache() {
    pool_.TakeBack(std::move(loaded_));
    pool_.TakeBack(std::move(spare_));
  }

  // Returns a slot in use, in the state in which its last user left it, or ResourceExhausted.
  absl::StatusOr<Handle> Allocate();

  // Makes the handle stale and the slot free. Returns false, and does nothing, if the handle is
  // already stale. Two threads must not free one handle at the same time.
  bool Free(Handle handle) {
    if (!handle.slot->IsAt(handle.generation)) return false;
    Deactivate(handle);
    Release(handle.slot);
    return true;
  }

  // The halves of Allocate and Free; see the top of this file. A reserved slot may be released
  // without having been active. Late threads may still access the slot's atomics between Deactivate
  // and Activate; the caller must cope with that.
  absl::StatusOr<Handle> Reserve();
  void Release(T* slot);

  // The fast path of Reserve: returns a slot, or null if the pool has to be asked.
  T* ReserveAtHand() { return loaded_->empty() ? nullptr : loaded_->slots[--loaded_->count]; }

 private:
  SlotPool& pool_;
  // Two magazines, so that a cache at the edge of one does not go to the pool with every call.
  // Never null.
  MagazinePointer loaded_;
  MagazinePointer spare_;
};

// Definitions only from here on.

template <typename T, size_t kChunkBytes, typename Atomics>
SlotPool<T, kChunkBytes, Atomics>::SlotPool(Table& table, void* owner)
    : table_(table), owner_(owner), shared_cache_(std::make_unique<Cache>(*this)) {
  assert(owner != nullptr);
}

template <typename T, size_t kChunkBytes, typename Atomics>
SlotPool<T, kChunkBytes, Atomics>::~SlotPool() {
  {
    MutexLock lock(shared_mutex_);
    shared_cache_.reset();
  }
  MutexLock lock(mutex_);
  for (Chunk* const chunk : chunks_) {
    for (size_t i = 0; i < Table::kSlotsPerChunk; ++i) {
      T* const slot = chunk->slot(i);
      const uint32_t generation = slot->generation();
      // A thread that claims a slot, as a late reply does, may be faster.
      if (generation % 2 == 0 || !TryDeactivate({slot, generation})) continue;
      if (table_.IsUsedUp(generation + 1)) table_.CountRetired();
    }
    table_.ReturnChunk(chunk);
  }
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotPool<T, kChunkBytes, Atomics>::Activate(Handle handle) {
  assert(handle.generation % 2 == 1 && handle.slot->IsAt(handle.generation - 1));
  handle.slot->generation_.store(handle.generation, std::memory_order_release);
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotPool<T, kChunkBytes, Atomics>::Deactivate(Handle handle) {
  assert(handle.generation % 2 == 1 && handle.slot->IsAt(handle.generation));
  // Release: a thread that sees the new generation, by Activate or here, never sees an earlier
  // state of the slot.
  handle.slot->generation_.store(handle.generation + 1, std::memory_order_release);
}

template <typename T, size_t kChunkBytes, typename Atomics>
bool SlotPool<T, kChunkBytes, Atomics>::TryDeactivate(Handle handle) {
  assert(handle.generation % 2 == 1);
  uint32_t generation = handle.generation;
  // Release as in Deactivate. Acquire: the winner reads everything that was written to the slot
  // before Activate.
  return handle.slot->generation_.compare_exchange_strong(generation, generation + 1, std::memory_order_acq_rel,
                                                          std::memory_order_relaxed);
}

template <typename T, size_t kChunkBytes, typename Atomics>
absl::StatusOr<SlotHandle<T>> SlotPool<T, kChunkBytes, Atomics>::Allocate() {
  MutexLock lock(shared_mutex_);
  return shared_cache_->Allocate();
}

template <typename T, size_t kChunkBytes, typename Atomics>
bool SlotPool<T, kChunkBytes, Atomics>::Free(Handle handle) {
  MutexLock lock(shared_mutex_);
  return shared_cache_->Free(handle);
}

template <typename T, size_t kChunkBytes, typename Atomics>
absl::StatusOr<SlotHandle<T>> SlotPool<T, kChunkBytes, Atomics>::Reserve() {
  MutexLock lock(shared_mutex_);
  return shared_cache_->Reserve();
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotPool<T, kChunkBytes, Atomics>::Release(T* slot) {
  MutexLock lock(shared_mutex_);
  shared_cache_->Release(slot);
}

template <typename T, size_t kChunkBytes, typename Atomics>
absl::Status SlotPool<T, kChunkBytes, Atomics>::Refill(MagazinePointer& magazine) {
  assert(magazine->empty());
  MutexLock lock(mutex_);
  if (!filled_.empty()) {
    empty_.push_back(std::exchange(magazine, std::move(filled_.back())));
    filled_.pop_back();
    return absl::OkStatus();
  }
  for (;;) {
    if (!chunks_.empty()) Carve(*magazine);
    if (!magazine->empty()) return absl::OkStatus();
    absl::StatusOr<Chunk*> chunk = table_.TakeChunk(owner_);
    if (!chunk.ok()) return chunk.status();
    chunks_.push_back(*chunk);
    carved_ = 0;
  }
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotPool<T, kChunkBytes, Atomics>::Carve(Magazine& magazine) {
  Chunk* const chunk = chunks_.back();
  const size_t begin = carved_;
  // The magazine gives its last slot first. It is filled from behind, so that a new pool uses its
  // memory in order.
  while (carved_ < Table::kSlotsPerChunk && carved_ - begin < kMagazineSlots) ++carved_;
  for (size_t i = carved_; i-- > begin;) {
    T* const slot = chunk->slot(i);
    if (!table_.IsUsedUp(slot->generation())) magazine.slots[magazine.count++] = slot;
  }
}

template <typename T, size_t kChunkBytes, typename Atomics>
auto SlotPool<T, kChunkBytes, Atomics>::TakeEmpty() -> MagazinePointer {
  if (empty_.empty()) return std::make_unique<Magazine>();
  MagazinePointer magazine = std::move(empty_.back());
  empty_.pop_back();
  return magazine;
}

template <typename T, size_t kChunkBytes, typename Atomics>
auto SlotPool<T, kChunkBytes, Atomics>::Lend() -> MagazinePointer {
  MutexLock lock(mutex_);
  return TakeEmpty();
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotPool<T, kChunkBytes, Atomics>::Drain(MagazinePointer& magazine) {
  assert(magazine->full());
  MutexLock lock(mutex_);
  filled_.push_back(std::exchange(magazine, TakeEmpty()));
  if (filled_.size() > 1 && !filled_[filled_.size() - 2]->full()) {
    std::swap(filled_.back(), filled_[filled_.size() - 2]);
  }
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotPool<T, kChunkBytes, Atomics>::TakeBack(MagazinePointer magazine) {
  MutexLock lock(mutex_);
  if (!filled_.empty()) {
    Magazine& last = *filled_.back();
    while (!last.full() && !magazine->empty()) last.slots[last.count++] = magazine->slots[--magazine->count];
  }
  (magazine->empty() ? empty_ : filled_).push_back(std::move(magazine));
}

template <typename T, size_t kChunkBytes, typename Atomics>
inline absl::StatusOr<SlotHandle<T>> SlotPool<T, kChunkBytes, Atomics>::Cache::Allocate() {
  absl::StatusOr<Handle> handle = Reserve();
  if (handle.ok()) Activate(*handle);
  return handle;
}

template <typename T, size_t kChunkBytes, typename Atomics>
inline absl::StatusOr<SlotHandle<T>> SlotPool<T, kChunkBytes, Atomics>::Cache::Reserve() {
  if (loaded_->empty()) {
    if (!spare_->empty()) {
      std::swap(loaded_, spare_);
    } else if (absl::Status refilled = pool_.Refill(loaded_); !refilled.ok()) {
      return refilled;
    }
  }
  T* const slot = loaded_->slots[--loaded_->count];
  return Handle{slot, slot->generation() + 1};
}

template <typename T, size_t kChunkBytes, typename Atomics>
inline void SlotPool<T, kChunkBytes, Atomics>::Cache::Release(T* slot) {
  const uint32_t generation = slot->generation();
  assert(generation % 2 == 0);
  if (pool_.table_.IsUsedUp(generation)) {
    pool_.table_.CountRetired();
    return;
  }
  if (loaded_->full()) {
    if (!spare_->empty()) pool_.Drain(spare_);
    std::swap(loaded_, spare_);
  }
  loaded_->slots[loaded_->count++] = slot;
}

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_TABLE_INTERNAL_SLOT_POOL_H_
