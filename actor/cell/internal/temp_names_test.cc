#include "fraktor/actor/cell/internal/temp_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::actor_internal {

using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;
using utils_internal::TableSlot;

namespace {

struct FakePromise : TableSlot {};

class TempNamesTest : public testing::Test {
 protected:
  ActorRef Open() {
    const SlotHandle<FakePromise> handle = pool_.Allocate().value();
    return ActorRef(handle.slot, handle.generation | ActorRef::kPromise);
  }
  void End(ActorRef promise) {
    auto* const slot = static_cast<FakePromise*>(promise.any_slot());
    SlotPool<FakePromise>::Deactivate({slot, promise.generation()});
    pool_.Release(slot);
  }

  SlotTable<FakePromise> table_{{.max_chunks = 4}};
  SlotPool<FakePromise> pool_{table_, this};
  TempNames names_;
};

TEST_F(TempNamesTest, NamesPromisesAfterTheirTarget) {
  const ActorRef first = Open();
  const ActorRef second = Open();
  EXPECT_EQ(names_.Find(first), nullptr);
  EXPECT_EQ(names_.NameOf(first, "greeter"), "greeter$a");
  EXPECT_EQ(names_.NameOf(second, "greeter"), "greeter$b");
  EXPECT_EQ(names_.NameOf(first, "greeter"), "greeter$a");
  EXPECT_EQ(*names_.Find(ActorRef(first.any_slot(), first.word() | ActorRef::kShared)), "greeter$a");
  EXPECT_EQ(names_.FindByName("greeter$a"), first);
  EXPECT_EQ(names_.FindByName("greeter$b"), second);
  // The name of a target may be automatic or unknown.
  const ActorRef third = Open();
  const ActorRef fourth = Open();
  EXPECT_EQ(names_.NameOf(third, "$Q"), "$Q$c");
  EXPECT_EQ(names_.NameOf(fourth, ""), "$d");
  EXPECT_EQ(names_.FindByName("$Q$c"), third);
  EXPECT_EQ(names_.FindByName("$d"), fourth);
  for (const char* other : {"", "$", "greeter", "greeter$", "other$a", "greeter$e", "$c", "greeter$a$", "greeter$aa"}) {
    EXPECT_EQ(names_.FindByName(other), ActorRef()) << other;
  }
}

TEST_F(TempNamesTest, GivesNoNameTwiceAlsoIfASlotIsUsedAgain) {
  const ActorRef first = Open();
  EXPECT_EQ(names_.NameOf(first, "greeter"), "greeter$a");
  End(first);
  const ActorRef second = Open();
  ASSERT_EQ(second.any_slot(), first.any_slot());
  EXPECT_EQ(names_.NameOf(second, "greeter"), "greeter$b");
  EXPECT_EQ(names_.NameOf(first, "greeter"), "greeter$a");
  EXPECT_EQ(names_.FindByName("greeter$a"), first);
}

TEST_F(TempNamesTest, ForgetsPromisesThatAreOverButNotThoseThatWait) {
  std::vector<ActorRef> waiting;
  std::vector<std::string> waiting_names;
  constexpr uint64_t kAll = 50 * TempNames::kRemembered;
  size_t most = 0;
  for (uint64_t i = 0; i < kAll; ++i) {
    const ActorRef promise = Open();
    const std::string& name = names_.NameOf(promise, "x");
    most = std::max(most, names_.size());
    if (i % 1000 == 0) {
      waiting.push_back(promise);
      waiting_names.push_back(name);
    } else {
      End(promise);
      // The latest names are still known.
      ASSERT_NE(names_.Find(promise), nullptr);
    }
  }
  EXPECT_LE(most, 4 * TempNames::kRemembered);
  for (size_t i = 0; i < waiting.size(); ++i) EXPECT_EQ(names_.FindByName(waiting_names[i]), waiting[i]);
}

}  // namespace
}  // namespace fraktor::actor_internal
