#include "fraktor/actor/message/internal/node_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/sync/mutex.h"

#ifdef FRAKTOR_NODE_POOL_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace fraktor::inline v0::actor_internal {
namespace node_pool_internal {

constexpr size_t kMostNodesPerMagazine = NodesPerMagazine(NodeClass::k64);
// The size of a huge page, so that the kernel can map a chunk in one piece.
constexpr size_t kChunkBytes = size_t{2} << 20;

struct MagazineBlock;

// Pointers to free nodes. `size` is not updated while the magazine is loaded.
struct Magazine {
  Magazine* next = nullptr;
  size_t size = 0;
  MagazineBlock* block = nullptr;
  void* nodes[kMostNodesPerMagazine];
};

// Magazines are made in blocks, as many as the nodes of a chunk fill. One at a time, a consumer of
// nodes that pile up would allocate once per magazine, under the lock of the depot, and wait there
// for a producer that maps a chunk at the same time.
struct MagazineBlock {
  static constexpr size_t kMagazines = 128;

  // Returns null if all have been made.
  Magazine* MakeNext() {
    if (made == kMagazines) return nullptr;
    auto* const magazine = ::new (memory + made * sizeof(Magazine)) Magazine();
    ++made;
    magazine->block = this;
    return magazine;
  }

  size_t made = 0;
  size_t unused = 0;                                                  // while the depot counts them
  alignas(Magazine) std::byte memory[kMagazines * sizeof(Magazine)];  // not touched before it is needed
};

namespace {

// The content of a free node in its chunk.
struct FreeNode {
  FreeNode* next;
};

// The head of a chunk of mapped memory; the nodes follow. Aligned to its size, so that the address
// of a node gives its chunk.
struct Chunk {
  Chunk* previous = nullptr;
  Chunk* next = nullptr;
  bool listed = false;
  uint32_t cut = 0;   // nodes that have been used at least once
  uint32_t free = 0;  // the number of those that are back
  FreeNode* first_free = nullptr;

  static Chunk& Of(void* node) {
    return *reinterpret_cast<Chunk*>(static_cast<std::byte*>(node) - reinterpret_cast<uintptr_t>(node) % kChunkBytes);
  }
};
static_assert(sizeof(Chunk) <= NodeBytes(NodeClass::k64), "it takes the place of the first node");

// Returns null if the system has no memory.
std::byte* MapAligned() {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  // There is usually room for another aligned chunk below the last one. A hint; pairs with nothing.
  static std::atomic<uintptr_t> below_last{0};
  if (const uintptr_t hint = below_last.load(std::memory_order_relaxed); hint != 0) {
    void* const wanted = reinterpret_cast<void*>(hint);  // NOLINT(performance-no-int-to-ptr): an address to ask for
    void* const mapped = mmap(wanted, kChunkBytes, kProtection, kFlags, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (reinterpret_cast<uintptr_t>(mapped) % kChunkBytes == 0) {
      below_last.store(reinterpret_cast<uintptr_t>(mapped) - kChunkBytes, std::memory_order_relaxed);
      return static_cast<std::byte*>(mapped);
    }
    munmap(mapped, kChunkBytes);
  }
  // Twice the size contains an aligned chunk; the ends are unmapped.
  void* const mapped = mmap(nullptr, 2 * kChunkBytes, kProtection, kFlags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before = (kChunkBytes - reinterpret_cast<uintptr_t>(begin) % kChunkBytes) % kChunkBytes;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + kChunkBytes, kChunkBytes - before);
  below_last.store(reinterpret_cast<uintptr_t>(begin + before) - kChunkBytes, std::memory_order_relaxed);
  return begin + before;
}

// Returns null if the system has no memory. `all_at_once`: the chunk will be used up soon, so one
// call maps all of its pages, in one piece if the kernel can. Page faults one by one take several
// times as long.
Chunk* MapChunk(bool all_at_once) {
  std::byte* const memory = MapAligned();
  if (memory == nullptr) return nullptr;
  if (all_at_once) {
    // An old kernel refuses; then page faults map the pages.
#ifdef MADV_HUGEPAGE
    madvise(memory, kChunkBytes, MADV_HUGEPAGE);
#endif
#ifdef MADV_POPULATE_WRITE
    madvise(memory, kChunkBytes, MADV_POPULATE_WRITE);
#endif
  }
  Chunk* const chunk = ::new (memory) Chunk();
#ifdef FRAKTOR_NODE_POOL_ASAN
  __lsan_register_root_region(chunk, kChunkBytes);
#endif
  Poison(reinterpret_cast<std::byte*>(chunk) + sizeof(Chunk), kChunkBytes - sizeof(Chunk));
  return chunk;
}

void UnmapChunk(Chunk* chunk) {
  Unpoison(chunk, kChunkBytes);
#ifdef FRAKTOR_NODE_POOL_ASAN
  __lsan_unregister_root_region(chunk, kChunkBytes);
#endif
  munmap(chunk, kChunkBytes);
}

// The depot of one class of nodes: the threads trade magazines with it, and it cuts nodes from
// chunks.
class Depot {
 public:
  // Returns a magazine with nodes, and takes `empty`, which may be null. Throws std::bad_alloc; it
  // keeps `empty` even then.
  Magazine* TradeForNodes(Magazine* empty) {
    bool first_chunk;
    {
      MutexLock lock(mutex_);
      if (empty != nullptr) KeepEmpty(empty);
      if (Magazine* const magazine = TakeNodes()) return magazine;
      first_chunk = chunks_ == 0;
    }
    // Without the lock, because the kernel clears the memory of a chunk; other threads need not
    // wait for that.
    Chunk* const chunk = MapChunk(/*all_at_once=*/!first_chunk);
    Chunk* unneeded = nullptr;
    Magazine* magazine;
    {
      MutexLock lock(mutex_);
      // The new chunk is the reserve until nodes are cut from it: other threads may have freed
      // nodes or mapped a chunk meanwhile. A listed chunk is unmapped only when its nodes come
      // back.
      if (chunk != nullptr) {
        if (spare_ == nullptr) {
          spare_ = chunk;
          ++chunks_;
        } else {
          unneeded = chunk;
        }
      }
      magazine = TakeNodes();
    }
    if (unneeded != nullptr) UnmapChunk(unneeded);
    if (magazine == nullptr) throw std::bad_alloc();
    return magazine;
  }

  // Takes a full magazine, or null. Returns an empty one, or null if the system has no memory for
  // one.
  Magazine* TradeForRoom(Magazine* full) {
    MutexLock lock(mutex_);
    if (full != nullptr) KeepFull(full);
    return TakeEmpty();
  }

  // Takes a magazine with any number of nodes.
  void TakeBack(Magazine* magazine) {
    MutexLock lock(mutex_);
    if (partial_ == nullptr) {
      partial_ = magazine;
    } else {
      const size_t moved = std::min(magazine->size, per_magazine_ - partial_->size);
      std::copy_n(magazine->nodes + magazine->size - moved, moved, partial_->nodes + partial_->size);
      partial_->size += moved;
      magazine->size -= moved;
      if (magazine->size > 0) {
        KeepFull(std::exchange(partial_, magazine));
      } else {
        KeepEmpty(magazine);
      }
    }
    if (partial_->size == per_magazine_) KeepFull(std::exchange(partial_, nullptr));
    if (partial_ != nullptr && partial_->size == 0) KeepEmpty(std::exchange(partial_, nullptr));
  }

  // Takes one node without a magazine.
  void TakeBackNode(void* node) {
    MutexLock lock(mutex_);
    ReturnToChunk(node);
  }

  void SetLimit(size_t bytes) {
    MutexLock lock(mutex_);
    limit_ = bytes / (per_magazine_ * node_bytes_);
  }

  void Trim(size_t keep_bytes) {
    MutexLock lock(mutex_);
    const size_t keep = keep_bytes / (per_magazine_ * node_bytes_);
    while (full_size_ > keep) {
      Magazine* const magazine = std::exchange(full_, full_->next);
      --full_size_;
      Empty(*magazine);
      KeepEmpty(magazine);
    }
    if (keep == 0 && partial_ != nullptr) {
      Empty(*partial_);
      KeepEmpty(std::exchange(partial_, nullptr));
    }
    if (empty_size_ > keep) FreeUnusedBlocks();
    if (spare_ != nullptr) Unmap(std::exchange(spare_, nullptr));
  }

  NodePoolStats Stats() {
    MutexLock lock(mutex_);
    NodePoolStats stats;
    stats.mapped_bytes = chunks_ * kChunkBytes;
    stats.depot_nodes = full_size_ * per_magazine_ + (partial_ != nullptr ? partial_->size : 0);
    stats.chunk_nodes = free_;
    stats.issued_nodes = cut_ - free_ - stats.depot_nodes;
    return stats;
  }

 protected:
  explicit Depot(NodeClass node_class)
      : node_bytes_(NodeBytes(node_class)),
        per_magazine_(NodesPerMagazine(node_class)),
        per_chunk_((kChunkBytes - node_bytes_) / node_bytes_),
        limit_(NodePool::kDefaultDepotLimit / (per_magazine_ * node_bytes_)) {}

 private:
  void KeepEmpty(Magazine* magazine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    assert(magazine->size == 0);
    magazine->next = std::exchange(empty_, magazine);
    ++empty_size_;
  }

  // Returns null if the system has no memory.
  Magazine* TakeEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (empty_ != nullptr) {
      --empty_size_;
      return std::exchange(empty_, empty_->next);
    }
    if (newest_block_ != nullptr) {
      if (Magazine* const magazine = newest_block_->MakeNext()) return magazine;
    }
    newest_block_ = new (std::nothrow) MagazineBlock;  // NOLINT: FreeUnusedBlocks deletes it.
    return newest_block_ == nullptr ? nullptr : newest_block_->MakeNext();
  }

  // Frees the blocks whose magazines are all here and empty.
  void FreeUnusedBlocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Magazine* at = empty_; at != nullptr; at = at->next) ++at->block->unused;
    Magazine* kept = nullptr;
    size_t kept_size = 0;
    Magazine* last_ones = nullptr;  // one magazine of each block that is freed
    while (empty_ != nullptr) {
      Magazine* const magazine = std::exchange(empty_, empty_->next);
      MagazineBlock& block = *magazine->block;
      if (block.unused < block.made) {
        magazine->next = std::exchange(kept, magazine);
        ++kept_size;
      } else if (reinterpret_cast<std::byte*>(magazine) == block.memory) {
        magazine->next = std::exchange(last_ones, magazine);
      }
    }
    empty_ = kept;
    empty_size_ = kept_size;
    for (const Magazine* at = empty_; at != nullptr; at = at->next) at->block->unused = 0;
    while (last_ones != nullptr) {
      MagazineBlock* const block = std::exchange(last_ones, last_ones->next)->block;
      if (block == newest_block_) newest_block_ = nullptr;
      delete block;  // NOLINT(cppcoreguidelines-owning-memory): TakeEmpty made it.
    }
  }

  void KeepFull(Magazine* magazine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    assert(magazine->size == per_magazine_);
    if (full_size_ >= limit_) {
      Empty(*magazine);
      KeepEmpty(magazine);
      return;
    }
    magazine->next = std::exchange(full_, magazine);
    ++full_size_;
  }

  // Returns null if there are no free nodes, or no memory for a magazine. Lists the reserve only if
  // it takes nodes from it.
  Magazine* TakeNodes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (full_ != nullptr) {
      --full_size_;
      return std::exchange(full_, full_->next);
    }
    if (partial_ != nullptr) return std::exchange(partial_, nullptr);
    if (available_ == nullptr && spare_ == nullptr) return nullptr;
    Magazine* const magazine = TakeEmpty();
    if (magazine == nullptr) return nullptr;
    if (available_ == nullptr) List(*std::exchange(spare_, nullptr));
    Fill(*magazine);
    return magazine;
  }

  // Takes nodes from chunks until the magazine is full or the chunks have no more. The chunks have
  // at least one.
  void Fill(Magazine& magazine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (magazine.size < per_magazine_ && available_ != nullptr) {
      Chunk& chunk = *available_;
      if (chunk.first_free != nullptr) {
        FreeNode* const node = chunk.first_free;
        Unpoison(node, sizeof(FreeNode));
        chunk.first_free = node->next;
        Poison(node, sizeof(FreeNode));
        --chunk.free;
        --free_;
        magazine.nodes[magazine.size++] = node;
      } else {
        ++chunk.cut;  // the head takes the place of the first one
        ++cut_;
        magazine.nodes[magazine.size++] = reinterpret_cast<std::byte*>(&chunk) + chunk.cut * node_bytes_;
      }
      if (chunk.first_free == nullptr && chunk.cut == per_chunk_) Unlist(chunk);
    }
  }

  void Empty(Magazine& magazine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (magazine.size > 0) ReturnToChunk(magazine.nodes[--magazine.size]);
  }

  void ReturnToChunk(void* node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Chunk& chunk = Chunk::Of(node);
    Unpoison(node, sizeof(FreeNode));
    chunk.first_free = ::new (node) FreeNode{chunk.first_free};
    Poison(node, sizeof(FreeNode));
    ++chunk.free;
    ++free_;
    if (!chunk.listed) List(chunk);
    if (chunk.free < chunk.cut) return;
    Unlist(chunk);
    free_ -= chunk.free;
    cut_ -= chunk.cut;
    // One chunk is kept, so that a single node that comes and goes does not map and unmap.
    if (spare_ != nullptr) {
      Unmap(&chunk);
    } else {
      spare_ = ::new (&chunk) Chunk();
    }
  }

  void Unmap(Chunk* chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    UnmapChunk(chunk);
    --chunks_;
  }

  void List(Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    chunk.listed = true;
    chunk.previous = nullptr;
    chunk.next = available_;
    if (available_ != nullptr) available_->previous = &chunk;
    available_ = &chunk;
  }

  void Unlist(Chunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    chunk.listed = false;
    (chunk.previous != nullptr ? chunk.previous->next : available_) = chunk.next;
    if (chunk.next != nullptr) chunk.next->previous = chunk.previous;
  }

  const size_t node_bytes_;
  const size_t per_magazine_;
  const size_t per_chunk_;

  Mutex mutex_;
  size_t limit_ ABSL_GUARDED_BY(mutex_);  // number of full magazines
  // Last in, first out: the nodes of the last magazine are most likely in a CPU cache.
  Magazine* full_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t full_size_ ABSL_GUARDED_BY(mutex_) = 0;
  Magazine* partial_ ABSL_GUARDED_BY(mutex_) = nullptr;  // neither full nor empty; from threads that ended
  Magazine* empty_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t empty_size_ ABSL_GUARDED_BY(mutex_) = 0;
  MagazineBlock* newest_block_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the next magazine is made here

  Chunk* available_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the listed chunks, which have free nodes and nodes in use
  Chunk* spare_ ABSL_GUARDED_BY(mutex_) = nullptr;      // the reserve: a chunk without cut nodes, not listed
  size_t chunks_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t cut_ ABSL_GUARDED_BY(mutex_) = 0;  // the sum over all chunks; free_ likewise
  size_t free_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Threads that use different classes do not share a cache line.
template <NodeClass kClass>
class alignas(kNodeAlignment) DepotOf : public Depot {
 public:
  DepotOf() : Depot(kClass) {}
};

// Lives as long as the process: static objects may free messages after everything else has ended.
Depot& DepotFor(NodeClass node_class) {
  struct Depots {
    DepotOf<NodeClass::k64> of_64;
    DepotOf<NodeClass::k128> of_128;
    DepotOf<NodeClass::k192> of_192;
  };
  static Depots& depots = *new Depots();
  switch (node_class) {
    case NodeClass::k64:
      return depots.of_64;
    case NodeClass::k128:
      return depots.of_128;
    case NodeClass::k192:
      break;
  }
  return depots.of_192;
}

}  // namespace

// Frees a thread's nodes when the thread ends.
struct ThreadExit {
  ThreadExit() = default;
  ThreadExit(const ThreadExit&) = delete;
  ThreadExit& operator=(const ThreadExit&) = delete;
  ~ThreadExit() {
    cache_of_this_thread.Flush();
    cache_of_this_thread.life_ = NodeCache::Life::kEnded;
  }

  static void Register() {
    static thread_local ThreadExit exit;
    [[maybe_unused]] ThreadExit* const made = &exit;
  }
};

static_assert(std::is_trivially_destructible_v<NodeCache>);
constinit thread_local NodeCache cache_of_this_thread{ForThread{}};

}  // namespace node_pool_internal

using node_pool_internal::Depot;
using node_pool_internal::DepotFor;
using node_pool_internal::Magazine;

void NodePool::SetDepotLimit(size_t bytes_per_class) {
  for (const NodeClass node_class : {NodeClass::k64, NodeClass::k128, NodeClass::k192}) {
    DepotFor(node_class).SetLimit(bytes_per_class);
  }
}

void NodePool::Trim(size_t keep_bytes_per_class) {
  for (const NodeClass node_class : {NodeClass::k64, NodeClass::k128, NodeClass::k192}) {
    DepotFor(node_class).Trim(keep_bytes_per_class);
  }
}

NodePoolStats NodePool::Stats(NodeClass node_class) { return DepotFor(node_class).Stats(); }

void NodeCache::Load(Shelf& shelf, NodeClass node_class, Magazine* magazine) {
  shelf.loaded = magazine;
  shelf.bottom = magazine->nodes;
  shelf.top = magazine->nodes + magazine->size;
  shelf.end = magazine->nodes + NodesPerMagazine(node_class);
}

Magazine* NodeCache::Unload(Shelf& shelf) {
  Magazine* const magazine = std::exchange(shelf.loaded, nullptr);
  if (magazine != nullptr) magazine->size = static_cast<size_t>(shelf.top - shelf.bottom);
  shelf.top = shelf.bottom = shelf.end = nullptr;
  return magazine;
}

bool NodeCache::MayKeepNodes() {
  if (life_ == Life::kUnused) {
    life_ = Life::kUsed;
    node_pool_internal::ThreadExit::Register();
  }
  return life_ == Life::kUsed;
}

void* NodeCache::AllocateSlowly(NodeClass node_class) {
  Depot& depot = DepotFor(node_class);
  if (!MayKeepNodes()) {
    Magazine* const magazine = depot.TradeForNodes(nullptr);
    void* const node = magazine->nodes[--magazine->size];
    depot.TakeBack(magazine);
    return node;
  }
  Shelf& shelf = shelves_[static_cast<size_t>(node_class)];
  Magazine* const used_up = Unload(shelf);
  if (shelf.reserve != nullptr && shelf.reserve->size > 0) {
    Load(shelf, node_class, std::exchange(shelf.reserve, used_up));
  } else {
    // `used_up` stays as room for the nodes that this thread frees. If there is no memory, the
    // shelf is empty but valid.
    Magazine* const empty = std::exchange(shelf.reserve, used_up);
    Load(shelf, node_class, depot.TradeForNodes(empty));
  }
  return *--shelf.top;
}

void NodeCache::FreeSlowly(NodeClass node_class, void* node) noexcept {
  Depot& depot = DepotFor(node_class);
  if (!MayKeepNodes()) {
    depot.TakeBackNode(node);
    return;
  }
  Shelf& shelf = shelves_[static_cast<size_t>(node_class)];
  Magazine* const filled = Unload(shelf);
  Magazine* room;
  if (shelf.reserve != nullptr && shelf.reserve->size == 0) {
    room = std::exchange(shelf.reserve, filled);
  } else {
    room = depot.TradeForRoom(std::exchange(shelf.reserve, filled));
  }
  if (room == nullptr) {
    depot.TakeBackNode(node);
    return;
  }
  Load(shelf, node_class, room);
  *shelf.top++ = node;
}

void NodeCache::Flush() noexcept {
  for (const NodeClass node_class : {NodeClass::k64, NodeClass::k128, NodeClass::k192}) {
    Shelf& shelf = shelves_[static_cast<size_t>(node_class)];
    Magazine* const loaded = Unload(shelf);
    Magazine* const reserve = std::exchange(shelf.reserve, nullptr);
    if (loaded != nullptr) DepotFor(node_class).TakeBack(loaded);
    if (reserve != nullptr) DepotFor(node_class).TakeBack(reserve);
  }
}

}  // namespace fraktor::inline v0::actor_internal
