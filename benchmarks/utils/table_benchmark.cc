// What a slot table costs, beside a bare vector of objects of the same size:
// - lookups in random order, over a working set that fits in the second-level cache and over one that does not, by
// handle and by index;
// - allocate and free on one thread and on two, through caches and through the pool's lock, beside new and delete.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"

#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor {

using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;
using utils_internal::TableSlot;

namespace {

// 128 bytes, as an actor's cell.
struct alignas(64) Cell : TableSlot {
  uint32_t value = 1;
  char more[120];
};
static_assert(sizeof(Cell) == 128);

using Table = SlotTable<Cell>;
using Pool = SlotPool<Cell>;

int owner = 0;

// How many cells: 256 KiB and 32 MiB of them.
void WorkingSets(benchmark::internal::Benchmark* benchmark) { benchmark->ArgName("cells")->Arg(2048)->Arg(262'144); }

// A random order in which to visit `count` cells.
std::vector<uint32_t> RandomOrder(size_t count) {
  std::vector<uint32_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(42));
  return order;
}

// Each iteration looks at all: an item is one lookup that reads a word of what it finds.
void BM_VectorLookup(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  struct alignas(64) Element {
    uint32_t value = 1;
    char more[124];
  };
  std::vector<Element> elements(count);
  const std::vector<uint32_t> order = RandomOrder(count);
  uint64_t sum = 0;
  for (auto _ : state) {
    for (const uint32_t i : order) sum += elements[i].value;
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_VectorLookup)->Apply(WorkingSets);

template <typename Reference, typename MakeReference, typename Resolve>
void LookUp(benchmark::State& state, MakeReference make_reference, Resolve resolve) {
  const auto count = static_cast<size_t>(state.range(0));
  Table table;
  Pool pool(table, &owner);
  std::vector<SlotHandle<Cell>> handles;
  for (size_t i = 0; i < count; ++i) handles.push_back(pool.Allocate().value());
  std::vector<Reference> references;
  for (const uint32_t i : RandomOrder(count)) references.push_back(make_reference(handles[i]));
  uint64_t sum = 0;
  for (auto _ : state) {
    for (const Reference& reference : references) {
      if (const Cell* cell = resolve(table, reference)) sum += cell->value;
    }
    benchmark::DoNotOptimize(sum);
  }
  if (sum != static_cast<uint64_t>(state.iterations()) * count)
    state.SkipWithError("a live reference was not resolved");
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void BM_SlotTableLookupByHandle(benchmark::State& state) {
  LookUp<SlotHandle<Cell>>(
      state, [](SlotHandle<Cell> handle) { return handle; },
      [](Table&, SlotHandle<Cell> handle) { return Table::Resolve(handle); });
}
BENCHMARK(BM_SlotTableLookupByHandle)->Apply(WorkingSets);

void BM_SlotTableLookupByIndex(benchmark::State& state) {
  struct Index {
    uint32_t slot;
    uint32_t generation;
  };
  LookUp<Index>(
      state,
      [](SlotHandle<Cell> handle) {
        return Index{Table::IndexOf(handle.slot), handle.generation};
      },
      [](Table& table, Index index) {
        return Table::Resolve({table.At(index.slot), index.generation});
      });
}
BENCHMARK(BM_SlotTableLookupByIndex)->Apply(WorkingSets);

// One slot at a time: what a short-lived actor costs.
void BM_SlotPoolAllocateFree(benchmark::State& state) {
  static Table& table = *new Table;
  static Pool& pool = *new Pool(table, &owner);
  Pool::Cache cache(pool);
  for (auto _ : state) cache.Free(*cache.Allocate());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_SlotPoolAllocateFree)->ThreadRange(1, 2)->UseRealTime();

// A thousand at a time, which makes caches and pool trade magazines.
template <typename Allocator>
void AllocateFreeMany(benchmark::State& state, Allocator& allocator) {
  constexpr size_t kMany = 1000;
  std::vector<SlotHandle<Cell>> handles(kMany);
  for (auto _ : state) {
    for (SlotHandle<Cell>& handle : handles) handle = *allocator.Allocate();
    for (const SlotHandle<Cell>& handle : handles) allocator.Free(handle);
  }
  state.SetItemsProcessed(state.iterations() * kMany);
}

void BM_SlotPoolAllocateFreeMany(benchmark::State& state) {
  static Table& table = *new Table;
  static Pool& pool = *new Pool(table, &owner);
  Pool::Cache cache(pool);
  AllocateFreeMany(state, cache);
}
BENCHMARK(BM_SlotPoolAllocateFreeMany)->ThreadRange(1, 2)->UseRealTime();

void BM_SlotPoolAllocateFreeManyWithoutCache(benchmark::State& state) {
  static Table& table = *new Table;
  static Pool& pool = *new Pool(table, &owner);
  AllocateFreeMany(state, pool);
}
BENCHMARK(BM_SlotPoolAllocateFreeManyWithoutCache)->ThreadRange(1, 2)->UseRealTime();

void BM_NewDeleteMany(benchmark::State& state) {
  constexpr size_t kMany = 1000;
  std::vector<Cell*> cells(kMany);
  for (auto _ : state) {
    for (Cell*& cell : cells) cell = new Cell;
    for (Cell* cell : cells) delete cell;
  }
  state.SetItemsProcessed(state.iterations() * kMany);
}
BENCHMARK(BM_NewDeleteMany)->ThreadRange(1, 2)->UseRealTime();

}  // namespace
}  // namespace fraktor
