// A table of slots whose references are plain values: an address, or an index, and a generation. A reference may
// outlive what it named, and even the owner of the table's memory; looked at later, it resolves to nothing.
//
//   struct Cell : TableSlot { Inbox inbox; ... };
//   static auto& table = *new SlotTable<Cell>({.max_chunks = 1024});       // one for the process, never destroyed
//   SlotPool<Cell> pool(table, &system);                                   // slot_pool.h: the slots of one owner
//   SlotHandle<Cell> handle = pool.Allocate().value();
//   SlotIndex index = table.IndexOf(handle);                               // 8 bytes, fits in a wire format
//   Cell* cell = table.Resolve(index);                                     // null for ever once the cell was freed
//
// Slots live in chunks of 1 MiB. A table reserves addresses for as many as it may have, which costs no memory; a chunk
// gets memory when it is needed and stays where it is until the table is destroyed. Slots are made once and never
// destroyed in between: a slot that was freed is still an object, and who has its address may look at its atomics at
// any time. It is used again by later allocations, also of other owners, with the generation going on.
//
// Generations are even while a slot is free and odd while it is in use, so that a guessed reference to a free slot
// resolves to nothing. A slot whose generation cannot go on is retired: it is not used again, and its bytes are lost
// until the process ends. At the default limit that takes 2^31 uses of one slot.
//
// Thread safety: all methods may be called from any thread. Resolve is wait-free: one look at the slot.
//
// Limits: max_chunks, after which allocation answers ResourceExhausted.
#ifndef FRAKTOR_UTILS_TABLE_SLOT_TABLE_H_
#define FRAKTOR_UTILS_TABLE_SLOT_TABLE_H_

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/queue/atomics.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/table/table_slot.h"

namespace fraktor::inline v0 {

// A reference by address. The generation is odd, except in SlotHandle() that resolves to nothing.
template <typename T>
struct SlotHandle {
  T* slot = nullptr;
  uint32_t generation = 0;

  friend bool operator==(const SlotHandle& a, const SlotHandle& b) {
    return a.slot == b.slot && a.generation == b.generation;
  }
};

// A reference by number. SlotIndex() resolves to nothing.
struct SlotIndex {
  uint32_t slot = 0;
  uint32_t generation = 0;

  friend bool operator==(const SlotIndex& a, const SlotIndex& b) {
    return a.slot == b.slot && a.generation == b.generation;
  }
};

// How large a table may grow.
struct SlotTableOptions {
  // Of 1 MiB each: 4096 are 33 million slots of 128 bytes.
  size_t max_chunks = 4096;
  // A slot is retired when the end of its next use would go beyond this; at least 2, which is one use. For tests of
  // that.
  uint32_t max_generation = 0xfffffffe;
};

// T derives from TableSlot and has a default constructor that does not throw. kChunkBytes is a power of two and a
// multiple of the page size; tests use small ones.
template <typename T, size_t kChunkBytes = size_t{1} << 20, typename Atomics = StdAtomics>
class SlotTable {
 public:
  using Handle = SlotHandle<T>;

  static constexpr size_t kSlotAlignment = 64;
  static constexpr size_t kSlotBytes = (sizeof(T) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  static constexpr size_t kSlotsPerChunk = (kChunkBytes - kSlotAlignment) / kSlotBytes;

  // Makes a slot in `memory`: a T, or an object of a class that derives from T, is not larger, and
  // needs no destructor of its own.
  using MakeSlot = T* (*)(void* memory);

  // More chunks than an index can name are not used, also if `options` allows them. If the
  // addresses cannot be reserved, allocation fails with the reason. `make` is called once for each
  // slot of a new chunk, and does not throw.
  explicit SlotTable(
      SlotTableOptions options = {}, MakeSlot make = [](void* memory) { return ::new (memory) T(); })
      : max_chunks_(std::min(options.max_chunks, kMaxChunks)),
        max_generation_(std::max<uint32_t>(options.max_generation, 2)),
        make_(make) {
    Reserve();
  }

  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // Destroys the slots and unmaps the chunks, after which no reference may be looked at. For tests: the table of a
  // process is not destroyed, since nobody knows who still has references.
  ~SlotTable();

  // The slot of a handle if it is still in that use, else null. What the slot's allocator wrote before Activate is
  // visible then.
  static T* Resolve(Handle handle) {
    // Acquire: pairs with the release of Activate.
    if (handle.slot == nullptr || handle.slot->generation_.load(std::memory_order_acquire) != handle.generation)
      return nullptr;
    return handle.slot;
  }

  // The same for an index. Any index may be asked for, also one that was never issued.
  T* Resolve(SlotIndex index) const {
    T* const slot = At(index.slot);
    if (slot == nullptr || index.generation % 2 == 0) return nullptr;
    // Acquire: pairs with the release of Activate.
    return slot->generation_.load(std::memory_order_acquire) == index.generation ? slot : nullptr;
  }

  // The number of a slot of this table: for ever the same.
  static uint32_t IndexOf(const T* slot) {
    const Chunk* const chunk = ChunkOf(slot);
    const auto offset = static_cast<size_t>(reinterpret_cast<const std::byte*>(slot) - chunk->slots());
    return chunk->number << kSlotBits | static_cast<uint32_t>(offset / kSlotBytes);
  }
  static SlotIndex IndexOf(Handle handle) { return {IndexOf(handle.slot), handle.generation}; }

  // The slot of a number in whatever generation, or null if there is none yet.
  T* At(uint32_t slot) const {
    const uint32_t number = slot >> kSlotBits;
    const uint32_t in_chunk = slot & ((uint32_t{1} << kSlotBits) - 1);
    // Acquire: pairs with the release of TakeChunk, which has made the slots.
    if (number >= mapped_.load(std::memory_order_acquire) || in_chunk >= kSlotsPerChunk) return nullptr;
    return ChunkAt(number)->slot(in_chunk);
  }

  // Whose slot this is at the moment: what the SlotPool was given, or null if its owner has ended. By the time the
  // caller looks at the answer the owner may end, so an owner is something that lives as long as the process.
  static void* OwnerOf(const T* slot) {
    // Acquire: pairs with the release of TakeChunk.
    return ChunkOf(slot)->owner.load(std::memory_order_acquire);
  }

  // How many chunks have memory. They never become fewer.
  size_t chunks() const { return mapped_.load(std::memory_order_relaxed); }

  size_t max_chunks() const { return max_chunks_; }

  // How many slots were retired.
  uint64_t retired() const { return retired_.load(std::memory_order_relaxed); }

 private:
  friend class SlotPool<T, kChunkBytes, Atomics>;

  static_assert(std::is_base_of_v<BasicTableSlot<Atomics>, T> && std::is_default_constructible_v<T>);
  static_assert(alignof(T) <= kSlotAlignment);
  static_assert(std::has_single_bit(kChunkBytes) && kChunkBytes >= 4096 && kSlotsPerChunk >= 1);

  // An index is the number of a chunk and, in the low bits, that of a slot in it.
  static constexpr int kSlotBits = std::bit_width(kSlotsPerChunk - 1);
  static constexpr size_t kMaxChunks = size_t{1} << (32 - kSlotBits);

  // At the beginning of the chunk's memory, which is aligned to its size: an address of a slot leads to it.
  struct alignas(kSlotAlignment) Chunk {
    explicit Chunk(uint32_t n) : number(n) {}

    std::byte* slots() { return reinterpret_cast<std::byte*>(this) + kSlotAlignment; }
    const std::byte* slots() const { return reinterpret_cast<const std::byte*>(this) + kSlotAlignment; }
    T* slot(size_t i) { return std::launder(reinterpret_cast<T*>(slots() + i * kSlotBytes)); }

    // Stored by TakeChunk and ReturnChunk; loaded by OwnerOf.
    typename Atomics::template Atomic<void*> owner{nullptr};
    const uint32_t number;
  };
  static_assert(sizeof(Chunk) == kSlotAlignment);

  static Chunk* ChunkOf(const T* slot) {
    return std::launder(reinterpret_cast<Chunk*>(reinterpret_cast<uintptr_t>(slot) & ~(uintptr_t{kChunkBytes} - 1)));
  }

  Chunk* ChunkAt(uint32_t number) const {
    return std::launder(reinterpret_cast<Chunk*>(chunks_ + number * kChunkBytes));
  }

  // Sets chunks_, or reserve_error_.
  void Reserve();

  // For the pool: a chunk that nobody owns, new or used before. Its slots are free or retired.
  absl::StatusOr<Chunk*> TakeChunk(void* owner);
  // For the pool: gives back a chunk whose slots are all free or retired.
  void ReturnChunk(Chunk* chunk);

  // For the pool: whether a free slot of this generation has no further use in it.
  bool IsUsedUp(uint32_t generation) const { return generation > max_generation_ - 2; }
  void CountRetired() { retired_.fetch_add(1, std::memory_order_relaxed); }

  const size_t max_chunks_;
  const uint32_t max_generation_;
  const MakeSlot make_;
  // Addresses for max_chunks_ chunks, aligned to their size; written by the constructor only. Null if they could not be
  // had.
  std::byte* chunks_ = nullptr;
  int reserve_error_ = 0;
  // How many of them have memory. Stored by TakeChunk with release when the slots have been made; pairs with the
  // acquire of At.
  typename Atomics::template Atomic<uint32_t> mapped_{0};
  // A counter for whoever is interested; pairs with nothing.
  typename Atomics::template Atomic<uint64_t> retired_{0};

  Mutex mutex_;
  std::vector<Chunk*> unowned_ ABSL_GUARDED_BY(mutex_);
};

// Only definitions from here on.

template <typename T, size_t kChunkBytes, typename Atomics>
SlotTable<T, kChunkBytes, Atomics>::~SlotTable() {
  const uint32_t mapped = mapped_.load(std::memory_order_relaxed);
  for (uint32_t number = 0; number < mapped; ++number) {
    Chunk* const chunk = ChunkAt(number);
    assert(chunk->owner.load(std::memory_order_relaxed) == nullptr && "a SlotPool outlives its SlotTable");
    for (size_t i = 0; i < kSlotsPerChunk; ++i) chunk->slot(i)->~T();
    chunk->~Chunk();
  }
  if (chunks_ != nullptr) munmap(chunks_, max_chunks_ * kChunkBytes);
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotTable<T, kChunkBytes, Atomics>::Reserve() {
  if (max_chunks_ == 0) return;
  // The kernel aligns to pages: take one chunk more and give back what lies outside.
  const size_t bytes = max_chunks_ * kChunkBytes;
  void* const reserved =
      mmap(nullptr, bytes + kChunkBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    reserve_error_ = errno;
    return;
  }
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t aligned = (begin + kChunkBytes - 1) & ~(uintptr_t{kChunkBytes} - 1);
  const size_t before = aligned - begin;
  if (before > 0) munmap(reserved, before);
  munmap(reinterpret_cast<void*>(aligned + bytes), kChunkBytes - before);
  chunks_ = reinterpret_cast<std::byte*>(aligned);
}

template <typename T, size_t kChunkBytes, typename Atomics>
auto SlotTable<T, kChunkBytes, Atomics>::TakeChunk(void* owner) -> absl::StatusOr<Chunk*> {
  MutexLock lock(mutex_);
  if (!unowned_.empty()) {
    Chunk* const chunk = unowned_.back();
    unowned_.pop_back();
    chunk->owner.store(owner, std::memory_order_release);
    return chunk;
  }
  const uint32_t number = mapped_.load(std::memory_order_relaxed);  // Only stored under the lock.
  if (number == max_chunks_) {
    return absl::ResourceExhaustedError(absl::StrCat("slot table: all of max_chunks = ", max_chunks_, " chunks of ",
                                                     kSlotsPerChunk,
                                                     " slots are in use; free slots or raise max_chunks"));
  }
  if (chunks_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "slot table: reserving addresses for max_chunks = ", max_chunks_, " chunks of ", kChunkBytes,
        " bytes failed: ", std::strerror(reserve_error_), "; lower max_chunks or raise the limit on address space"));
  }
  std::byte* const memory = chunks_ + number * kChunkBytes;
  if (mprotect(memory, kChunkBytes, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("slot table: memory for chunk ", number, " of ", kChunkBytes,
                                                     " bytes failed: ", std::strerror(errno),
                                                     "; free memory or lower max_chunks"));
  }
  auto* const chunk = new (memory) Chunk(number);
  for (size_t i = 0; i < kSlotsPerChunk; ++i) make_(chunk->slots() + i * kSlotBytes);
  chunk->owner.store(owner, std::memory_order_relaxed);  // Published by the next line.
  mapped_.store(number + 1, std::memory_order_release);
  return chunk;
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotTable<T, kChunkBytes, Atomics>::ReturnChunk(Chunk* chunk) {
  chunk->owner.store(nullptr, std::memory_order_release);
  MutexLock lock(mutex_);
  unowned_.push_back(chunk);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TABLE_SLOT_TABLE_H_
