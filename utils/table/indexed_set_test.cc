#include "fraktor/utils/table/indexed_set.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/testing/counted_key.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {
namespace {

using Numbers = std::vector<int>;

template <class Set>
Numbers All(const Set& set) {
  return Numbers(set.begin(), set.end());
}

TEST(IndexedSet, KeepsTheOrderOfInsertionAndTakesEachElementOnce) {
  IndexedSet<int, 2> set;
  EXPECT_TRUE(set.empty());
  for (const int i : {5, 3, 9}) EXPECT_TRUE(set.Insert(i));
  for (const int i : {3, 5}) EXPECT_FALSE(set.Insert(i));
  EXPECT_EQ(All(set), Numbers({5, 3, 9}));
  EXPECT_TRUE(set.Contains(3));
  EXPECT_FALSE(set.Contains(4));
  EXPECT_TRUE(set.Erase(3));
  EXPECT_FALSE(set.Erase(3));
  EXPECT_EQ(All(set), Numbers({5, 9})) << "A small set keeps the order of the others.";
  EXPECT_TRUE(set.Insert(3));
  EXPECT_EQ(All(set), Numbers({5, 9, 3}));
  set.Clear();
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.Contains(5));
}

TEST(IndexedSet, LetsTheLastElementTakeThePlaceOfAnErasedOneInALargeSet) {
  IndexedSet<int> set;
  Numbers expected;
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(set.Insert(i));
    EXPECT_FALSE(set.Insert(i));
    expected.push_back(i);
  }
  EXPECT_TRUE(set.Erase(7));
  expected[7] = 39;
  expected.pop_back();
  EXPECT_EQ(All(set), expected);
  EXPECT_TRUE(set.Erase(38)) << "the last one";
  expected.pop_back();
  EXPECT_EQ(All(set), expected);
}

TEST(IndexedSet, KeepsWhatIsWantedInItsOrder) {
  for (const int count : {10, 100}) {
    IndexedSet<int> set;
    Numbers expected;
    for (int i = 0; i < count; ++i) {
      set.Insert(i);
      if (i % 3 != 0) expected.push_back(i);
    }
    set.Keep([](int i) { return i % 3 != 0; });
    EXPECT_EQ(All(set), expected);
    for (int i = 0; i < count; ++i) EXPECT_EQ(set.Contains(i), i % 3 != 0) << i;
  }
}

// An element that has a key and something else.
struct Entry {
  std::unique_ptr<std::string> name;
  int value = 0;
};
struct NameOf {
  const std::string& operator()(const Entry& entry) const { return *entry.name; }
};
using Entries = IndexedSet<Entry, 1, NameOf>;

TEST(IndexedSet, FindsElementsByAPartOfThem) {
  Entries set;
  const auto name = [](int i) { return std::to_string(i); };
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(set.Insert({std::make_unique<std::string>(name(i)), i}));
  EXPECT_FALSE(set.Insert({std::make_unique<std::string>("42"), 0}));
  EXPECT_EQ(set.Find("42")->value, 42);
  set.Find("42")->value = 7;
  EXPECT_EQ(set.Find("42")->value, 7);
  EXPECT_EQ(set.Find("100"), nullptr);
  // The key is a part of the element that is erased.
  while (!set.empty()) EXPECT_TRUE(set.Erase(*set[0].name));
}

// Compares the set with a slow list that does the same.
TEST(IndexedSet, IsWhatASlowListIs) {
  Random random(1);
  IndexedSet<int> set;
  Numbers slow;
  for (int step = 0; step < 20'000; ++step) {
    // The size rises and falls across the size at which the set makes an index.
    const bool grows = step / 500 % 2 == 0;
    const int value = static_cast<int>(random.Uniform(60));
    size_t at = 0;
    while (at < slow.size() && slow[at] != value) ++at;
    const bool is_there = at < slow.size();
    ASSERT_EQ(set.Contains(value), is_there);
    if (random.Uniform(4) == 0 ? !grows : grows) {
      ASSERT_EQ(set.Insert(value), !is_there);
      if (!is_there) slow.push_back(value);
    } else {
      const bool had_index = set.size() > IndexedSet<int>::kMaxUnindexed;
      ASSERT_EQ(set.Erase(value), is_there);
      if (!is_there) continue;
      // Between the two sizes the set may have an index or not: the set itself tells which.
      Numbers moved = slow;
      moved[at] = moved.back();
      moved.pop_back();
      slow.erase(slow.begin() + static_cast<ptrdiff_t>(at));
      if (had_index || All(set) != slow) slow = moved;
    }
    ASSERT_EQ(All(set), slow) << "step " << step;
  }
}

TEST(IndexedSet, ComparesAConstantNumberOfTimesForEachCall) {
  constexpr uint32_t kCount = 300'000;
  IndexedSet<CountedKey> set;
  CountedKey::comparisons = 0;
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_TRUE(set.Insert({i}));
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_FALSE(set.Insert({i}));
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_TRUE(set.Contains({i}));
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_TRUE(set.Erase({i}));
  EXPECT_LT(CountedKey::comparisons, uint64_t{kCount} * 4 * IndexedSet<CountedKey>::kMaxUnindexed);
}

}  // namespace
}  // namespace fraktor
