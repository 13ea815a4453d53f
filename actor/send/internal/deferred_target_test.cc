#include "fraktor/actor/send/internal/deferred_target.h"

#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor::actor_internal {
namespace {

// The code compares targets but never dereferences them, so any addresses do.
class DeferredTargetTest : public testing::TestWithParam<DeferralOrder> {
 protected:
  ActorSlot* Target(size_t number) { return reinterpret_cast<ActorSlot*>(&places_[number]); }

  DeferredTarget deferred_{BestDeferralOrder() == DeferralOrder::kBarrier ? GetParam() : DeferralOrder::kExchange};

 private:
  struct alignas(64) Place {};
  Place places_[4];
};

std::string NameOf(const testing::TestParamInfo<DeferralOrder>& order) {
  return order.param == DeferralOrder::kBarrier ? "Barrier" : "Exchange";
}

TEST_P(DeferredTargetTest, IsEmptyAtFirst) {
  EXPECT_TRUE(deferred_.empty());
  EXPECT_EQ(deferred_.Peek(), nullptr);
  EXPECT_EQ(deferred_.Take(), nullptr);
  EXPECT_EQ(deferred_.Steal(nullptr), nullptr);
  EXPECT_EQ(deferred_.Steal(Target(0)), nullptr);
}

TEST_P(DeferredTargetTest, GivesBackWhatWasPut) {
  for (size_t i = 0; i < 3; ++i) {
    deferred_.Put(Target(i));
    EXPECT_FALSE(deferred_.empty());
    EXPECT_EQ(deferred_.Peek(), Target(i));
    EXPECT_EQ(deferred_.Take(), Target(i));
    EXPECT_TRUE(deferred_.empty());
    EXPECT_EQ(deferred_.Peek(), nullptr);
    EXPECT_EQ(deferred_.Take(), nullptr);
  }
}

TEST_P(DeferredTargetTest, GivesWhatIsStolenToTheThiefOnly) {
  deferred_.Put(Target(0));
  EXPECT_EQ(deferred_.Steal(Target(0)), Target(0));
  EXPECT_EQ(deferred_.Take(), nullptr);
  EXPECT_TRUE(deferred_.empty());
}

TEST_P(DeferredTargetTest, IsStolenFromOnceBeforeTheWorkerLooks) {
  deferred_.Put(Target(0));
  EXPECT_EQ(deferred_.Steal(Target(0)), Target(0));
  EXPECT_EQ(deferred_.Steal(Target(0)), nullptr);
  EXPECT_FALSE(deferred_.empty()) << "the worker has not looked yet";
  EXPECT_EQ(deferred_.Take(), nullptr);
}

TEST_P(DeferredTargetTest, KeepsWhatTheThiefHasNotSeen) {
  deferred_.Put(Target(0));
  EXPECT_EQ(deferred_.Steal(Target(1)), nullptr);
  EXPECT_EQ(deferred_.Peek(), Target(0));
  EXPECT_EQ(deferred_.Take(), Target(0));
}

TEST_P(DeferredTargetTest, KeepsNothingForAThiefThatIsLate) {
  deferred_.Put(Target(0));
  EXPECT_EQ(deferred_.Take(), Target(0));
  EXPECT_EQ(deferred_.Steal(Target(0)), nullptr);
  deferred_.Put(Target(1));
  EXPECT_EQ(deferred_.Steal(Target(0)), nullptr);
  EXPECT_EQ(deferred_.Take(), Target(1));
}

TEST_P(DeferredTargetTest, GoesOnAfterATheft) {
  for (int i = 0; i < 3; ++i) {
    deferred_.Put(Target(0));
    EXPECT_EQ(deferred_.Steal(Target(0)), Target(0));
    EXPECT_EQ(deferred_.Take(), nullptr);
    // The same target is put again after the theft.
    deferred_.Put(Target(0));
    EXPECT_EQ(deferred_.Take(), Target(0));
    deferred_.Put(Target(2));
    EXPECT_EQ(deferred_.Steal(Target(2)), Target(2));
    EXPECT_EQ(deferred_.Take(), nullptr);
  }
}

// Either the worker or a thief gets each target, exactly once. That thread sees what the worker
// wrote before, and may write to the target. The worker puts the same few targets again and again,
// like actors that send to each other.
TEST_P(DeferredTargetTest, GivesEachTargetToExactlyOneUnderContention) {
  constexpr int kTargets = 3;
  constexpr int kThieves = 2;
  constexpr uint64_t kPuts = 5'000;
  // Not atomic: only the thread that has got the target uses it, so ThreadSanitizer reports two
  // owners.
  struct alignas(64) Owned {
    uint64_t number = 0;
    // The release of the thief, when it is done, pairs with the acquire of the worker, which puts
    // the target again.
    std::atomic<bool> free{true};
  };
  const auto owned = std::make_unique<Owned[]>(kTargets);
  const auto as_slot = [&](size_t i) { return reinterpret_cast<ActorSlot*>(&owned[i]); };
  const auto obtain = [](ActorSlot* slot, uint64_t& sum) {
    auto& mine = *reinterpret_cast<Owned*>(slot);
    sum += mine.number;
    mine.number = 0;  // So that who obtains it twice adds nothing.
    mine.free.store(true, std::memory_order_release);
  };

  std::atomic<bool> over{false};
  uint64_t thief_sums[kThieves] = {};
  std::atomic<uint64_t> thefts{0};
  std::vector<std::thread> thieves;
  for (uint64_t& sum : thief_sums) {
    thieves.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
        ActorSlot* const seen = deferred_.Peek();
        if (seen == nullptr) {
          std::this_thread::yield();
          continue;
        }
        if (ActorSlot* const slot = deferred_.Steal(seen)) {
          EXPECT_EQ(slot, seen);
          thefts.fetch_add(1, std::memory_order_relaxed);
          obtain(slot, sum);
        }
      }
    });
  }
  uint64_t sum = 0;
  uint64_t taken = 0;
  for (uint64_t i = 1; i <= kPuts || thefts.load(std::memory_order_relaxed) == 0; ++i) {
    const size_t target = i % kTargets;
    while (!owned[target].free.exchange(false, std::memory_order_acquire)) std::this_thread::yield();
    owned[target].number = 1;
    deferred_.Put(as_slot(target));
    // Sometimes the handler takes longer.
    if (i % 8 == 0) std::this_thread::yield();
    if (ActorSlot* const slot = deferred_.Take()) {
      EXPECT_EQ(slot, as_slot(target));
      ++taken;
      obtain(slot, sum);
    }
    if (i >= kPuts && thefts.load(std::memory_order_relaxed) > 0) {
      over.store(true, std::memory_order_relaxed);
      for (std::thread& thief : thieves) thief.join();
      for (const uint64_t stolen : thief_sums) sum += stolen;
      EXPECT_EQ(sum, i);
      EXPECT_EQ(taken + thefts.load(), i);
      EXPECT_TRUE(deferred_.empty());
      EXPECT_EQ(deferred_.Peek(), nullptr);
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BothOrders, DeferredTargetTest,
                         testing::Values(DeferralOrder::kExchange, DeferralOrder::kBarrier), NameOf);

// On a kernel without membarrier, kBarrier steals nothing, and the runtime uses kExchange. The
// tests above do the same.
TEST(BestDeferralOrder, IsTheSameEachTime) {
  const DeferralOrder order = BestDeferralOrder();
  std::cout << "this kernel " << (order == DeferralOrder::kBarrier ? "supports" : "does not support")
            << " membarrier\n";
  RecordProperty("membarrier", order == DeferralOrder::kBarrier ? "yes" : "no");
  EXPECT_EQ(BestDeferralOrder(), order);
}

}  // namespace
}  // namespace fraktor::actor_internal
