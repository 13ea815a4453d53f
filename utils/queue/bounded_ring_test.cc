#include "fraktor/utils/queue/bounded_ring.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

template <typename T>
std::unique_ptr<BoundedRing<T>> MakeRing(size_t capacity) {
  absl::StatusOr<std::unique_ptr<BoundedRing<T>>> ring = BoundedRing<T>::Create(capacity);
  EXPECT_TRUE(ring.ok()) << ring.status();
  return *std::move(ring);
}

TEST(BoundedRing, RefusesACapacityThatIsNotASensiblePowerOfTwo) {
  for (const size_t capacity : {size_t{0}, size_t{1}, size_t{3}, size_t{100}, size_t{1} << 25, ~size_t{0}}) {
    const absl::Status status = BoundedRing<int>::Create(capacity).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << capacity;
    EXPECT_NE(std::string(status.message()).find(std::to_string(capacity)), std::string::npos) << status;
  }
  EXPECT_EQ(MakeRing<int>(2)->capacity(), 2u);
  EXPECT_EQ(MakeRing<int>(1024)->capacity(), 1024u);
}

TEST(BoundedRing, GivesElementsInOrderRoundAndRound) {
  auto ring = MakeRing<int>(4);
  for (int i = 0; i < 100; i += 3) {
    for (int k = 0; k < 3; ++k) EXPECT_TRUE(ring->TryPush(i + k));
    EXPECT_EQ(ring->SizeHint(), 3u);
    for (int k = 0; k < 3; ++k) EXPECT_EQ(ring->TryPop(), i + k);
    EXPECT_EQ(ring->TryPop(), std::nullopt);
  }
}

TEST(BoundedRing, HoldsExactlyItsCapacityAndLeavesARefusedElementAlone) {
  auto ring = MakeRing<std::unique_ptr<int>>(4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring->TryPush(std::make_unique<int>(i)));
  auto refused = std::make_unique<int>(4);
  EXPECT_FALSE(ring->TryPush(std::move(refused)));
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(**ring->TryPop(), 0);
  EXPECT_TRUE(ring->TryPush(std::move(refused)));
  EXPECT_EQ(refused, nullptr);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(**ring->TryPop(), i);
}

TEST(BoundedRing, DestroysWhatIsLeft) {
  auto counted = std::make_shared<int>(0);
  {
    auto ring = MakeRing<std::shared_ptr<int>>(8);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(ring->TryPush(std::shared_ptr<int>(counted)));
    ring->TryPop();
    EXPECT_EQ(counted.use_count(), 5);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

// T is a std::unique_ptr for the raw storage, and an integer for the plain storage.
template <typename T>
void Stress(size_t capacity) {
  constexpr int kThreads = 2;
  constexpr uint64_t kPerThread = 15'000;
  const auto make = [](uint64_t value) {
    if constexpr (std::is_integral_v<T>) {
      return T{value};
    } else {
      return std::make_unique<uint64_t>(value);
    }
  };
  const auto read = [](const T& element) {
    if constexpr (std::is_integral_v<T>) {
      return element;
    } else {
      return *element;
    }
  };
  auto ring = MakeRing<T>(capacity);
  std::atomic<uint64_t> popped{0}, sum{0}, out_of_order{0};
  std::vector<std::thread> threads;
  for (int producer = 0; producer < kThreads; ++producer) {
    threads.emplace_back([&, producer] {
      for (uint64_t i = 1; i <= kPerThread; ++i) {
        T element = make(static_cast<uint64_t>(producer) << 32 | i);
        while (!ring->TryPush(std::move(element))) std::this_thread::yield();
      }
    });
  }
  for (int consumer = 0; consumer < kThreads; ++consumer) {
    threads.emplace_back([&] {
      std::array<uint64_t, kThreads> last{};
      while (popped.load(std::memory_order_relaxed) < kThreads * kPerThread) {
        std::optional<T> element = ring->TryPop();
        if (!element.has_value()) {
          std::this_thread::yield();
          continue;
        }
        const uint64_t value = read(*element);
        if ((value & 0xffffffff) <= last[value >> 32]) out_of_order.fetch_add(1);
        last[value >> 32] = value & 0xffffffff;
        sum.fetch_add(value & 0xffffffff, std::memory_order_relaxed);
        popped.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(popped.load(), kThreads * kPerThread);
  EXPECT_EQ(sum.load(), kThreads * kPerThread * (kPerThread + 1) / 2);
  EXPECT_EQ(out_of_order.load(), 0u);
  EXPECT_EQ(ring->SizeHint(), 0u);
}

TEST(BoundedRingStress, DeliversEachPointerOnceAndKeepsEachProducersOrder) { Stress<std::unique_ptr<uint64_t>>(8); }
TEST(BoundedRingStress, DeliversEachIntegerOnceAndKeepsEachProducersOrder) { Stress<uint64_t>(2); }

}  // namespace
}  // namespace fraktor
