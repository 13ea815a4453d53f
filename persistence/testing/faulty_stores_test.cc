#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/memory/memory_snapshot_store.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/testing/faulty_journal.h"
#include "fraktor/persistence/testing/faulty_snapshot_store.h"
#include "fraktor/persistence/testing/forwarding_journal.h"
#include "fraktor/persistence/testing/journal_contract.h"
#include "fraktor/persistence/testing/snapshot_store_contract.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"

namespace fraktor {
namespace {

// Without faults, and with late answers, they keep the contracts.
class LateJournalUnderTest : public JournalUnderTest {
 public:
  JournalStorage& storage() override { return faulty_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }
  PumpedToolbox* toolbox() override { return toolbox_.get(); }

 private:
  std::unique_ptr<SimToolbox> toolbox_ = SimToolbox::Make({.seed = 3}).value();
  std::unique_ptr<SerialExecutor> executor_ = SerialExecutor::Make(*toolbox_, {}).value();
  std::unique_ptr<MemoryJournal> journal_ = MemoryJournal::Open({}).value();
  FaultyJournal faulty_{*journal_, *toolbox_, *executor_, {.max_delay = absl::Milliseconds(50)}};
};

INSTANTIATE_TEST_SUITE_P(
    Late, JournalContract,
    testing::Values(JournalContractParameter{
        .name = "Late", .make = [] { return std::make_unique<LateJournalUnderTest>(); }, .survives_reopen = false}),
    JournalContractName);

// Answers a write with one result for each atomic write, also if all are OK.
class WordyJournal final : public ForwardingJournal {
 public:
  WordyJournal() : ForwardingJournal(MemoryJournal::Open({}).value()) {}

  Future<WriteResults> Write(std::vector<AtomicWrite> writes) override {
    const size_t count = writes.size();
    return journal()->Write(std::move(writes)).Map([count](WriteResults results) {
      results.resize(count);
      return results;
    });
  }
};

class WordyJournalUnderTest : public JournalUnderTest {
 public:
  JournalStorage& storage() override { return journal_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }

 private:
  WordyJournal journal_;
};

INSTANTIATE_TEST_SUITE_P(
    Wordy, JournalContract,
    testing::Values(JournalContractParameter{
        .name = "Wordy", .make = [] { return std::make_unique<WordyJournalUnderTest>(); }, .survives_reopen = false}),
    JournalContractName);

class LateSnapshotStoreUnderTest : public SnapshotStoreUnderTest {
 public:
  SnapshotStorage& storage() override { return faulty_; }
  absl::Status Reopen() override { return absl::UnimplementedError("in memory"); }
  PumpedToolbox* toolbox() override { return toolbox_.get(); }

 private:
  std::unique_ptr<SimToolbox> toolbox_ = SimToolbox::Make({.seed = 3}).value();
  std::unique_ptr<SerialExecutor> executor_ = SerialExecutor::Make(*toolbox_, {}).value();
  std::unique_ptr<MemorySnapshotStore> store_ = MemorySnapshotStore::Open({.toolbox = toolbox_.get()}).value();
  FaultySnapshotStore faulty_{*store_, *toolbox_, *executor_, {.max_delay = absl::Milliseconds(50)}};
};

INSTANTIATE_TEST_SUITE_P(Late, SnapshotStoreContract,
                         testing::Values(SnapshotStoreContractParameter{
                             .name = "Late",
                             .make = [] { return std::make_unique<LateSnapshotStoreUnderTest>(); },
                             .survives_reopen = false}),
                         SnapshotStoreContractName);

class Faulty : public testing::Test {
 protected:
  template <class T>
  typename Future<T>::Result Await(Future<T> future) {
    EXPECT_TRUE(toolbox_->RunUntil([&future] { return future.IsReady(); }, absl::Hours(1)).ok());
    return future.Take();
  }
  static std::vector<AtomicWrite> Writes(uint64_t from, uint64_t to) {
    std::vector<AtomicWrite> writes;
    for (uint64_t number = from; number <= to; ++number) {
      writes.push_back(AtomicWrite::Make(PersistentRepr{.persistence_id = "a", .sequence_nr = number}).value());
    }
    return writes;
  }
  static bool IsKind(const absl::Status& status, JournalErrorKind kind) {
    return ErrorKindOf<JournalErrorKind>(status) == kind;
  }
  size_t Stored() { return Await(journal_->Replay({.persistence_id = "a"}))->size(); }

  std::unique_ptr<SimToolbox> toolbox_ = SimToolbox::Make({.seed = 3}).value();
  std::unique_ptr<SerialExecutor> executor_ = SerialExecutor::Make(*toolbox_, {}).value();
  std::unique_ptr<MemoryJournal> journal_ = MemoryJournal::Open({}).value();
  std::unique_ptr<MemorySnapshotStore> snapshots_ = MemorySnapshotStore::Open({.toolbox = toolbox_.get()}).value();
  FaultyJournal faulty_{*journal_, *toolbox_, *executor_, {}};
  FaultySnapshotStore faulty_snapshots_{*snapshots_, *toolbox_, *executor_, {}};
};

TEST_F(Faulty, FailsWithoutStoring) {
  faulty_.SetFaults({.fail_write = 1, .fail_open = 1, .fail_delete = 1, .fail_read = 1});
  EXPECT_TRUE(IsKind(Await(faulty_.Write(Writes(1, 2))).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_.OpenWriter("a", std::nullopt)).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_.DeleteTo("a", 1, kNoEpoch)), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_.Replay({.persistence_id = "a"})).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_.HighestSequenceNr("a")).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_.EventsByTag({.tag = "red"})).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_.PersistenceIds({})).status(), JournalErrorKind::kIo));
  EXPECT_EQ(faulty_.counts().failed, 7u);
  EXPECT_EQ(Await(journal_->PersistenceIds({}))->ids.size(), 0u);
}

TEST_F(Faulty, StoresAndLosesTheAnswer) {
  faulty_.SetFaults({.lose_answer = 1});
  EXPECT_TRUE(IsKind(Await(faulty_.Write(Writes(1, 2))).status(), JournalErrorKind::kIo));
  EXPECT_EQ(Stored(), 2u);
  EXPECT_EQ(faulty_.counts().answers_lost, 1u);
  // Sent again, it is a success.
  faulty_.SetFaults({});
  EXPECT_EQ(Await(faulty_.Write(Writes(1, 2))).value(), WriteResults());
  EXPECT_EQ(Stored(), 2u);
}

TEST_F(Faulty, RejectsSomeAndStoresTheOthers) {
  faulty_.SetFaults({.reject_write = 0.5});
  std::vector<AtomicWrite> writes = Writes(1, 40);
  // One that the journal itself rejects is still found at its place.
  writes.insert(writes.begin() + 20,
                AtomicWrite::Make(PersistentRepr{.persistence_id = "b", .sequence_nr = 1, .epoch = 9}).value());
  const absl::StatusOr<WriteResults> results = Await(faulty_.Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 41u);
  const absl::StatusOr<EventBatch> stored = Await(journal_->Replay({.persistence_id = "a"}));
  std::vector<uint64_t> expected;
  for (uint64_t i = 0; i < 41; ++i) {
    if ((*results)[i].ok()) expected.push_back(i < 20 ? i + 1 : i);
  }
  std::vector<uint64_t> found;
  for (const StoredEvent& event : *stored) found.push_back(event.sequence_nr);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE((*results)[20].ok());
  EXPECT_GT(faulty_.counts().rejected, 5u);
  EXPECT_LT(faulty_.counts().rejected, 35u);
}

TEST_F(Faulty, SaysThatTheDiskIsFullUntilThereIsRoom) {
  faulty_.SetFaults({.disk_full = true});
  EXPECT_TRUE(IsKind(Await(faulty_.Write(Writes(1, 2))).status(), JournalErrorKind::kDiskFull));
  EXPECT_TRUE(Await(faulty_.Replay({.persistence_id = "a"})).ok());
  faulty_.SetFaults({});
  EXPECT_EQ(Await(faulty_.Write(Writes(1, 2))).value(), WriteResults());
}

TEST_F(Faulty, AnswersLate) {
  faulty_.SetFaults({.min_delay = absl::Seconds(2), .max_delay = absl::Seconds(2)});
  Future<WriteResults> writing = faulty_.Write(Writes(1, 2));
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(1999)).ok());
  EXPECT_FALSE(writing.IsReady());
  EXPECT_EQ(Stored(), 2u);
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(1)).ok());
  EXPECT_TRUE(writing.IsReady());
}

TEST_F(Faulty, RefusesFaultsThatMakeNoSense) {
  const auto expect = [&](const JournalFaults& faults, const std::string& text) {
    FaultyJournal faulty(*journal_, *toolbox_, *executor_, faults);
    faulty_.SetFaults(faults);
    for (FaultyJournal* const journal : {&faulty, &faulty_}) {
      const absl::Status write = Await(journal->Write(Writes(1, 2))).status();
      EXPECT_TRUE(absl::IsInvalidArgument(write) && absl::StrContains(write.message(), text)) << text << ": " << write;
      const absl::Status read = Await(journal->Replay({.persistence_id = "a"})).status();
      EXPECT_EQ(read, write);
    }
  };
  const double none = std::numeric_limits<double>::quiet_NaN();
  expect({.fail_write = -0.1}, "JournalFaults::fail_write is -0.1; a probability is from 0 to 1");
  expect({.lose_answer = 1.5}, "JournalFaults::lose_answer is 1.5");
  expect({.reject_write = none}, "JournalFaults::reject_write is nan");
  expect({.fail_open = 2}, "JournalFaults::fail_open is 2");
  expect({.fail_delete = -1}, "JournalFaults::fail_delete is -1");
  expect({.fail_read = 1.01}, "JournalFaults::fail_read is 1.01");
  expect({.min_delay = absl::Seconds(2)}, "JournalFaults: delays from 2s to 0");
  expect({.min_delay = absl::Seconds(-1)}, "JournalFaults: delays from -1s to 0");
  expect({.max_delay = absl::InfiniteDuration()}, "to inf");
  EXPECT_EQ(Stored(), 0u);
  faulty_.SetFaults({});
  EXPECT_EQ(Await(faulty_.Write(Writes(1, 2))).value(), WriteResults());

  const auto expect_of_snapshots = [&](const SnapshotFaults& faults, const std::string& text) {
    faulty_snapshots_.SetFaults(faults);
    const absl::Status load = Await(faulty_snapshots_.Load("a", {})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(load) && absl::StrContains(load.message(), text)) << text << ": " << load;
  };
  expect_of_snapshots({.fail_open = -1}, "SnapshotFaults::fail_open is -1");
  expect_of_snapshots({.fail_save = -1}, "SnapshotFaults::fail_save is -1");
  expect_of_snapshots({.fail_load = 2}, "SnapshotFaults::fail_load is 2");
  expect_of_snapshots({.fail_delete = none}, "SnapshotFaults::fail_delete is nan");
  expect_of_snapshots({.lose_answer = 1.5}, "SnapshotFaults::lose_answer is 1.5");
  expect_of_snapshots({.min_delay = absl::Seconds(1)}, "SnapshotFaults: delays from 1s to 0");
}

TEST_F(Faulty, SnapshotStoreFails) {
  Snapshot snapshot;
  snapshot.metadata = {.persistence_id = "a", .sequence_nr = 7};
  faulty_snapshots_.SetFaults({.fail_open = 1, .fail_save = 1, .fail_load = 1, .fail_delete = 1});
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.OpenWriter("a", 1)), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.Save(snapshot, kNoEpoch)).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.Load("a", {})).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.Delete("a", 7, kNoEpoch)), JournalErrorKind::kIo));
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.DeleteMatching("a", {}, kNoEpoch)), JournalErrorKind::kIo));
  EXPECT_FALSE(Await(snapshots_->Load("a", {}))->has_value());
  faulty_snapshots_.SetFaults({.disk_full = true});
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.Save(snapshot, kNoEpoch)).status(), JournalErrorKind::kDiskFull));
  faulty_snapshots_.SetFaults({.lose_answer = 1});
  EXPECT_TRUE(IsKind(Await(faulty_snapshots_.Save(snapshot, kNoEpoch)).status(), JournalErrorKind::kIo));
  EXPECT_TRUE(Await(snapshots_->Load("a", {}))->has_value());
  EXPECT_EQ(faulty_snapshots_.failed(), 7u);
}

}  // namespace
}  // namespace fraktor
