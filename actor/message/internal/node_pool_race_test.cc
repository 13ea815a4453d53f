// The node pool when the system is slow or has no memory. This program has its own `madvise` and
// its own `operator new`, so a test decides what happens while a thread maps a chunk, and which
// allocation fails.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/message/internal/node_pool.h"

namespace {

// Runs once, on the thread that maps a chunk, which holds no lock then. Threads that a test starts
// do not set it.
std::function<void()> while_mapping;  // NOLINT(cert-err58-cpp)
bool has_no_memory = false;

}  // namespace

// The pool calls it when it maps any chunk but the first.
extern "C" int madvise(void* address, size_t length, int advice) noexcept {
  if (while_mapping) std::exchange(while_mapping, nullptr)();
  return static_cast<int>(syscall(SYS_madvise, address, length, advice));
}

// The pool makes magazines with it.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return has_no_memory ? nullptr : std::malloc(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void* operator new(size_t size) {
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

namespace fraktor {

using actor_internal::NodeBytes;
using actor_internal::NodeCache;
using actor_internal::NodeClass;
using actor_internal::NodePool;

namespace {

constexpr NodeClass kClass = NodeClass::k64;
constexpr size_t kChunkBytes = size_t{2} << 20;
constexpr size_t kNodesPerChunk = kChunkBytes / NodeBytes(kClass) - 1;  // the head takes the place of one node

std::vector<void*> Allocate(size_t count) {
  std::vector<void*> nodes;
  nodes.reserve(count);
  for (size_t i = 0; i < count; ++i) nodes.push_back(NodeCache::OfThisThread().Allocate(kClass));
  return nodes;
}

void Free(const std::vector<void*>& nodes) {
  for (void* const node : nodes) NodeCache::OfThisThread().Free(kClass, node);
}

// Moves the last `count` nodes to a vector of their own.
std::vector<void*> SplitOff(std::vector<void*>& nodes, size_t count) {
  std::vector<void*> tail(nodes.end() - static_cast<std::ptrdiff_t>(count), nodes.end());
  nodes.resize(nodes.size() - count);
  return tail;
}

size_t MappedBytes() { return NodePool::Stats(kClass).mapped_bytes; }

// Begins with a pool whose only chunk has no free nodes, so that the next node needs another chunk.
class NodePoolRaceTest : public ::testing::Test {
 protected:
  NodePoolRaceTest() {
    NodePool::Trim(0);
    EXPECT_EQ(MappedBytes(), 0u);
    nodes_ = Allocate(kNodesPerChunk);
    EXPECT_EQ(MappedBytes(), kChunkBytes);
    EXPECT_EQ(NodePool::Stats(kClass).issued_nodes, kNodesPerChunk);
  }

  // Frees all nodes and unmaps all unused chunks.
  void ExpectThatTrimUnmapsEverything() {
    Free(std::exchange(nodes_, {}));
    NodeCache::OfThisThread().Flush();
    NodePool::Trim(0);
    EXPECT_EQ(NodePool::Stats(kClass).issued_nodes, 0u);
    EXPECT_EQ(MappedBytes(), 0u);
  }

  void Add(const std::vector<void*>& more) { nodes_.insert(nodes_.end(), more.begin(), more.end()); }

  std::vector<void*> nodes_;  // in use
};

TEST_F(NodePoolRaceTest, UnmapsAChunkThatWasNotNeededSinceNodesWereFreedMeanwhile) {
  bool has_run = false;
  const std::vector<void*> freed = SplitOff(nodes_, 600);  // two full magazines and a partial one
  while_mapping = [&] {
    std::thread([&] { Free(freed); }).join();
    has_run = true;
  };
  Add(Allocate(1));
  ASSERT_TRUE(has_run);
  EXPECT_EQ(MappedBytes(), 2 * kChunkBytes) << "the new chunk is kept in reserve";
  ExpectThatTrimUnmapsEverything();
}

TEST_F(NodePoolRaceTest, UnmapsAChunkThatTwoThreadsMappedAtOnce) {
  bool has_run = false;
  while_mapping = [&] {
    std::thread([&] { Add(Allocate(1)); }).join();
    has_run = true;
  };
  Add(Allocate(1));
  ASSERT_TRUE(has_run);
  ExpectThatTrimUnmapsEverything();
}

TEST_F(NodePoolRaceTest, UsesTheChunkThatWasNotNeededBeforeItMapsAnother) {
  bool has_run = false;
  const std::vector<void*> freed = SplitOff(nodes_, 1);
  while_mapping = [&] {
    std::thread([&] { Free(freed); }).join();
    has_run = true;
  };
  Add(Allocate(1));  // the one that was freed meanwhile
  ASSERT_TRUE(has_run);
  Add(Allocate(kNodesPerChunk));
  EXPECT_EQ(MappedBytes(), 2 * kChunkBytes);
  ExpectThatTrimUnmapsEverything();
}

TEST_F(NodePoolRaceTest, UnmapsAtOnceWhatWasNotNeededIfThereIsAReserveAlready) {
  bool has_run = false;
  NodePool::SetDepotLimit(0);
  const std::vector<void*> freed = SplitOff(nodes_, 1);
  while_mapping = [&] {
    // Maps a second chunk and frees all of its nodes, which makes that chunk the reserve.
    std::thread([&] { Free(Allocate(1)); }).join();
    std::thread([&] { Free(freed); }).join();
    has_run = true;
  };
  Add(Allocate(1));  // the one that was freed meanwhile, not one of the third chunk
  ASSERT_TRUE(has_run);
  EXPECT_EQ(MappedBytes(), 2 * kChunkBytes);
  NodePool::SetDepotLimit(NodePool::kDefaultDepotLimit);
  ExpectThatTrimUnmapsEverything();
}

TEST(NodePoolWithoutMemoryTest, UnmapsAChunkThatHadNoMagazineForItsNodes) {
  NodeCache::OfThisThread().Flush();
  NodePool::Trim(0);
  ASSERT_EQ(MappedBytes(), 0u);
  has_no_memory = true;
  EXPECT_THROW(Allocate(1), std::bad_alloc);
  has_no_memory = false;
  EXPECT_EQ(MappedBytes(), kChunkBytes) << "in reserve";
  NodePool::Trim(0);
  EXPECT_EQ(MappedBytes(), 0u);
}

}  // namespace
}  // namespace fraktor
