#include "fraktor/utils/queue/internal/work_stealing_ring.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fraktor {

using utils_internal::WorkStealingRing;

namespace {

struct Item {
  int number = 0;
  // Ordinary memory: ThreadSanitizer reports two threads that got the same item, or a thread that
  // got it before it was made.
  bool made = false;
  int taken = 0;
};

std::vector<Item> MakeItems(int count) {
  std::vector<Item> items(count);
  for (int i = 0; i < count; ++i) items[i].number = i;
  return items;
}

using Ring = WorkStealingRing<Item*, 8>;

TEST(WorkStealingRing, GivesItsOwnerTheOldestFirst) {
  std::vector<Item> items = MakeItems(100);
  Ring ring;
  EXPECT_EQ(ring.TryPop(), nullptr);
  for (int i = 0; i + 2 < 100; i += 3) {
    for (int k = 0; k < 3; ++k)
      EXPECT_TRUE(k == 1 ? ring.TryPushUnannounced(&items[i + k]) : ring.TryPush(&items[i + k]));
    EXPECT_EQ(ring.SizeHint(), 3u);
    EXPECT_FALSE(ring.IsEmptyForParking());
    for (int k = 0; k < 3; ++k) EXPECT_EQ(ring.TryPop(), &items[i + k]);
    EXPECT_EQ(ring.TryPop(), nullptr);
    EXPECT_TRUE(ring.IsEmptyForParking());
  }
}

TEST(WorkStealingRing, TellsWhenItIsFull) {
  std::vector<Item> items = MakeItems(9);
  Ring ring;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(ring.TryPush(&items[i]));
  EXPECT_FALSE(ring.TryPush(&items[8]));
  EXPECT_FALSE(ring.TryPushUnannounced(&items[8]));
  EXPECT_EQ(ring.TryPop()->number, 0);
  EXPECT_TRUE(ring.TryPush(&items[8]));
  for (int i = 1; i < 9; ++i) EXPECT_EQ(ring.TryPop()->number, i);
}

TEST(WorkStealingRing, GivesHalfUpWhenItIsFull) {
  std::vector<Item> items = MakeItems(8);
  Ring ring;
  Ring::HalfBuffer half;
  EXPECT_EQ(ring.PopHalf(half), 0u);
  for (Item& item : items) ring.TryPush(&item);
  ASSERT_EQ(ring.PopHalf(half), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(half[i]->number, i);
  for (int i = 4; i < 7; ++i) EXPECT_EQ(ring.TryPop()->number, i);
  ASSERT_EQ(ring.PopHalf(half), 1u);
  EXPECT_EQ(half[0]->number, 7);
}

TEST(WorkStealingRing, LosesTheOlderHalfToAThief) {
  for (int count = 0; count <= 8; ++count) {
    std::vector<Item> items = MakeItems(count);
    Ring victim, thief;
    for (Item& item : items) victim.TryPush(&item);
    Item* const first = victim.StealHalfInto(thief);
    const int stolen = (count + 1) / 2;
    if (count == 0) {
      EXPECT_EQ(first, nullptr);
    } else {
      EXPECT_EQ(first, &items[0]);
    }
    EXPECT_EQ(thief.SizeHint(), static_cast<size_t>(stolen > 0 ? stolen - 1 : 0));
    for (int i = 1; i < stolen; ++i) EXPECT_EQ(thief.TryPop(), &items[i]);
    EXPECT_EQ(thief.TryPop(), nullptr);
    for (int i = stolen; i < count; ++i) EXPECT_EQ(victim.TryPop(), &items[i]);
    EXPECT_EQ(victim.TryPop(), nullptr);
  }
}

TEST(WorkStealingRing, StealsNoMoreThanTheThiefHasRoomFor) {
  std::vector<Item> items = MakeItems(15);
  Ring victim, thief;
  for (int i = 0; i < 8; ++i) victim.TryPush(&items[i]);
  for (int i = 8; i < 15; ++i) thief.TryPush(&items[i]);
  EXPECT_EQ(victim.StealHalfInto(thief), &items[0]);
  for (int i = 8; i < 15; ++i) EXPECT_EQ(thief.TryPop(), &items[i]);
  EXPECT_EQ(thief.TryPop(), &items[1]);
  EXPECT_EQ(thief.TryPop(), nullptr);
  EXPECT_EQ(victim.TryPop(), &items[2]);
  EXPECT_EQ(victim.SizeHint(), 5u);
}

TEST(WorkStealingRing, StealsOneForAThiefWithoutRoom) {
  std::vector<Item> items = MakeItems(16);
  Ring victim, thief;
  for (int i = 0; i < 8; ++i) victim.TryPush(&items[i]);
  for (int i = 8; i < 16; ++i) thief.TryPush(&items[i]);
  EXPECT_EQ(victim.StealHalfInto(thief), &items[0]);
  EXPECT_EQ(thief.SizeHint(), 8u);
  EXPECT_EQ(victim.SizeHint(), 7u);
}

TEST(WorkStealingRing, StealsNoMoreThanCanBeCopiedInAMoment) {
  using LargeRing = WorkStealingRing<Item*, 1024>;
  constexpr int kMost = static_cast<int>(LargeRing::kMostStolen);
  std::vector<Item> items = MakeItems(1000);
  const auto victim = std::make_unique<LargeRing>();
  const auto thief = std::make_unique<LargeRing>();
  for (Item& item : items) victim->TryPush(&item);
  EXPECT_EQ(victim->StealHalfInto(*thief), &items[0]);
  EXPECT_EQ(thief->SizeHint(), LargeRing::kMostStolen - 1);
  for (int i = 1; i < kMost; ++i) EXPECT_EQ(thief->TryPop(), &items[i]);
  EXPECT_EQ(victim->TryPop(), &items[kMost]);
}

// Simulates another thread that takes an item just before an exchange, `failures` times.
struct OvertakenAtomics {
  static inline int failures = 0;

  template <typename T>
  struct Atomic : std::atomic<T> {
    using std::atomic<T>::atomic;
    bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) {
      if (failures == 0) return std::atomic<T>::compare_exchange_weak(expected, desired, success, failure);
      --failures;
      this->fetch_add(1, std::memory_order_acq_rel);
      expected = this->load(failure);
      return false;
    }
  };
  template <typename T>
  using Plain = T;
};

TEST(WorkStealingRing, StealsFewerEachTimeThatItIsOvertaken) {
  using OvertakenRing = WorkStealingRing<Item*, 64, OvertakenAtomics>;
  const int stolen_after[] = {32, 16, 8, 4, 2, 1, 1, 1};
  for (int failures = 0; failures < 8; ++failures) {
    std::vector<Item> items = MakeItems(64);
    const auto victim = std::make_unique<OvertakenRing>();
    const auto thief = std::make_unique<OvertakenRing>();
    for (Item& item : items) victim->TryPush(&item);
    OvertakenAtomics::failures = failures;
    EXPECT_EQ(victim->StealHalfInto(*thief), &items[failures]);
    EXPECT_EQ(OvertakenAtomics::failures, 0);
    const int stolen = stolen_after[failures];
    EXPECT_EQ(thief->SizeHint(), static_cast<size_t>(stolen - 1)) << failures;
    for (int i = 1; i < stolen; ++i) EXPECT_EQ(thief->TryPop(), &items[failures + i]);
    EXPECT_EQ(victim->TryPop(), &items[failures + stolen]);
  }
}

// Owners make items, take their own and steal from each other. Every item is taken once.
template <size_t kCapacity>
void StealFromEachOther() {
  constexpr int kOwners = 3;
  constexpr int kItems = 20'000;
  using SmallRing = WorkStealingRing<Item*, kCapacity>;
  std::vector<SmallRing> rings(kOwners);
  std::vector<std::vector<Item>> items;
  for (int i = 0; i < kOwners; ++i) items.push_back(MakeItems(kItems));
  std::atomic<int> taken{0};
  std::atomic<int> stolen{0};
  std::vector<std::thread> threads;
  for (int owner = 0; owner < kOwners; ++owner) {
    threads.emplace_back([&, owner] {
      SmallRing& mine = rings[owner];
      typename SmallRing::HalfBuffer half;
      const auto take = [&](Item* item) {
        item->taken += item->made ? 1 : 1000;
        taken.fetch_add(1, std::memory_order_relaxed);
      };
      int made = 0;
      for (int turn = 0; taken.load(std::memory_order_relaxed) < kOwners * kItems; ++turn) {
        for (int i = 0; i < 3 && made < kItems; ++i) {
          Item* const item = &items[owner][made];
          item->made = true;
          if (turn % 2 == 0 ? mine.TryPush(item) : mine.TryPushUnannounced(item)) {
            ++made;
            continue;
          }
          const size_t count = mine.PopHalf(half);
          for (size_t k = 0; k < count; ++k) take(half[k]);
        }
        if (Item* item = mine.TryPop()) take(item);
        if (turn % 4 == 0 || made == kItems) {
          if (Item* item = rings[(owner + 1 + turn / 4 % (kOwners - 1)) % kOwners].StealHalfInto(mine)) {
            take(item);
            stolen.fetch_add(1, std::memory_order_relaxed);
          }
        }
        if (made == kItems) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), kOwners * kItems);
  for (const std::vector<Item>& of_owner : items) {
    for (const Item& item : of_owner) ASSERT_EQ(item.taken, 1) << item.number;
  }
  for (SmallRing& ring : rings) EXPECT_TRUE(ring.IsEmptyForParking());
}

TEST(WorkStealingRingStress, GivesEachItemToOneThread) { StealFromEachOther<256>(); }
TEST(WorkStealingRingStress, GivesEachItemToOneThreadWhenCellsAreReusedAtOnce) { StealFromEachOther<2>(); }

// The parking protocol of the header: it must not happen that the maker sees no sleeper and the
// sleeper sees no work.
TEST(WorkStealingRingStress, NoSleeperMissesAnAnnouncedItem) {
  constexpr int kRounds = 5'000;
  std::vector<Item> items = MakeItems(1);
  auto ring = std::make_unique<Ring>();
  std::atomic<int> idle{0};
  std::atomic<int> round{0};  // The number of the round that both threads run.
  std::atomic<int> finished{0};
  bool saw_sleeper = false;
  bool saw_work = false;
  const auto await_round = [&](int wanted) {
    while (round.load(std::memory_order_acquire) < wanted) std::this_thread::yield();
  };
  std::thread sleeper([&] {
    for (int i = 1; i <= kRounds; ++i) {
      await_round(i);
      idle.fetch_add(1, std::memory_order_seq_cst);
      saw_work = !ring->IsEmptyForParking();
      finished.store(i, std::memory_order_release);
    }
  });
  int missed = 0;
  for (int i = 1; i <= kRounds; ++i) {
    idle.store(0, std::memory_order_relaxed);
    round.store(i, std::memory_order_release);
    ASSERT_TRUE(ring->TryPush(&items[0]));
    saw_sleeper = idle.load(std::memory_order_seq_cst) > 0;
    while (finished.load(std::memory_order_acquire) < i) std::this_thread::yield();
    missed += saw_sleeper || saw_work ? 0 : 1;
    ASSERT_EQ(ring->TryPop(), &items[0]);
  }
  sleeper.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace fraktor
