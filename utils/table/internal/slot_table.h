// SlotTable: a table of slots whose references are plain values: an address and a generation. A
// reference may outlive its slot's use, and even the owner of the slot; it then resolves to null.
//
//   struct Cell : TableSlot { Inbox inbox; };
//
//   static auto& table = *new SlotTable<Cell>({.max_chunks = 1024});       // one per process, never destroyed
//   SlotPool<Cell> pool(table, &system);                                   // slot_pool.h: the slots of one owner
//   SlotHandle<Cell> handle = pool.Allocate().value();
//   Cell* cell = table.Resolve(handle);                                    // null forever after pool.Free(handle)
//   uint32_t number = table.IndexOf(handle.slot);                          // table.At(number) is the same slot
//
// Slots live in chunks of 1 MiB. A table reserves addresses for max_chunks chunks, which costs no
// memory. A chunk gets memory when it is needed, and stays at its address until the table is
// destroyed. A slot is constructed once and not destroyed between uses. So a freed slot is still an
// object, and a thread that has its address may read its atomics at any time. Later allocations,
// also of other owners, use the slot again with its next generation.
//
// The generation is even while a slot is free and odd while it is in use, so a guessed reference to
// a free slot resolves to null. A slot whose generations have run out is retired: it is not used
// again, and its memory is lost until the process ends. With the default limit that takes 2^31 uses
// of one slot.
//
// Thread safety: any thread may call all methods. Resolve is wait-free: one load of the slot's
// generation.
//
// Limits: max_chunks; further allocations return ResourceExhausted.
#ifndef FRAKTOR_UTILS_TABLE_INTERNAL_SLOT_TABLE_H_
#define FRAKTOR_UTILS_TABLE_INTERNAL_SLOT_TABLE_H_

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

#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/table/internal/table_slot.h"

namespace fraktor::inline v0::utils_internal {

// A reference by address. Its generation is odd, except in the default SlotHandle(), which resolves
// to null.
template <typename T>
struct SlotHandle {
  T* slot = nullptr;
  uint32_t generation = 0;

  friend bool operator==(const SlotHandle& a, const SlotHandle& b) {
    return a.slot == b.slot && a.generation == b.generation;
  }
};

// How large a table may grow.
struct SlotTableOptions {
  // The most chunks, of 1 MiB each: 4096 chunks are 33 million slots of 128 bytes.
  size_t max_chunks = 4096;
  // A slot is retired when the end of its next use would exceed this. At least 2, which is one use.
  // Tests set it.
  uint32_t max_generation = 0xfffffffe;
};

// T derives from TableSlot and has a default constructor that does not throw. kChunkBytes is a
// power of two and a multiple of the page size; tests use small ones.
template <typename T, size_t kChunkBytes = size_t{1} << 20, typename Atomics = StdAtomics>
class SlotTable {
 public:
  using Handle = SlotHandle<T>;

  static constexpr size_t kSlotAlignment = 64;
  static constexpr size_t kSlotBytes = (sizeof(T) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  static constexpr size_t kSlotsPerChunk = (kChunkBytes - kSlotAlignment) / kSlotBytes;

  // Constructs a slot in `memory`: a T, or an object of a class that derives from T, is not larger,
  // and needs no destructor of its own.
  using MakeSlot = T* (*)(void* memory);

  // The table never uses more chunks than an index can name, even if `options` allows them. If the
  // addresses cannot be reserved, allocation fails with the reason. `make` is called once for each
  // slot of a new chunk, and must not throw.
  explicit SlotTable(
      SlotTableOptions options = {}, MakeSlot make = [](void* memory) { return ::new (memory) T(); })
      : max_chunks_(std::min(options.max_chunks, kMaxChunks)),
        max_generation_(std::max<uint32_t>(options.max_generation, 2)),
        make_(make) {
    Reserve();
  }

  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  // Destroys the slots and unmaps the chunks. No reference may be resolved after that. For tests: a
  // process never destroys its table, since references to it may remain anywhere.
  ~SlotTable();

  // Returns the slot of a handle, or null if that use of the slot has ended. Everything that was
  // written to the slot before Activate is visible then.
  static T* Resolve(Handle handle) {
    // Acquire: pairs with the release of Activate.
    if (handle.slot == nullptr || handle.slot->generation_.load(std::memory_order_acquire) != handle.generation)
      return nullptr;
    return handle.slot;
  }

  // The number of a slot of this table. It never changes.
  static uint32_t IndexOf(const T* slot) {
    const Chunk* const chunk = ChunkOf(slot);
    const auto offset = static_cast<size_t>(reinterpret_cast<const std::byte*>(slot) - chunk->slots());
    return chunk->number << kSlotBits | static_cast<uint32_t>(offset / kSlotBytes);
  }

  // The slot with that number, of any generation, or null if there is none yet.
  T* At(uint32_t slot) const {
    const uint32_t number = slot >> kSlotBits;
    const uint32_t in_chunk = slot & ((uint32_t{1} << kSlotBits) - 1);
    // Acquire: pairs with the release of TakeChunk, which has made the slots.
    if (number >= mapped_.load(std::memory_order_acquire) || in_chunk >= kSlotsPerChunk) return nullptr;
    return ChunkAt(number)->slot(in_chunk);
  }

  // The current owner of the slot, as given to the SlotPool, or null if that owner has ended. The
  // owner may end before the caller uses the result, so an owner must live as long as the process.
  static void* OwnerOf(const T* slot) {
    // Acquire: pairs with the release of TakeChunk.
    return ChunkOf(slot)->owner.load(std::memory_order_acquire);
  }

  // The number of chunks that have memory. It never decreases.
  size_t chunks() const { return mapped_.load(std::memory_order_relaxed); }

  size_t max_chunks() const { return max_chunks_; }

  // The number of retired slots.
  uint64_t retired() const { return retired_.load(std::memory_order_relaxed); }

 private:
  friend class SlotPool<T, kChunkBytes, Atomics>;

  static_assert(std::is_base_of_v<BasicTableSlot<Atomics>, T> && std::is_default_constructible_v<T>);
  static_assert(alignof(T) <= kSlotAlignment);
  static_assert(std::has_single_bit(kChunkBytes) && kChunkBytes >= 4096 && kSlotsPerChunk >= 1);

  // An index is the number of a chunk and, in the low bits, the number of a slot in it.
  static constexpr int kSlotBits = std::bit_width(kSlotsPerChunk - 1);
  static constexpr size_t kMaxChunks = size_t{1} << (32 - kSlotBits);

  // The header of a chunk, at the start of the chunk's memory. That memory is aligned to its size,
  // so the address of a slot leads to the header.
  struct alignas(kSlotAlignment) Chunk {
    explicit Chunk(uint32_t n) : number(n) {}

    std::byte* slots() { return reinterpret_cast<std::byte*>(this) + kSlotAlignment; }
    const std::byte* slots() const { return reinterpret_cast<const std::byte*>(this) + kSlotAlignment; }
    T* slot(size_t i) { return std::launder(reinterpret_cast<T*>(slots() + i * kSlotBytes)); }

    // TakeChunk and ReturnChunk store it with release, or before the release of mapped_. OwnerOf
    // loads it with acquire.
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

  // A table with many chunks gets its memory in huge pages: page faults one by one take several
  // times as long. The first chunks get small pages, so that a small table stays small.
  static constexpr size_t kHugePageBytes = size_t{2} << 20;
  static constexpr size_t kChunksPerHugePage = std::max<size_t>(kHugePageBytes / kChunkBytes, 1);
  static constexpr size_t kChunksInSmallPages = kChunksPerHugePage * 4;
  static constexpr size_t kAlignment = std::max(kChunkBytes, kHugePageBytes);

  // Sets chunks_, or reserve_error_.
  void Reserve();

  // Makes the memory of chunk `number` accessible. Returns false and sets errno if that fails.
  bool MakeAccessible(uint32_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // For the pool: returns a chunk without an owner, new or used before. Its slots are free or
  // retired.
  absl::StatusOr<Chunk*> TakeChunk(void* owner);
  // For the pool: takes back a chunk whose slots are all free or retired.
  void ReturnChunk(Chunk* chunk);

  // For the pool: true if a free slot of this generation cannot be used again.
  bool IsUsedUp(uint32_t generation) const { return generation > max_generation_ - 2; }
  void CountRetired() { retired_.fetch_add(1, std::memory_order_relaxed); }

  const size_t max_chunks_;
  const uint32_t max_generation_;
  const MakeSlot make_;
  // The addresses of max_chunks_ chunks, aligned to their size. Only the constructor writes it.
  // Null if the addresses could not be reserved.
  std::byte* chunks_ = nullptr;
  int reserve_error_ = 0;
  // How many of the chunks have memory. TakeChunk stores it with release after it has made the
  // slots; pairs with the acquire of At.
  typename Atomics::template Atomic<uint32_t> mapped_{0};
  // A counter for metrics; pairs with nothing.
  typename Atomics::template Atomic<uint64_t> retired_{0};

  Mutex mutex_;
  // The number of chunks whose memory is accessible: all mapped ones, and up to a huge page more.
  size_t accessible_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Chunk*> unowned_ ABSL_GUARDED_BY(mutex_);
};

// Definitions only from here on.

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
  // The kernel aligns to small pages only: reserve kAlignment more, and return the parts outside of
  // the aligned range.
  const size_t bytes = max_chunks_ * kChunkBytes;
  void* const reserved =
      mmap(nullptr, bytes + kAlignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) {
    reserve_error_ = errno;
    return;
  }
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t aligned = (begin + kAlignment - 1) & ~(uintptr_t{kAlignment} - 1);
  const size_t before = aligned - begin;
  if (before > 0) munmap(reserved, before);
  munmap(reinterpret_cast<void*>(aligned + bytes), kAlignment - before);
  chunks_ = reinterpret_cast<std::byte*>(aligned);
}

template <typename T, size_t kChunkBytes, typename Atomics>
bool SlotTable<T, kChunkBytes, Atomics>::MakeAccessible(uint32_t number) {
  if (number < accessible_) return true;
  std::byte* const memory = chunks_ + number * kChunkBytes;
  const bool is_huge = number >= kChunksInSmallPages && max_chunks_ - number >= kChunksPerHugePage;
  const size_t chunks = is_huge ? kChunksPerHugePage : 1;
  if (mprotect(memory, chunks * kChunkBytes, PROT_READ | PROT_WRITE) != 0) return false;
#ifdef MADV_HUGEPAGE
  // A kernel without huge pages refuses; the chunks then get small pages.
  if (is_huge) madvise(memory, chunks * kChunkBytes, MADV_HUGEPAGE);
#endif
  accessible_ = number + chunks;
  return true;
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
  const uint32_t number = mapped_.load(std::memory_order_relaxed);  // Stored only under the lock.
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
  if (!MakeAccessible(number)) {
    return absl::ResourceExhaustedError(absl::StrCat("slot table: memory for chunk ", number, " of ", kChunkBytes,
                                                     " bytes failed: ", std::strerror(errno),
                                                     "; free memory or lower max_chunks"));
  }
  auto* const chunk = new (chunks_ + number * kChunkBytes) Chunk(number);
  for (size_t i = 0; i < kSlotsPerChunk; ++i) make_(chunk->slots() + i * kSlotBytes);
  chunk->owner.store(owner, std::memory_order_relaxed);  // The next line publishes it.
  mapped_.store(number + 1, std::memory_order_release);
  return chunk;
}

template <typename T, size_t kChunkBytes, typename Atomics>
void SlotTable<T, kChunkBytes, Atomics>::ReturnChunk(Chunk* chunk) {
  chunk->owner.store(nullptr, std::memory_order_release);
  MutexLock lock(mutex_);
  unowned_.push_back(chunk);
}

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_TABLE_INTERNAL_SLOT_TABLE_H_
