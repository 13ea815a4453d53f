// Counts allocations from the system, by operator new and by malloc, in every library.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/internal/inbox.h"
#include "fraktor/utils/testing/counted_allocations.h"

namespace fraktor {

using actor_internal::NodeCache;
using actor_internal::NodeClass;
using actor_internal::NodePool;
using actor_internal::NodesPerMagazine;
using utils_internal::InboxNode;

namespace {

template <size_t kBytes>
struct Sized {
  std::array<unsigned char, kBytes> bytes;
};

class SteadyState : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
  }
};

TEST_F(SteadyState, IsWatchedByACounterThatCounts) {
  EndEnvelope(NodeCache::OfThisThread(), MakeEnvelope<Sized<1>>(ActorRef()).release());
  // Volatile, so that the compiler does not remove the pair.
  const int64_t counted = AllocationsIn([] {
    void* volatile memory = std::malloc(10);
    std::free(memory);
    int* volatile number = new int(1);
    delete number;
    EndEnvelope(NodeCache::OfThisThread(), MakeEnvelope<Sized<89>>(ActorRef()).release());
  });
  EXPECT_EQ(counted, 3);
}

template <class M>
void Burst(size_t messages) {
  NodeCache& cache = NodeCache::OfThisThread();
  InboxNode* list = nullptr;
  for (size_t i = 0; i < messages; ++i) {
    // One message in sixteen is sampled.
    EnvelopePtr envelope = i % 16 == 0 ? MakeTracedEnvelope<M>(cache, ActorRef(), MessageTrace{}, M{})
                                       : MakeEnvelope<M>(cache, ActorRef(), M{});
    envelope->next = std::exchange(list, envelope.get());
    static_cast<void>(envelope.release());
  }
  while (list != nullptr) {
    Envelope* const envelope = Envelope::Of(list);
    list = envelope->next;
    EndEnvelope(cache, envelope);
  }
}

void BurstOfEachSize() {
  Burst<Sized<1>>(3000);
  Burst<Sized<24>>(3000);
  Burst<Sized<25>>(3000);
  Burst<Sized<49>>(3000);
  Burst<Sized<88>>(3000);
}

TEST_F(SteadyState, AllocatesNothingForMessagesUpTo88Bytes) {
  BurstOfEachSize();
  EXPECT_EQ(AllocationsIn([] {
              for (int round = 0; round < 50; ++round) BurstOfEachSize();
            }),
            0);
}

// A consumer that falls behind frees many nodes at once and needs room for them. That room comes in
// a few allocations, and is freed with the nodes.
TEST_F(SteadyState, AllocatesSeldomWhenMessagesPileUp) {
  constexpr size_t kMessages = 100'000;
  const auto pile_up = [] {
    NodeCache& cache = NodeCache::OfThisThread();
    InboxNode* list = nullptr;
    for (size_t i = 0; i < kMessages; ++i) {
      Envelope* const envelope = MakeEnvelope<Sized<24>>(cache, ActorRef(), Sized<24>{}).release();
      envelope->next = std::exchange(list, envelope);
    }
    while (list != nullptr) {
      Envelope* const envelope = Envelope::Of(list);
      list = envelope->next;
      EndEnvelope(cache, envelope);
    }
  };
  for (int round = 0; round < 3; ++round) {
    NodeCache::OfThisThread().Flush();
    NodePool::Trim(0);
    const int64_t counted = AllocationsIn(pile_up);
    EXPECT_GE(counted, 1) << "Trim has left something, round " << round;
    EXPECT_LE(counted, int64_t{kMessages / NodesPerMagazine(NodeClass::k64) / 50}) << round;
  }
}

// One thread makes messages, another ends them; the nodes come back through the depot.
TEST_F(SteadyState, AllocatesNothingWhenNodesGoFromThreadToThread) {
  constexpr uint64_t kRounds = 200;
  constexpr uint64_t kWarm = 20;
  constexpr size_t kBatch = 1000;
  std::vector<Envelope*> batch(kBatch);
  std::atomic<uint64_t> made{0};   // release by this thread, acquire by the other: the batch is full
  std::atomic<uint64_t> ended{0};  // release by the other, acquire by this thread: the batch may be filled
  std::thread consumer([&] {
    NodeCache& cache = NodeCache::OfThisThread();
    for (uint64_t round = 1; round <= kRounds; ++round) {
      while (made.load(std::memory_order_acquire) < round) std::this_thread::yield();
      for (Envelope* envelope : batch) EndEnvelope(cache, envelope);
      ended.store(round, std::memory_order_release);
    }
  });
  const auto run = [&](uint64_t from, uint64_t to) {
    NodeCache& cache = NodeCache::OfThisThread();
    for (uint64_t round = from; round <= to; ++round) {
      for (Envelope*& envelope : batch) envelope = MakeEnvelope<Sized<24>>(cache, ActorRef(), Sized<24>{}).release();
      made.store(round, std::memory_order_release);
      while (ended.load(std::memory_order_acquire) < round) std::this_thread::yield();
    }
  };
  run(1, kWarm);
  const size_t mapped = NodePool::Stats(NodeClass::k64).mapped_bytes;
  EXPECT_EQ(AllocationsIn([&] { run(kWarm + 1, kRounds); }), 0);
  EXPECT_EQ(NodePool::Stats(NodeClass::k64).mapped_bytes, mapped);
  consumer.join();
}

}  // namespace
}  // namespace fraktor
