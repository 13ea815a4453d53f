#include "fraktor/cluster/grain/visitor_count.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {
namespace {

TEST(VisitorCount, WaitsForNobodyIfNobodyIsInside) {
  VisitorCount count;
  count.Await();
  count.Leave(count.Enter());
  count.Await();
}

TEST(VisitorCount, WaitsForThoseWhoAreInside) {
  VisitorCount count;
  std::atomic<bool> has_left{false};
  const uint32_t visit = count.Enter();
  std::thread visitor([&] {
    // Long enough that nobody who does not wait would see it.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    has_left.store(true);
    count.Leave(visit);
  });
  count.Await();
  EXPECT_TRUE(has_left.load());
  visitor.join();
}

// There is always somebody inside, and the wait ends all the same.
TEST(VisitorCount, EndsItsWaitHoweverManyCome) {
  VisitorCount count;
  std::atomic<bool> is_over{false};
  uint32_t visit = count.Enter();
  std::thread visitors([&] {
    while (!is_over.load(std::memory_order_relaxed)) {
      const uint32_t next = count.Enter();
      count.Leave(visit);
      visit = next;
    }
    count.Leave(visit);
  });
  for (int i = 0; i < 100; ++i) count.Await();
  is_over.store(true);
  visitors.join();
}

// What was changed before the wait is seen by everybody who is inside after it.
TEST(VisitorCount, LetsNobodyBeInsideWhoHasSeenWhatWasThere) {
  constexpr int kVisitors = 3;
  constexpr int kVisits = 100'000;
  VisitorCount count;
  std::atomic<int> current{0};
  std::atomic<int> retired{-1};
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::atomic<int> visits{0};
  std::vector<std::thread> visitors;
  for (int i = 0; i < kVisitors; ++i) {
    visitors.emplace_back([&] {
      while (!is_over.load(std::memory_order_relaxed)) {
        const uint32_t visit = count.Enter();
        const int seen = current.load(std::memory_order_relaxed);
        if (seen <= retired.load(std::memory_order_acquire)) wrong.fetch_add(1);
        count.Leave(visit);
        visits.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int change = 1; visits.load(std::memory_order_relaxed) < kVisits; ++change) {
    current.store(change, std::memory_order_relaxed);
    count.Await();
    retired.store(change - 1, std::memory_order_release);
  }
  is_over.store(true);
  for (std::thread& visitor : visitors) visitor.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace fraktor
