// Counts the system allocations of caches that come and go: workers of pools that end, and guests
// that take turns.

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"
#include "fraktor/utils/testing/counted_allocations.h"

namespace fraktor {

using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;
using utils_internal::TableSlot;

namespace {

struct Cell : TableSlot {
  int value = 0;
};
using Pool = SlotPool<Cell>;
using Handle = SlotHandle<Cell>;

class SlotPoolAllocationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << kWhyNoAllocationsAreCounted;
  }

  SlotTable<Cell> table_;
  int owner_ = 0;
  Pool pool_{table_, &owner_};
};

TEST_F(SlotPoolAllocationTest, CachesThatComeAndGoUseTheSameMagazines) {
  const auto come_and_go = [this] {
    Pool::Cache cache(pool_);
    const Handle handle = cache.Allocate().value();
    cache.Free(handle);
  };
  // The first cache leaves a magazine with slots, so the second one needs another empty one.
  for (int i = 0; i < 2; ++i) come_and_go();
  EXPECT_EQ(AllocationsIn([&] {
              for (int i = 0; i < 1000; ++i) come_and_go();
            }),
            0);
}

TEST_F(SlotPoolAllocationTest, CachesThatNeedNoSlotUseTheSameMagazines) {
  const auto come_and_go = [this] { const Pool::Cache cache(pool_); };
  come_and_go();
  EXPECT_EQ(AllocationsIn([&] {
              for (int i = 0; i < 1000; ++i) come_and_go();
            }),
            0);
}

// Each cache leaves one slot behind. The pool combines them, so that each of them does not keep a
// magazine.
TEST_F(SlotPoolAllocationTest, SlotsThatManyCachesLeaveBehindShareMagazines) {
  constexpr int64_t kSlots = 10 * static_cast<int64_t>(Pool::kMagazineSlots);
  Pool::Cache maker(pool_);
  std::vector<Handle> handles;
  for (int64_t i = 0; i < kSlots; ++i) handles.push_back(maker.Allocate().value());
  const int64_t allocations = AllocationsIn([&] {
    for (const Handle& handle : handles) {
      Pool::Cache breaker(pool_);
      breaker.Free(handle);
    }
  });
  // Ten full magazines, two that the last cache had, and the lists of magazines, which double their
  // size now and then.
  EXPECT_LE(allocations, 10 + 2 + 10);
  for (Handle& handle : handles) handle = maker.Allocate().value();
}

}  // namespace
}  // namespace fraktor
