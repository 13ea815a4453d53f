#include "fraktor/actor/ref/actor_ref.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace fraktor {

using utils_internal::TableSlot;

namespace {

// Slots are 128 bytes apart. The tests do not dereference them.
TableSlot* SlotAt(uintptr_t index) {
  return reinterpret_cast<TableSlot*>(0x7f0000100000 + index * 128);  // NOLINT(performance-no-int-to-ptr)
}

TEST(ActorRef, RefersToNoOneByDefault) {
  constexpr ActorRef kNone;
  static_assert(kNone.IsNoOne());
  static_assert(kNone == ActorRef::NoOne());
  EXPECT_EQ(kNone.any_slot(), nullptr);
  EXPECT_EQ(kNone.word(), 0u);
  EXPECT_FALSE(ActorRef(SlotAt(0), 0).IsNoOne());
}

TEST(ActorRef, IsEqualOnlyIfSlotAndWordAre) {
  const ActorRef ref(SlotAt(1), 7);
  EXPECT_EQ(ref, ActorRef(SlotAt(1), 7));
  EXPECT_NE(ref, ActorRef(SlotAt(1), 8));
  EXPECT_NE(ref, ActorRef(SlotAt(2), 7));
  EXPECT_NE(ref, ActorRef(SlotAt(1), (uint64_t{1} << 32) | 7)) << "a uid has 64 bits";
  EXPECT_NE(ActorRef(SlotAt(1), 0), ActorRef::NoOne());
}

TEST(ActorRef, KeepsTheGenerationInTheLowHalfOfTheWord) {
  EXPECT_EQ(ActorRef(SlotAt(1), 0xffffffff).generation(), 0xffffffffu);
  EXPECT_EQ(ActorRef(SlotAt(1), (uint64_t{5} << 32) | 3).generation(), 3u);
}

TEST(ActorRef, SurvivesACopyOfItsBytes) {
  const ActorRef ref(SlotAt(3), 0x123456789abcdef0);
  ActorRef copy;
  std::memcpy(static_cast<void*>(&copy), &ref, sizeof(ref));
  EXPECT_EQ(copy, ref);
}

TEST(ActorRef, IsAKeyOfHashTables) {
  std::unordered_set<ActorRef> std_set;
  absl::flat_hash_set<ActorRef> absl_set;
  for (uintptr_t slot = 0; slot < 100; ++slot) {
    for (uint64_t word = 0; word < 10; ++word) {
      std_set.insert(ActorRef(SlotAt(slot), word));
      absl_set.insert(ActorRef(SlotAt(slot), word));
    }
  }
  EXPECT_EQ(std_set.size(), 1000u);
  EXPECT_EQ(absl_set.size(), 1000u);
  EXPECT_EQ(std_set.count(ActorRef(SlotAt(99), 9)), 1u);
  EXPECT_EQ(absl_set.count(ActorRef(SlotAt(100), 0)), 0u);
}

// Tables of the standard library take a hash modulo a prime; other tables take its low or its high
// bits.
TEST(ActorRef, SpreadsItsHashOverLowAndHighBits) {
  std::set<size_t> low;
  std::set<size_t> high;
  for (uintptr_t slot = 0; slot < 4096; ++slot) {
    const size_t hash = std::hash<ActorRef>()(ActorRef(SlotAt(slot), 1));
    low.insert(hash & 0xfff);
    high.insert(hash >> 52);
  }
  // 4096 balls in 4096 bins fill 2589 bins on average, plus or minus 32.
  EXPECT_GT(low.size(), 2400u);
  EXPECT_GT(high.size(), 2400u);
}

TEST(ActorRef, HashesTheSameInEveryProcess) {
  EXPECT_EQ(std::hash<ActorRef>()(ActorRef()), 0u);
  EXPECT_EQ(std::hash<ActorRef>()(ActorRef(SlotAt(1), 7)), std::hash<ActorRef>()(ActorRef(SlotAt(1), 7)));
}

}  // namespace
}  // namespace fraktor
