#include "fraktor/actor/message/internal/node_pool.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "gtest/gtest.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor {

using actor_internal::kNodeAlignment;
using actor_internal::NodeBytes;
using actor_internal::NodeCache;
using actor_internal::NodeClass;
using actor_internal::NodePool;
using actor_internal::NodePoolStats;
using actor_internal::NodesPerMagazine;

namespace {

constexpr NodeClass kAllClasses[] = {NodeClass::k64, NodeClass::k128, NodeClass::k192};

// Starts with an empty pool, and checks that the test leaves an empty one.
class NodePoolTest : public ::testing::Test {
 protected:
  NodePoolTest() { Reset(); }
  ~NodePoolTest() override {
    Reset();
    for (const NodeClass node_class : kAllClasses) {
      EXPECT_EQ(NodePool::Stats(node_class).issued_nodes, 0u) << "a node of " << NodeBytes(node_class) << " bytes";
      EXPECT_EQ(NodePool::Stats(node_class).mapped_bytes, 0u);
    }
  }

  static void Reset() {
    NodeCache::OfThisThread().Flush();
    NodePool::SetDepotLimit(NodePool::kDefaultDepotLimit);
    NodePool::Trim(0);
  }

  static std::vector<void*> Allocate(NodeClass node_class, size_t count) {
    std::vector<void*> nodes;
    nodes.reserve(count);
    for (size_t i = 0; i < count; ++i) nodes.push_back(NodeCache::OfThisThread().Allocate(node_class));
    return nodes;
  }
  static void Free(NodeClass node_class, const std::vector<void*>& nodes) {
    for (void* node : nodes) NodeCache::OfThisThread().Free(node_class, node);
  }
};

TEST_F(NodePoolTest, GivesAlignedNodesThatDoNotOverlap) {
  for (const NodeClass node_class : kAllClasses) {
    const std::vector<void*> nodes = Allocate(node_class, 2000);
    for (void* node : nodes) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(node) % kNodeAlignment, 0u);
      std::memset(node, 0xab, NodeBytes(node_class));
    }
    const std::set<void*> sorted(nodes.begin(), nodes.end());
    ASSERT_EQ(sorted.size(), nodes.size());
    const std::byte* end = nullptr;
    for (void* node : sorted) {
      EXPECT_GE(static_cast<std::byte*>(node), end);
      end = static_cast<std::byte*>(node) + NodeBytes(node_class);
    }
    Free(node_class, nodes);
  }
}

TEST_F(NodePoolTest, GivesTheNodeThatWasFreedLast) {
  NodeCache& cache = NodeCache::OfThisThread();
  void* const node = cache.Allocate(NodeClass::k64);
  cache.Free(NodeClass::k64, node);
  void* const again = cache.Allocate(NodeClass::k64);
  EXPECT_EQ(again, node);
  cache.Free(NodeClass::k64, again);
}

TEST_F(NodePoolTest, UsesTheSameNodesAgainAndAgain) {
  for (const NodeClass node_class : kAllClasses) {
    Free(node_class, Allocate(node_class, 5000));
    const size_t mapped = NodePool::Stats(node_class).mapped_bytes;
    EXPECT_GT(mapped, 0u);
    for (int round = 0; round < 20; ++round) {
      Free(node_class, Allocate(node_class, 5000));
      const NodePoolStats stats = NodePool::Stats(node_class);
      EXPECT_EQ(stats.mapped_bytes, mapped);
      EXPECT_LE(stats.issued_nodes, 2 * NodesPerMagazine(node_class)) << "a thread keeps two magazines";
    }
  }
}

TEST_F(NodePoolTest, CountsWhatIsWhere) {
  constexpr size_t kPerMagazine = NodesPerMagazine(NodeClass::k64);
  const std::vector<void*> nodes = Allocate(NodeClass::k64, 1);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).issued_nodes, kPerMagazine);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).depot_nodes, 0u);
  NodeCache::OfThisThread().Flush();
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).issued_nodes, 1u);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).depot_nodes, kPerMagazine - 1);
  NodePool::Trim(0);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).depot_nodes, 0u);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).chunk_nodes, kPerMagazine - 1);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).mapped_bytes, size_t{2} << 20) << "one node is still in use";
  Free(NodeClass::k64, nodes);
}

TEST_F(NodePoolTest, KeepsTheLimitAndUnmapsTheRestAfterASpike) {
  constexpr size_t kLimit = size_t{2} << 20;
  constexpr size_t kSpike = 120'000;
  NodePool::SetDepotLimit(kLimit);
  for (const NodeClass node_class : kAllClasses) {
    const std::vector<void*> nodes = Allocate(node_class, kSpike);
    EXPECT_GT(NodePool::Stats(node_class).mapped_bytes, kSpike * NodeBytes(node_class));
    // In the order of allocation, as a mailbox is emptied.
    Free(node_class, nodes);
    const NodePoolStats stats = NodePool::Stats(node_class);
    EXPECT_LE(stats.depot_nodes * NodeBytes(node_class), kLimit);
    EXPECT_GE(stats.depot_nodes * NodeBytes(node_class), kLimit / 2);
    // The limit, the nodes of the thread, the chunks at the edges of both, and a spare chunk.
    EXPECT_LE(stats.mapped_bytes, kLimit + (size_t{4} << 20));
  }
}

TEST_F(NodePoolTest, UsesNodesThatWentBackToTheirChunks) {
  NodePool::SetDepotLimit(0);
  const std::vector<void*> first = Allocate(NodeClass::k64, 10'000);
  // Every other node, so that no chunk is completely free.
  std::vector<void*> even;
  std::vector<void*> odd;
  for (size_t i = 0; i < first.size(); ++i) (i % 2 == 0 ? even : odd).push_back(first[i]);
  Free(NodeClass::k64, even);
  NodeCache::OfThisThread().Flush();
  const size_t mapped = NodePool::Stats(NodeClass::k64).mapped_bytes;
  const std::vector<void*> second = Allocate(NodeClass::k64, even.size());
  EXPECT_EQ(std::set<void*>(second.begin(), second.end()), std::set<void*>(even.begin(), even.end()));
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).mapped_bytes, mapped);
  Free(NodeClass::k64, second);
  Free(NodeClass::k64, odd);
}

TEST_F(NodePoolTest, TakesBackWhatAThreadHadWhenItEnds) {
  std::vector<void*> nodes;
  std::thread thread([&nodes] {
    nodes = Allocate(NodeClass::k64, 1000);
    Free(NodeClass::k128, Allocate(NodeClass::k128, 1000));
  });
  thread.join();
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).issued_nodes, 1000u);
  EXPECT_EQ(NodePool::Stats(NodeClass::k128).issued_nodes, 0u);
  Free(NodeClass::k64, nodes);
}

TEST_F(NodePoolTest, DoesNotGrowWithTheNumberOfThreadsThatCameAndWent) {
  constexpr int kThreads = 1000;
  size_t mapped_after_ten = 0;
  std::vector<void*> left_behind;
  for (int i = 0; i < kThreads; ++i) {
    std::thread thread([&left_behind] {
      // Frees the nodes that the last thread allocated, and leaves its own to the next thread.
      Free(NodeClass::k64, left_behind);
      left_behind = Allocate(NodeClass::k64, 300);
    });
    thread.join();
    EXPECT_EQ(NodePool::Stats(NodeClass::k64).issued_nodes, 300u);
    if (i == 10) mapped_after_ten = NodePool::Stats(NodeClass::k64).mapped_bytes;
  }
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).mapped_bytes, mapped_after_ten);
  Free(NodeClass::k64, left_behind);
}

// A thread-local object that was made before the first use of the cache is destroyed after the
// cache has ended.
TEST_F(NodePoolTest, ServesDestructorsThatRunAfterTheCacheOfTheirThreadHasEnded) {
  struct Late {
    std::vector<void*> nodes;
    size_t* issued = nullptr;
    ~Late() {
      Free(NodeClass::k64, nodes);
      const std::vector<void*> more = Allocate(NodeClass::k64, 3);
      *issued = NodePool::Stats(NodeClass::k64).issued_nodes;
      Free(NodeClass::k64, more);
    }
  };
  size_t issued = 0;
  std::thread thread([&issued] {
    static thread_local Late late;
    late.issued = &issued;
    late.nodes = Allocate(NodeClass::k64, 700);
  });
  thread.join();
  EXPECT_EQ(issued, 3u);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).issued_nodes, 0u);
}

// Batches of nodes on their way from producers to consumers.
class Channel {
 public:
  void Put(std::vector<void*> batch) {
    MutexLock lock(mutex_);
    batches_.push_back(std::move(batch));
  }
  // Returns an empty batch if there is none at the moment.
  std::vector<void*> Take() {
    MutexLock lock(mutex_);
    if (batches_.empty()) return {};
    std::vector<void*> batch = std::move(batches_.back());
    batches_.pop_back();
    return batch;
  }

 private:
  Mutex mutex_;
  std::vector<std::vector<void*>> batches_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(NodePoolTest, RecyclesBetweenProducersAndConsumersWithoutLosingOrDoublingANode) {
  constexpr int kProducers = 2;
  constexpr int kConsumers = 2;
  constexpr uint64_t kBatches = 600;
  constexpr uint64_t kBatchSize = 100;
  // A small limit, so that nodes go to the chunks and back as well.
  NodePool::SetDepotLimit(size_t{64} << 10);
  Channel channel;
  std::atomic<uint64_t> received{0};  // the joins below order it
  std::atomic<uint64_t> sum{0};
  std::vector<std::thread> threads;
  for (int p = 0; p < kProducers; ++p) {
    threads.emplace_back([&channel, p] {
      for (uint64_t b = 0; b < kBatches; ++b) {
        std::vector<void*> batch = Allocate(NodeClass::k64, kBatchSize);
        for (uint64_t i = 0; i < kBatchSize; ++i) {
          // Each word names its writer: a node that two threads have would show.
          const uint64_t number = (static_cast<uint64_t>(p) * kBatches + b) * kBatchSize + i;
          auto* const words = static_cast<uint64_t*>(batch[i]);
          for (int w = 0; w < 8; ++w) words[w] = number;
        }
        channel.Put(std::move(batch));
      }
    });
  }
  for (int c = 0; c < kConsumers; ++c) {
    threads.emplace_back([&] {
      while (received.load() < kProducers * kBatches * kBatchSize) {
        const std::vector<void*> batch = channel.Take();
        if (batch.empty()) std::this_thread::yield();
        for (void* node : batch) {
          const auto* const words = static_cast<const uint64_t*>(node);
          for (int w = 1; w < 8; ++w) ASSERT_EQ(words[w], words[0]);
          sum.fetch_add(words[0]);
        }
        Free(NodeClass::k64, batch);
        received.fetch_add(batch.size());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  constexpr uint64_t kTotal = kProducers * kBatches * kBatchSize;
  EXPECT_EQ(received.load(), kTotal);
  EXPECT_EQ(sum.load(), kTotal * (kTotal - 1) / 2);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).issued_nodes, 0u);
}

#ifdef FRAKTOR_NODE_POOL_ASAN
TEST_F(NodePoolTest, PoisonsFreeNodes) {
  NodeCache& cache = NodeCache::OfThisThread();
  void* const neighbour = cache.Allocate(NodeClass::k128);  // keeps the chunk mapped
  auto* const node = static_cast<volatile char*>(cache.Allocate(NodeClass::k128));
  node[127] = 1;
  cache.Free(NodeClass::k128, const_cast<char*>(node));
  EXPECT_DEATH(node[0] = 1, "use-after-poison");
  EXPECT_DEATH(node[127] = 1, "use-after-poison");
  // Also after it is back in its chunk.
  cache.Flush();
  NodePool::Trim(0);
  EXPECT_DEATH(node[0] = 1, "use-after-poison");
  EXPECT_DEATH(node[127] = 1, "use-after-poison");
  cache.Free(NodeClass::k128, neighbour);
}
#endif

}  // namespace
}  // namespace fraktor
