// PER-21: the stores on RocksDB keep the contracts.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"

#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/journal_contract.h"
#include "fraktor/persistence/testing/snapshot_store_contract.h"
#include "fraktor/persistence/testing/state_store_contract.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

std::unique_ptr<RuntimeToolbox> MakeToolbox(bool has_threads) {
  if (has_threads) return StdToolbox::Make({}).value();
  return LocalToolbox::Make({}).value();
}

class RocksDbJournalUnderTest : public JournalUnderTest {
 public:
  RocksDbJournalUnderTest(bool has_threads, RocksDbJournalOptions options)
      : toolbox_(MakeToolbox(has_threads)), options_(std::move(options)) {
    // Where nothing is synced, files in memory will do.
    if (!options_.sync) options_.env = memory_.get();
    options_.path = folder_.path("journal");
    EXPECT_TRUE(Reopen().ok());
  }
  JournalStorage& storage() override { return *journal_; }
  absl::Status Reopen() override {
    journal_.reset();
    absl::StatusOr<std::unique_ptr<RocksDbJournal>> opened = RocksDbJournal::Open(*toolbox_, options_);
    if (!opened.ok()) return opened.status();
    journal_ = *std::move(opened);
    return absl::OkStatus();
  }
  PumpedToolbox* toolbox() override { return dynamic_cast<PumpedToolbox*>(toolbox_.get()); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<rocksdb::Env> memory_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::unique_ptr<RuntimeToolbox> toolbox_;
  RocksDbJournalOptions options_;
  std::unique_ptr<RocksDbJournal> journal_;
};

class RocksDbSnapshotStoreUnderTest : public SnapshotStoreUnderTest {
 public:
  explicit RocksDbSnapshotStoreUnderTest(bool has_threads) : toolbox_(MakeToolbox(has_threads)) {
    EXPECT_TRUE(Reopen().ok());
  }
  SnapshotStorage& storage() override { return *store_; }
  absl::Status Reopen() override {
    store_.reset();
    absl::StatusOr<std::unique_ptr<RocksDbSnapshotStore>> opened =
        RocksDbSnapshotStore::Open(*toolbox_, {.path = folder_.path("snapshots")});
    if (!opened.ok()) return opened.status();
    store_ = *std::move(opened);
    return absl::OkStatus();
  }
  PumpedToolbox* toolbox() override { return dynamic_cast<PumpedToolbox*>(toolbox_.get()); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<RuntimeToolbox> toolbox_;
  std::unique_ptr<RocksDbSnapshotStore> store_;
};

class RocksDbStateStoreUnderTest : public StateStoreUnderTest {
 public:
  RocksDbStateStoreUnderTest(bool has_threads, bool sync) : toolbox_(MakeToolbox(has_threads)), sync_(sync) {
    EXPECT_TRUE(Reopen().ok());
  }
  StateStorage& storage() override { return *store_; }
  absl::Status Reopen() override {
    store_.reset();
    absl::StatusOr<std::unique_ptr<RocksDbStateStore>> opened =
        RocksDbStateStore::Open(*toolbox_, {.path = folder_.path("states"),
                                            .sync = sync_,
                                            .limits = {.max_state_bytes = size_t{1} << 20},
                                            .env = sync_ ? nullptr : memory_.get()});
    if (!opened.ok()) return opened.status();
    store_ = *std::move(opened);
    return absl::OkStatus();
  }
  PumpedToolbox* toolbox() override { return dynamic_cast<PumpedToolbox*>(toolbox_.get()); }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<rocksdb::Env> memory_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::unique_ptr<RuntimeToolbox> toolbox_;
  const bool sync_;
  std::unique_ptr<RocksDbStateStore> store_;
};

INSTANTIATE_TEST_SUITE_P(
    RocksDb, StateStoreContract,
    testing::Values(
        StateStoreContractParameter{.name = "Threads",
                                    .make = [] { return std::make_unique<RocksDbStateStoreUnderTest>(true, true); }},
        StateStoreContractParameter{.name = "Pumped",
                                    .make = [] { return std::make_unique<RocksDbStateStoreUnderTest>(false, false); }}),
    StateStoreContractName);

JournalContractParameter Journal(std::string name, bool has_threads, size_t many_ids, RocksDbJournalOptions options) {
  return {.name = std::move(name),
          .make = [=] { return std::make_unique<RocksDbJournalUnderTest>(has_threads, options); },
          .many_ids = many_ids};
}

// "Frugal" has next to no cache and small commits, so the journal reads states again and cuts
// groups. "FewCached" has fewer states in memory than one group has ids, and room for few requests
// that wait. "Pumped" has no threads: one group has all that a test has asked for.
INSTANTIATE_TEST_SUITE_P(
    RocksDb, JournalContract,
    testing::Values(Journal("Synced", true, 1100, {}),
                    Journal("Frugal", true, 100,
                            {.sync = false, .max_commit_bytes = 300, .reader_threads = 1, .max_cached_ids = 1}),
                    Journal("FewCached", false, 1100,
                            {.sync = false, .max_waiting_bytes = size_t{1} << 20, .max_cached_ids = 1000}),
                    Journal("Pumped", false, 40'000, {.sync = false})),
    JournalContractName);

INSTANTIATE_TEST_SUITE_P(
    RocksDb, SnapshotStoreContract,
    testing::Values(
        SnapshotStoreContractParameter{.name = "Threads",
                                       .make = [] { return std::make_unique<RocksDbSnapshotStoreUnderTest>(true); }},
        SnapshotStoreContractParameter{.name = "Pumped",
                                       .make = [] { return std::make_unique<RocksDbSnapshotStoreUnderTest>(false); }}),
    SnapshotStoreContractName);

}  // namespace
}  // namespace fraktor
