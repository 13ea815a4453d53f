#include "fraktor/cluster/grain/grain_gate.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor {
namespace {

// CLU-8: what a batch has brought is in the mailbox before whoever ends the grain goes on. In either phase.
TEST(GrainGate, AwaitsABatchThatHasBegun) {
  GrainGate& gate = *GrainGate::Make("a:1").value();
  for (int i = 0; i < 4; ++i) {
    const uint32_t batch = gate.BeginBatch();
    // Not atomic: the end of the batch releases it.
    bool is_delivered = false;
    std::atomic<bool> has_begun{false};  // Only a flag.
    std::thread router([&] {
      has_begun.store(true, std::memory_order_relaxed);
      gate.AwaitEntering();
      EXPECT_TRUE(is_delivered);
    });
    while (!has_begun.load(std::memory_order_relaxed)) std::this_thread::yield();
    // Those that come and go meanwhile do not count for it.
    for (int other = 0; other < 100; ++other) gate.EndBatch(gate.BeginBatch());
    is_delivered = true;
    gate.EndBatch(batch);
    router.join();
    if (i % 2 == 0) gate.AwaitEntering();
  }
}

// Batches look for a grain and deliver to the actor that they find; the router gives one up, waits, and ends it: nobody
// delivers to one that has ended. There is always a batch under way, and the router is not held up for ever.
TEST(GrainGate, LetsNobodyComeBehindTheEndOfAGrain) {
  constexpr int kLives = 1000;
  constexpr int kReaders = 3;
  GrainGate& gate = *GrainGate::Make("a:1").value();
  struct Placement {
    Mutex mutex;
    int life ABSL_GUARDED_BY(mutex) = 0;
  } placement;
  const auto current = [&placement] {
    MutexLock lock(placement.mutex);
    return placement.life;
  };
  // One for each life. Not atomic: ThreadSanitizer sees who comes too late, too.
  struct Actor {
    bool is_over = false;
  };
  std::vector<Actor> actors(kLives + 1);
  std::atomic<int> late{0};   // Only a count.
  std::atomic<int> ready{0};  // Only a count.
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      ready.fetch_add(1, std::memory_order_relaxed);
      for (int life = 0; life < kLives;) {
        const uint32_t batch = gate.BeginBatch();
        life = current();
        std::this_thread::yield();
        if (actors[life].is_over) late.fetch_add(1, std::memory_order_relaxed);
        gate.EndBatch(batch);
      }
    });
  }
  while (ready.load(std::memory_order_relaxed) < kReaders) std::this_thread::yield();
  for (int life = 0; life < kLives; ++life) {
    {
      MutexLock lock(placement.mutex);
      placement.life = life + 1;
    }
    gate.AwaitEntering();
    actors[life].is_over = true;
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(late.load(), 0);
}

}  // namespace
}  // namespace fraktor
