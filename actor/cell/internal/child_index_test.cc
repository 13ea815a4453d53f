#include "fraktor/actor/cell/internal/child_index.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::actor_internal {
namespace {

// A parent with its children. It counts how often the index reads a child.
class Family {
 public:
  uint32_t Add(bool is_named = false) {
    uint32_t slot = static_cast<uint32_t>(children_.size());
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else {
      children_.emplace_back();
    }
    children_[slot] = {.number = next_number_++, .is_named = is_named, .next_sibling = newest_, .previous = kNone};
    if (newest_ != kNone) children_[newest_].previous = slot;
    newest_ = slot;
    ++count_;
    if (index_.has_value()) index_->OnAdded(slot, AsRead(slot));
    DropIfUnused();
    return slot;
  }

  void Remove(uint32_t slot) {
    if (index_.has_value()) index_->OnRemoved(slot, AsRead(slot));
    const Child& gone = children_[slot];
    (gone.previous == kNone ? newest_ : children_[gone.previous].next_sibling) = gone.next_sibling;
    if (gone.next_sibling != kNone) children_[gone.next_sibling].previous = gone.previous;
    free_.push_back(slot);
    --count_;
    DropIfUnused();
  }

  void BeginIndex() {
    index_.emplace(count_);
    index_->Begin(newest_);
  }
  void Extend(size_t most) {
    index_->Extend(most, [this](uint32_t slot) {
      ++looks_;
      return AsRead(slot);
    });
  }

  // Looks up as FindUnnamedChild does: makes an index if there is none.
  std::optional<uint32_t> Find(uint64_t number) {
    if (!index_.has_value()) BeginIndex();
    for (;;) {
      const std::optional<uint32_t> found = index_->Find(number, [&](uint32_t slot) {
        ++looks_;
        return !children_[slot].is_named && children_[slot].number == number;
      });
      if (found.has_value() || index_->is_complete()) return found;
      Extend(16);
    }
  }

  bool has_index() const { return index_.has_value(); }
  uint64_t NumberAt(uint32_t slot) const { return children_[slot].number; }
  size_t TakeLooks() { return std::exchange(looks_, 0); }

 private:
  static constexpr uint32_t kNone = ActorKin::kNone;

  struct Child {
    uint64_t number = 0;
    bool is_named = false;
    uint32_t next_sibling = kNone;
    uint32_t previous = kNone;
  };

  ChildIndex::Child AsRead(uint32_t slot) const {
    const Child& child = children_[slot];
    return {.number = child.number, .is_named = child.is_named, .next_sibling = child.next_sibling};
  }
  void DropIfUnused() {
    if (index_.has_value() && index_->IsUnused(count_)) index_.reset();
  }

  std::vector<Child> children_;
  std::vector<uint32_t> free_;
  uint32_t newest_ = kNone;
  size_t count_ = 0;
  uint64_t next_number_ = 0;
  std::optional<ChildIndex> index_;
  size_t looks_ = 0;
};

// PTH-10
TEST(ChildIndex, LooksAtEachChildOnceAndThenAtOneForEachLookup) {
  constexpr size_t kChildren = 100'000;
  Family family;
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < kChildren; ++i) slots.push_back(family.Add());
  EXPECT_EQ(family.Find(0), slots[0]);
  EXPECT_LE(family.TakeLooks(), kChildren + 1);
  for (size_t i = 0; i < kChildren; ++i) ASSERT_EQ(family.Find(i), slots[i]);
  // Few numbers share a hash.
  EXPECT_LE(family.TakeLooks(), kChildren + kChildren / 100);
  EXPECT_EQ(family.Find(kChildren), std::nullopt);
  EXPECT_LE(family.TakeLooks(), 1u);
}

TEST(ChildIndex, DoesNotKnowChildrenWithNamesOfTheirOwn) {
  Family family;
  const uint32_t first = family.Add();
  family.Add(/*is_named=*/true);
  EXPECT_EQ(family.Find(1), std::nullopt);
  const uint32_t third = family.Add();
  const uint32_t fourth = family.Add(/*is_named=*/true);
  EXPECT_EQ(family.Find(0), first);
  EXPECT_EQ(family.Find(2), third);
  EXPECT_EQ(family.Find(3), std::nullopt);
  family.Remove(fourth);
  EXPECT_EQ(family.Find(2), third);
}

// Children come and go before, at and behind the walk that builds an index.
TEST(ChildIndex, KeepsUpWithChildrenThatComeAndGoWhileItIsBuilt) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    Family family;
    std::map<uint64_t, uint32_t> living;
    std::map<uint64_t, uint32_t> gone;
    const auto add = [&] {
      const uint32_t slot = family.Add();
      living[family.NumberAt(slot)] = slot;
    };
    for (int i = 0; i < 100; ++i) add();
    family.BeginIndex();
    for (int i = 0; i < 200; ++i) {
      if (random() % 2 == 0) {
        add();
      } else if (!living.empty()) {
        auto one = living.lower_bound(random() % (living.rbegin()->first + 1));
        family.Remove(one->second);
        gone.insert(living.extract(one));
      }
      if (random() % 4 == 0) family.Extend(random() % 3);
    }
    for (const auto& [number, slot] : living) ASSERT_EQ(family.Find(number), slot);
    for (const auto& [number, slot] : gone) ASSERT_EQ(family.Find(number), std::nullopt);
  }
}

TEST(ChildIndex, IsGivenUpWhenChildrenComeAndGoAndNobodyLooks) {
  constexpr size_t kChildren = 5'000;
  Family family;
  for (size_t i = 0; i < kChildren; ++i) family.Add();
  const uint32_t last = family.Add();
  ASSERT_EQ(family.Find(kChildren), last);
  for (size_t i = 0; i < kChildren; ++i) family.Remove(family.Add());
  EXPECT_FALSE(family.has_index());
  ASSERT_EQ(family.Find(kChildren), last);
  for (size_t i = 0; i < 3 * kChildren; ++i) {
    family.Remove(family.Add());
    if (i % 1000 == 0) {
      ASSERT_EQ(family.Find(kChildren), last);
    }
    ASSERT_TRUE(family.has_index());
  }
}

}  // namespace
}  // namespace fraktor::actor_internal
