// Memory for messages: nodes of 64, 128 and 192 bytes from caches of the threads, which trade whole batches.
//
//   NodeCache& cache = NodeCache::OfThisThread();        // a worker looks it up once and keeps it
//   void* node = cache.Allocate(NodeClass::k64);         // 64 bytes, aligned to 64
//   cache.Free(NodeClass::k64, node);                    // by any thread, into the cache of that thread
//
// A thread takes from and puts into a magazine, an array of pointers to free nodes, and has a second one in reserve.
// Only when both are used up, or both are full, it trades one at the depot of the process. So the nodes that a consumer
// frees reach the producers with one lock per magazine (256 nodes of 64 bytes), a thread that both takes and gives does
// not lock at all, and a free node is not touched until it is used again. (Lists that are linked through the free
// nodes, the obvious alternative, make a producer wait for the consumer's cache line at each node.)
//
// What it costs and keeps:
// - In steady state nothing is allocated from the system.
// - A thread keeps at most two magazines of each class it uses: 32 KiB of nodes for 64-byte nodes. What it has goes to
//   the depot when it ends. Memory that is used later than that, by destructors of thread-local and static objects, is
//   traded with the depot node by node.
// - The depot keeps up to kDefaultDepotLimit bytes of free nodes of each class, and takes back the rest: it returns
//   them to the chunks (2 MiB) that they were cut from, and unmaps a chunk all of whose nodes are back, except one per
//   class. SetDepotLimit() and Trim() change and apply that limit.
// - Nodes in use have no limit: it is the mailboxes that have one. Allocate() throws std::bad_alloc when the system
//   gives no more memory.
//
// Under AddressSanitizer free nodes are poisoned, so that a message that is used after its end is reported, and chunks
// are roots of the leak check, since messages point to what they own.
//
// Thread safety: a NodeCache belongs to its thread; NodePool is for all threads.
#ifndef FRAKTOR_ACTOR_MESSAGE_NODE_POOL_H_
#define FRAKTOR_ACTOR_MESSAGE_NODE_POOL_H_

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

namespace fraktor::inline v0 {

// The sizes of nodes.
enum class NodeClass : uint8_t { k64, k128, k192 };

inline constexpr size_t kNodeClasses = 3;
inline constexpr size_t kNodeAlignment = 64;

constexpr size_t NodeBytes(NodeClass node_class) { return (static_cast<size_t>(node_class) + 1) * 64; }

// How many nodes are traded at once: 16 KiB of them.
constexpr size_t NodesPerMagazine(NodeClass node_class) { return 16384 / NodeBytes(node_class); }

// What the pool has of one class.
struct NodePoolStats {
  size_t mapped_bytes = 0;  // chunks
  size_t issued_nodes = 0;  // in use, or in the caches of threads
  size_t depot_nodes = 0;   // free, in magazines
  size_t chunk_nodes = 0;   // free, in chunks, and cut already
};

namespace node_pool_internal {
struct Magazine;
struct ThreadExit;
struct ForThread {};  // says that there is one NodeCache per thread, and no other

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

// The depot of the process. Every method may be called by any thread.
class NodePool {
 public:
  static constexpr size_t kDefaultDepotLimit = size_t{64} << 20;

  NodePool() = delete;

  // How many bytes of free nodes the depot keeps of each class. Rounded down to whole magazines. Takes effect with the
  // next magazine that comes in, or by Trim().
  static void SetDepotLimit(size_t bytes_per_class);

  // Applies the limit now, and unmaps the chunks that are not used at all. `keep_bytes_per_class` is the limit for this
  // once.
  static void Trim(size_t keep_bytes_per_class);

  static NodePoolStats Stats(NodeClass node_class);
};

// The free nodes of one thread.
class NodeCache {
 public:
  constexpr explicit NodeCache(node_pool_internal::ForThread) {}
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  // The address is all that this costs. It is valid until the thread ends.
  static NodeCache& OfThisThread();

  // Returns NodeBytes(node_class) bytes, aligned to kNodeAlignment, with anything in them. Throws std::bad_alloc.
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

  // Takes back what Allocate(node_class) of any thread returned.
  void Free(NodeClass node_class, void* node) noexcept {
    Shelf& shelf = shelves_[static_cast<size_t>(node_class)];
    node_pool_internal::Poison(node, NodeBytes(node_class));
    if (shelf.top != shelf.end) [[likely]] {
      *shelf.top++ = node;
    } else {
      FreeSlowly(node_class, node);
    }
  }

  // Gives all free nodes to the depot: before a long sleep, and at the end of the thread, where it happens by itself.
  void Flush() noexcept;

 private:
  friend struct node_pool_internal::ThreadExit;

  // The magazine in use, taken apart, and the one in reserve, which is full or empty or missing.
  struct Shelf {
    void** top = nullptr;     // past the last pointer
    void** bottom = nullptr;  // of the magazine in use
    void** end = nullptr;
    node_pool_internal::Magazine* loaded = nullptr;
    node_pool_internal::Magazine* reserve = nullptr;
  };

  // What the thread has told the system about this cache.
  enum class Life : uint8_t {
    kUnused,  // the end of the thread will not call us
    kUsed,    // it will
    kEnded,   // it did: nothing may be kept any more
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
// `constinit` and a trivial destructor spare the look at a guard, and the model the call that a shared library would
// make.
extern constinit thread_local NodeCache cache_of_this_thread __attribute__((tls_model("initial-exec")));
}  // namespace node_pool_internal

inline NodeCache& NodeCache::OfThisThread() { return node_pool_internal::cache_of_this_thread; }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MESSAGE_NODE_POOL_H_
