// NodeCache and NodePool: memory for messages. Nodes of 64, 128 and 192 bytes come from caches of
// the threads, which trade whole batches. Internal to the runtime, except for SetDepotLimit, Trim
// and Stats.
//
//   NodePool::SetDepotLimit(size_t{16} << 20);           // keeps at most 16 MiB of free nodes per size
//   NodePool::Trim(0);                                   // returns free memory to the system now
//   NodePoolStats stats = NodePool::Stats(NodeClass::k64);
//
// A thread takes nodes from a magazine, an array of pointers to free nodes, and puts nodes into it.
// It has a second magazine in reserve. Only if both are empty, or both are full, it trades one with
// the depot of the process. So the nodes that a consumer frees reach the producers with one lock
// per magazine (256 nodes of 64 bytes), a thread that both takes and frees never locks, and a free
// node is not touched until it is used again. (The obvious alternative, lists that are linked
// through the free nodes, makes a producer wait for the consumer's cache line at each node.)
//
// Cost and limits:
// - In steady state nothing is allocated from the system.
// - A thread keeps at most two magazines of each class that it uses: 32 KiB of nodes for 64-byte
//   nodes. They go to the depot when the thread ends. Destructors of thread-local and static
//   objects that run later trade with the depot node by node.
// - The depot keeps up to kDefaultDepotLimit bytes of free nodes of each class. It returns the
//   others to the chunks (2 MiB) that they were cut from, and unmaps a chunk when all of its nodes
//   are back, except one chunk per class. SetDepotLimit() changes that limit, and Trim() applies
//   one.
// - Nodes in use have no limit; mailboxes have one. Allocate() throws std::bad_alloc if the system
//   has no more memory.
//
// Under AddressSanitizer free nodes are poisoned, so that the use of a message after its end is
// reported. Chunks are roots of the leak check, because messages point to memory that they own.
//
// Thread safety: a NodeCache belongs to its thread. Any thread may call NodePool.
#ifndef FRAKTOR_ACTOR_MESSAGE_INTERNAL_NODE_POOL_H_
#define FRAKTOR_ACTOR_MESSAGE_INTERNAL_NODE_POOL_H_

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define FRAKTOR_NODE_POOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FRAKTOR_NODE_POOL_ASAN 1
#endif
#endif
#ifdef FRAKTOR_NODE_POOL_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace fraktor::inline v0::actor_internal {

// The sizes of nodes.
enum class NodeClass : uint8_t { k64, k128, k192 };

inline constexpr size_t kNodeClasses = 3;
inline constexpr size_t kNodeAlignment = 64;

constexpr size_t NodeBytes(NodeClass node_class) { return (static_cast<size_t>(node_class) + 1) * 64; }

// The number of nodes of one trade: 16 KiB.
constexpr size_t NodesPerMagazine(NodeClass node_class) { return 16384 / NodeBytes(node_class); }

// The state of the pool for one class.
struct NodePoolStats {
  size_t mapped_bytes = 0;  // of all chunks
  size_t issued_nodes = 0;  // in use, or in the caches of threads
  size_t depot_nodes = 0;   // free, in magazines
  size_t chunk_nodes = 0;   // free, in chunks, and used before
};

namespace node_pool_internal {
struct Magazine;
struct ThreadExit;
struct ForThread {};  // restricts the constructor: there is one NodeCache per thread, and no other

inline void Poison([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef FRAKTOR_NODE_POOL_ASAN
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}
inline void Unpoison([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef FRAKTOR_NODE_POOL_ASAN
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}
}  // namespace node_pool_internal

// The depot of the process. Any thread may call every method.
class NodePool {
 public:
  static constexpr size_t kDefaultDepotLimit = size_t{64} << 20;

  NodePool() = delete;

  // Sets how many bytes of free nodes the depot keeps of each class, rounded down to whole
  // magazines. Takes effect with the next magazine that comes in, or with Trim().
  static void SetDepotLimit(size_t bytes_per_class);

  // Applies a limit once, now, and unmaps the unused chunks. The limit of SetDepotLimit stays.
  static void Trim(size_t keep_bytes_per_class);

  static NodePoolStats Stats(NodeClass node_class);
};

// The free nodes of one thread.
class NodeCache {
 public:
  constexpr explicit NodeCache(node_pool_internal::ForThread) {}
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  // Costs the computation of an address. Valid until the thread ends.
  static NodeCache& OfThisThread();

  // Returns NodeBytes(node_class) uninitialized bytes, aligned to kNodeAlignment. Throws
  // std::bad_alloc.
  void* Allocate(NodeClass node_class) {
    Shelf& shelf = shelves_[static_cast<size_t>(node_class)];
    void* node;
    if (shelf.top != shelf.bottom) [[likely]] {
      node = *--shelf.top;
    } else {
      node = AllocateSlowly(node_class);
    }
    node_pool_internal::Unpoison(node, NodeBytes(node_class));
    return node;
  }

  // Frees a node that Allocate(node_class) of any thread returned.
  void Free(NodeClass node_class, void* node) noexcept {
    Shelf& shelf = shelves_[static_cast<size_t>(node_class)];
    node_pool_internal::Poison(node, NodeBytes(node_class));
    if (shelf.top != shelf.end) [[likely]] {
      *shelf.top++ = node;
    } else {
      FreeSlowly(node_class, node);
    }
  }

  // Gives all free nodes to the depot. Call it before a long sleep. The end of the thread calls it.
  void Flush() noexcept;

 private:
  friend struct node_pool_internal::ThreadExit;

  // The magazine in use, as pointers into it, and the one in reserve, which is full, empty or
  // missing.
  struct Shelf {
    void** top = nullptr;     // past the last pointer
    void** bottom = nullptr;  // of the magazine in use
    void** end = nullptr;
    node_pool_internal::Magazine* loaded = nullptr;
    node_pool_internal::Magazine* reserve = nullptr;
  };

  // Whether the thread's exit handler is registered for this cache.
  enum class Life : uint8_t {
    kUnused,  // it is not registered
    kUsed,    // it is registered
    kEnded,   // it has run: the cache must not keep nodes any more
  };

  void* AllocateSlowly(NodeClass node_class);
  void FreeSlowly(NodeClass node_class, void* node) noexcept;
  bool MayKeepNodes();
  static void Load(Shelf& shelf, NodeClass node_class, node_pool_internal::Magazine* magazine);
  static node_pool_internal::Magazine* Unload(Shelf& shelf);

  Shelf shelves_[kNodeClasses];
  Life life_ = Life::kUnused;
};

namespace node_pool_internal {
// `constinit` and a trivial destructor avoid the check of a guard. The TLS model avoids the call
// that a shared library would make.
extern constinit thread_local NodeCache cache_of_this_thread __attribute__((tls_model("initial-exec")));
}  // namespace node_pool_internal

inline NodeCache& NodeCache::OfThisThread() { return node_pool_internal::cache_of_this_thread; }

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_MESSAGE_INTERNAL_NODE_POOL_H_
