// Stores of a system whose folders are removed while other stores know their ids.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/persistence/actor/persistence_extension.h"
#include "fraktor/persistence/durable/state_extension.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

class StoreFamilyTest : public testing::Test {
 protected:
  // The three stores, open, as a program has them.
  struct Stores {
    explicit Stores(StoreFamilyTest& test)
        : journal(RocksDbJournal::Open(*test.toolbox_, {.path = test.folder_.path("journal")}).value()),
          snapshots(RocksDbSnapshotStore::Open(*test.toolbox_, {.path = test.folder_.path("snapshots")}).value()),
          states(RocksDbStateStore::Open(*test.toolbox_, {.path = test.folder_.path("states")}).value()) {}

    std::shared_ptr<RocksDbJournal> journal;
    std::shared_ptr<RocksDbSnapshotStore> snapshots;
    std::shared_ptr<RocksDbStateStore> states;
  };

  // Starts a system with the stores, and ends it. The first error of the three.
  absl::Status Start(OnReplacedStore on_replaced = OnReplacedStore::kRefuse) {
    Stores stores(*this);
    TestKit kit;
    return Add(kit, stores, on_replaced);
  }
  static absl::Status Add(TestKit& kit, const Stores& stores, OnReplacedStore on_replaced) {
    auto& persistence = kit.system().Extension<PersistenceExtension>();
    absl::Status added =
        persistence.AddSnapshotStore("main", {.storage = stores.snapshots, .on_replaced_store = on_replaced});
    if (added.ok()) {
      added = kit.system().Extension<StateExtension>().AddStore(
          "main", {.storage = stores.states, .on_replaced_store = on_replaced});
    }
    if (added.ok()) {
      added = persistence.AddJournal("main", {.storage = stores.journal, .on_replaced_store = on_replaced});
    }
    return added;
  }
  void Remove(const std::string& name) { std::filesystem::remove_all(folder_.path(name)); }

  TemporaryFolder folder_;
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
};

TEST_F(StoreFamilyTest, OpensTheSameStoresAgain) {
  EXPECT_TRUE(Start().ok());
  EXPECT_TRUE(Start().ok());
}

// PER-17
TEST_F(StoreFamilyTest, RefusesAJournalThatWasMadeAgain) {
  ASSERT_TRUE(Start().ok());
  Remove("journal");
  const absl::Status refused = Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "the store \"journal:main\" is not the one that")) << refused;
  EXPECT_TRUE(absl::StrContains(refused.message(), "OnReplacedStore::kAccept")) << refused;
  // A second start does not make it better.
  EXPECT_FALSE(Start().ok());
}

TEST_F(StoreFamilyTest, RefusesASnapshotStoreThatWasMadeAgain) {
  ASSERT_TRUE(Start().ok());
  Remove("snapshots");
  const absl::Status refused = Start();
  EXPECT_TRUE(absl::StrContains(refused.message(), "the store \"snapshots:main\" is not the one that")) << refused;
}

TEST_F(StoreFamilyTest, RefusesAStoreOfStatesThatWasMadeAgain) {
  ASSERT_TRUE(Start().ok());
  Remove("states");
  const absl::Status refused = Start();
  EXPECT_TRUE(absl::StrContains(refused.message(), "the store \"states:main\" is not the one that")) << refused;
}

TEST_F(StoreFamilyTest, GoesOnWithAReplacedStoreOnPurposeAndSaysSo) {
  ASSERT_TRUE(Start().ok());
  Remove("journal");
  {
    Stores stores(*this);
    TestKit kit;
    // Both other stores know the old journal.
    kit.ExpectLog({.level = LogLevel::kWarning, .contains = "the store \"journal:main\" is not the one that"}, 2,
                  [&] { EXPECT_TRUE(Add(kit, stores, OnReplacedStore::kAccept).ok()); });
  }
  // From now on they know the new one.
  EXPECT_TRUE(Start().ok());
}

TEST_F(StoreFamilyTest, AcceptsAReplacedStoreIfTheSetupOfEitherStoreSaysSo) {
  ASSERT_TRUE(Start().ok());
  Remove("journal");
  const absl::Status refused = Start();
  EXPECT_TRUE(absl::StrContains(refused.message(), "`journal import`")) << refused;
  {
    Stores stores(*this);
    TestKit kit;
    auto& persistence = kit.system().Extension<PersistenceExtension>();
    // The store that was replaced is added first.
    ASSERT_TRUE(
        persistence.AddJournal("main", {.storage = stores.journal, .on_replaced_store = OnReplacedStore::kAccept})
            .ok());
    kit.ExpectLog({.level = LogLevel::kWarning, .contains = "the store \"journal:main\" is not the one that"}, 2, [&] {
      EXPECT_TRUE(persistence.AddSnapshotStore("main", {.storage = stores.snapshots}).ok());
      EXPECT_TRUE(kit.system().Extension<StateExtension>().AddStore("main", {.storage = stores.states}).ok());
    });
  }
  EXPECT_TRUE(Start().ok());
}

TEST_F(StoreFamilyTest, AddsAStoreThatWasNotThereBefore) {
  {
    Stores stores(*this);
    TestKit kit;
    ASSERT_TRUE(kit.system().Extension<PersistenceExtension>().AddJournal("main", {.storage = stores.journal}).ok());
  }
  EXPECT_TRUE(Start().ok());
}

TEST_F(StoreFamilyTest, KeepsTheIdentityOfAStoreThatIsCopied) {
  ASSERT_TRUE(Start().ok());
  std::filesystem::copy(folder_.path("journal"), folder_.path("backup"), std::filesystem::copy_options::recursive);
  Remove("journal");
  std::filesystem::rename(folder_.path("backup"), folder_.path("journal"));
  EXPECT_TRUE(Start().ok());
}

}  // namespace
}  // namespace fraktor
