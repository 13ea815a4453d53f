#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_disk.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/memory/memory_state_store.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/journal_contract.h"
#include "fraktor/persistence/testing/snapshot_store_contract.h"
#include "fraktor/persistence/testing/state_store_contract.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

class MemoryJournalUnderTest : public JournalUnderTest {
 public:
  MemoryJournalUnderTest() : journal_(MemoryJournal::Open({}).value()) {}
  JournalStorage& storage() override { return *journal_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }

 private:
  std::unique_ptr<MemoryJournal> journal_;
};

// On a disk, and slow: under simulation.
class SimulatedJournalUnderTest : public JournalUnderTest {
 public:
  SimulatedJournalUnderTest() { EXPECT_TRUE(Reopen().ok()); }
  JournalStorage& storage() override { return *journal_; }
  absl::Status Reopen() override {
    journal_.reset();
    absl::StatusOr<std::unique_ptr<MemoryJournal>> opened = MemoryJournal::Open({.disk = disk_,
                                                                                 .toolbox = toolbox_.get(),
                                                                                 .min_delay = absl::Milliseconds(1),
                                                                                 .max_delay = absl::Milliseconds(20)});
    if (!opened.ok()) return opened.status();
    journal_ = *std::move(opened);
    return absl::OkStatus();
  }
  PumpedToolbox* toolbox() override { return toolbox_.get(); }

 private:
  std::unique_ptr<SimToolbox> toolbox_ = SimToolbox::Make({.seed = 7}).value();
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<MemoryJournal> journal_;
};

// PER-21
INSTANTIATE_TEST_SUITE_P(
    Memory, JournalContract,
    testing::Values(JournalContractParameter{.name = "Memory",
                                             .make = [] { return std::make_unique<MemoryJournalUnderTest>(); },
                                             .survives_reopen = false},
                    JournalContractParameter{.name = "Simulated",
                                             .make = [] { return std::make_unique<SimulatedJournalUnderTest>(); }}),
    JournalContractName);

class MemoryStateStoreUnderTest : public StateStoreUnderTest {
 public:
  StateStorage& storage() override { return *store_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }

 private:
  const std::unique_ptr<MemoryStateStore> store_ =
      MemoryStateStore::Open({.limits = {.max_state_bytes = size_t{1} << 20}}).value();
};

INSTANTIATE_TEST_SUITE_P(Memory, StateStoreContract,
                         testing::Values(StateStoreContractParameter{
                             .name = "Memory",
                             .make = [] { return std::make_unique<MemoryStateStoreUnderTest>(); },
                             .survives_reopen = false}),
                         StateStoreContractName);

class MemorySnapshotStoreUnderTest : public SnapshotStoreUnderTest {
 public:
  MemorySnapshotStoreUnderTest() : store_(MemorySnapshotStore::Open({.toolbox = toolbox_.get()}).value()) {}
  SnapshotStorage& storage() override { return *store_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }

 private:
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  std::unique_ptr<MemorySnapshotStore> store_;
};

class SimulatedSnapshotStoreUnderTest : public SnapshotStoreUnderTest {
 public:
  SimulatedSnapshotStoreUnderTest()
      : store_(MemorySnapshotStore::Open({.toolbox = toolbox_.get(), .max_delay = absl::Seconds(1)}).value()) {}
  SnapshotStorage& storage() override { return *store_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }
  PumpedToolbox* toolbox() override { return toolbox_.get(); }

 private:
  std::unique_ptr<SimToolbox> toolbox_ = SimToolbox::Make({.seed = 7}).value();
  std::unique_ptr<MemorySnapshotStore> store_;
};

// PER-21
INSTANTIATE_TEST_SUITE_P(
    Memory, SnapshotStoreContract,
    testing::Values(
        SnapshotStoreContractParameter{.name = "Memory",
                                       .make = [] { return std::make_unique<MemorySnapshotStoreUnderTest>(); },
                                       .survives_reopen = false},
        SnapshotStoreContractParameter{.name = "Simulated",
                                       .make = [] { return std::make_unique<SimulatedSnapshotStoreUnderTest>(); },
                                       .survives_reopen = false}),
    SnapshotStoreContractName);

std::vector<AtomicWrite> Writes(uint64_t from, uint64_t to) {
  std::vector<AtomicWrite> writes;
  for (uint64_t number = from; number <= to; ++number) {
    writes.push_back(
        AtomicWrite::Make(PersistentRepr{.persistence_id = "a", .sequence_nr = number, .payload = "payload"}).value());
  }
  return writes;
}

size_t CountOf(MemoryJournal& journal) { return journal.Replay({.persistence_id = "a"}).Take()->size(); }

// PER-1
TEST(MemoryJournal, AnswersAtOnce) {
  const auto journal = MemoryJournal::Open({}).value();
  Future<WriteResults> writing = journal->Write(Writes(1, 2));
  ASSERT_TRUE(writing.IsReady());
  EXPECT_TRUE(writing.Take().ok());
  EXPECT_TRUE(journal->Replay({.persistence_id = "a"}).IsReady());
  EXPECT_TRUE(journal->HighestSequenceNr("a").IsReady());
  EXPECT_TRUE(journal->DeleteTo("a", 1, kNoEpoch).IsReady());
  EXPECT_TRUE(journal->OpenWriter("a", std::nullopt).IsReady());
}

TEST(MemoryJournal, AnswersLaterIfItIsAskedToDelay) {
  const auto toolbox = LocalToolbox::Make({}).value();
  const auto journal =
      MemoryJournal::Open(
          {.toolbox = toolbox.get(), .min_delay = absl::Milliseconds(5), .max_delay = absl::Milliseconds(5)})
          .value();
  Future<WriteResults> writing = journal->Write(Writes(1, 2));
  ASSERT_TRUE(toolbox->RunFor(absl::Milliseconds(4)).ok());
  EXPECT_FALSE(writing.IsReady());
  ASSERT_TRUE(toolbox->RunFor(absl::Milliseconds(1)).ok());
  ASSERT_TRUE(writing.IsReady());
  EXPECT_TRUE(writing.Take().ok());
}

TEST(MemoryJournal, RefusesOptionsThatMakeNoSense) {
  EXPECT_FALSE(MemoryJournal::Open({.max_delay = absl::Seconds(1)}).ok());
  EXPECT_FALSE(MemoryJournal::Open({.min_delay = absl::Seconds(-1)}).ok());
  EXPECT_FALSE(MemoryJournal::Open({.limits = {.max_tags = 0}}).ok());
  EXPECT_FALSE(MemorySnapshotStore::Open({}).ok());
}

TEST(MemoryJournal, KeepsWhatItSyncedOverACrash) {
  const auto disk = std::make_shared<MemoryDisk>();
  auto journal = MemoryJournal::Open({.disk = disk}).value();
  ASSERT_EQ(journal->Write(Writes(1, 3)).Take().value(), WriteResults());
  disk->Crash();
  journal = MemoryJournal::Open({.disk = disk}).value();
  EXPECT_EQ(CountOf(*journal), 3u);
  EXPECT_EQ(journal->dropped_bytes(), 0u);
}

TEST(MemoryJournal, LosesTheTailInACrashIfItDoesNotSync) {
  const auto disk = std::make_shared<MemoryDisk>();
  auto journal = MemoryJournal::Open({.disk = disk}).value();
  ASSERT_EQ(journal->Write(Writes(1, 3)).Take().value(), WriteResults());
  journal = MemoryJournal::Open({.disk = disk, .sync = false}).value();
  ASSERT_EQ(journal->Write(Writes(4, 5)).Take().value(), WriteResults());
  EXPECT_EQ(CountOf(*journal), 5u);
  disk->Crash();
  journal = MemoryJournal::Open({.disk = disk}).value();
  EXPECT_EQ(CountOf(*journal), 3u);
  EXPECT_EQ(journal->HighestSequenceNr("a").Take().value(), 3u);
}

TEST(MemoryJournal, CutsATornEndOffAndSaysSo) {
  const auto disk = std::make_shared<MemoryDisk>();
  auto journal = MemoryJournal::Open({.disk = disk, .sync = false}).value();
  ASSERT_EQ(journal->Write(Writes(1, 3)).Take().value(), WriteResults());
  disk->Sync();
  const size_t before = disk->size();
  ASSERT_EQ(journal->Write(Writes(4, 4)).Take().value(), WriteResults());
  const size_t frame = disk->size() - before;
  for (size_t kept = 0; kept <= frame; ++kept) {
    const auto torn = std::make_shared<MemoryDisk>();
    ASSERT_TRUE(torn->Append(disk->contents().substr(0, before)).ok());
    torn->Sync();
    ASSERT_TRUE(torn->Append(disk->contents().substr(before)).ok());
    torn->Crash({.kept_unsynced_bytes = kept});
    auto again = MemoryJournal::Open({.disk = torn}).value();
    EXPECT_EQ(CountOf(*again), kept == frame ? 4u : 3u) << kept;
    EXPECT_EQ(again->dropped_bytes(), kept == frame ? 0u : kept) << kept;
    // And it goes on from there.
    ASSERT_EQ(again->Write(Writes(kept == frame ? 5 : 4, 6)).Take().value(), WriteResults());
    again = MemoryJournal::Open({.disk = torn}).value();
    EXPECT_EQ(CountOf(*again), 6u) << kept;
  }
}

TEST(MemoryJournal, StopsAtADamagedFrame) {
  const auto disk = std::make_shared<MemoryDisk>();
  auto journal = MemoryJournal::Open({.disk = disk}).value();
  ASSERT_EQ(journal->Write(Writes(1, 3)).Take().value(), WriteResults());
  const size_t good = disk->size();
  ASSERT_EQ(journal->Write(Writes(4, 5)).Take().value(), WriteResults());
  disk->Damage(good + 20);
  journal = MemoryJournal::Open({.disk = disk}).value();
  EXPECT_EQ(CountOf(*journal), 3u);
  EXPECT_GT(journal->dropped_bytes(), 20u);
}

TEST(MemoryJournal, StoresNothingOnAFullDiskAndGoesOnWhenThereIsRoom) {
  const auto disk = std::make_shared<MemoryDisk>();
  const auto journal = MemoryJournal::Open({.disk = disk}).value();
  ASSERT_EQ(journal->Write(Writes(1, 3)).Take().value(), WriteResults());
  disk->set_capacity(disk->size() + 10);
  const absl::Status full = journal->Write(Writes(4, 5)).Take().status();
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(full), JournalErrorKind::kDiskFull) << full;
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(journal->OpenWriter("a", std::nullopt).Take().status()),
            JournalErrorKind::kDiskFull);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(journal->DeleteTo("a", 1, kNoEpoch).Take()), JournalErrorKind::kDiskFull);
  EXPECT_EQ(CountOf(*journal), 3u);
  disk->set_capacity(1 << 20);
  ASSERT_EQ(journal->Write(Writes(4, 5)).Take().value(), WriteResults());
  EXPECT_EQ(CountOf(*journal), 5u);
}

}  // namespace
}  // namespace fraktor
