// A pool ends while another thread makes a handle of it stale, as a late reply claims its promise.
// The test runs every interleaving. The pool must leave all slots free.
#include <memory>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"
#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_cases.h"

namespace fraktor {

using utils_internal::BasicTableSlot;
using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;

namespace {

struct Slot : BasicTableSlot<ModelAtomics> {};

// One page, so that a chunk has few slots.
using Table = SlotTable<Slot, 4096, ModelAtomics>;
using Pool = SlotPool<Slot, 4096, ModelAtomics>;

struct PoolInUse {
  PoolInUse() : pool(std::make_unique<Pool>(table, this)), handle(pool->Allocate().value()) {}

  Table table;
  std::unique_ptr<Pool> pool;
  const SlotHandle<Slot> handle;
};

void EndsWhileAHandleIsClaimed(Model& m) {
  auto& in_use = m.Make<PoolInUse>();
  m.Thread("owner", [&] { in_use.pool.reset(); });
  m.Thread("claims", [&] { Pool::TryDeactivate(in_use.handle); });
  m.After([&] { MODEL_ASSERT(in_use.handle.slot->generation() == in_use.handle.generation + 1); });
}

TEST(SlotPoolInterleaving, EndsWhileAnotherThreadMakesAHandleStale) {
  ExpectAllPass({{"a handle is claimed", EndsWhileAHandleIsClaimed}});
}

}  // namespace
}  // namespace fraktor
