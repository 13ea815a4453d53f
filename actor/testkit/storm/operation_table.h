// OperationTable: operations with weights. One of them is performed at a time, which the seed
// chooses.
//
//   struct Greeting {
//     std::string_view name;
//     int weight;
//     int (*perform)();
//   };
//
//   const OperationTable<Greeting> table(/*first_row=*/0, {{"hello", 3, &Hello}, {"bye", 1, &Bye}});
//
//   int result = table.PerformOne(world, random, [](const Greeting& greeting) { return greeting.perform(); });
//
// Thread safety: immutable; any thread may use a table.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_OPERATION_TABLE_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_OPERATION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"

#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/actor/testkit/storm/world.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::storm {

// Operation has `name` and `weight`.
template <class Operation>
class OperationTable {
 public:
  // `first_row` is the row of the first operation in World::CountOperation.
  OperationTable(size_t first_row, std::vector<Operation> rows) : first_row_(first_row), rows_(std::move(rows)) {
    for (const Operation& row : rows_) total_ += static_cast<uint64_t>(row.weight);
  }

  // Calls `perform(operation)` with one operation, and returns its result. An operation that the
  // world skips is not performed: then the result is a default value.
  template <class Perform>
  auto PerformOne(World& world, Random& random, Perform perform) const {
    using Result = std::invoke_result_t<Perform&, const Operation&>;
    uint64_t draw = random.Uniform(total_);
    size_t i = 0;
    for (; draw >= static_cast<uint64_t>(rows_[i].weight); ++i) draw -= static_cast<uint64_t>(rows_[i].weight);
    const Operation& chosen = rows_[i];
    if (world.Skips(chosen.name)) return Result();
    world.CountOperation(first_row_ + i, chosen.name);
    const absl::Cleanup done = [] { SetOperationOfThisThread(0, ""); };
    return perform(chosen);
  }

 private:
  const size_t first_row_;
  const std::vector<Operation> rows_;
  uint64_t total_ = 0;
};

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_OPERATION_TABLE_H_
