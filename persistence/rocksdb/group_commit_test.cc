// Operations that a store commits together: how large a group is, what a store knows while one is
// open, and what it knows after one has failed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

// Without threads: all that a test asks for before it waits is there for one group.
class GroupCommit : public testing::Test {
 protected:
  std::unique_ptr<RocksDbJournal> OpenJournal(RocksDbJournalOptions options) {
    options.path = folder_.path("journal");
    options.env = disk_.env();
    return RocksDbJournal::Open(*toolbox_, options).value();
  }

  template <class T>
  typename Future<T>::Result Await(Future<T> future) {
    const absl::Status ran = toolbox_->RunUntil([&future] { return future.IsReady(); }, absl::Hours(1));
    if (!ran.ok()) return ran;
    return future.Take();
  }

  static AtomicWrite WriteOf(const std::string& id, uint64_t first, uint64_t last, size_t payload_bytes) {
    AtomicWrite::Events events;
    for (uint64_t number = first; number <= last; ++number) {
      events.push_back({.persistence_id = id, .sequence_nr = number, .payload = std::string(payload_bytes, 'p')});
    }
    return AtomicWrite::Make(std::move(events)).value();
  }

  // For each id from 0 to `count` - 1 whether the journal, its replay and its list of ids say the
  // same. `stored` is set to how many ids have an event.
  void ExpectOneTruth(RocksDbJournal& journal, size_t count, size_t& stored) {
    stored = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      const std::string id = absl::StrCat("id-", i);
      const absl::StatusOr<EventBatch> events = Await(journal.Replay({.persistence_id = id}));
      const absl::StatusOr<WriterOpened> opened = Await(journal.OpenWriter(id, std::nullopt));
      ASSERT_TRUE(events.ok()) << events.status();
      ASSERT_TRUE(opened.ok()) << opened.status();
      const uint64_t last = events->empty() ? 0 : events->back().sequence_nr;
      if (opened->highest_sequence_nr != last || opened->epoch != 1) ++wrong;
      if (last != 0) ++stored;
    }
    EXPECT_EQ(wrong, 0u);
    const absl::StatusOr<IdBatch> ids = Await(journal.PersistenceIds({.max_ids = 10 * count}));
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(ids->ids.size(), count);
  }

  TemporaryFolder folder_;
  ForgetfulDisk disk_;
  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
};

TEST_F(GroupCommit, DividesALargeRequestIntoSeveralCommits) {
  const auto journal = OpenJournal({.max_commit_bytes = size_t{1} << 20});
  std::vector<AtomicWrite> writes;
  for (int i = 0; i < 100; ++i) writes.push_back(WriteOf(absl::StrCat("id-", i), 1, 1, 100'000));
  const absl::StatusOr<WriteResults> results = Await(journal->Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->empty());
  // A commit ends with the atomic write that reaches the limit: eleven of 100 000 bytes.
  EXPECT_EQ(journal->statistics().commits, 10u);
  EXPECT_EQ(journal->statistics().events, 100u);
  EXPECT_EQ(journal->statistics().requests, 1u);
  // An atomic write is never divided.
  std::vector<AtomicWrite> one;
  one.push_back(WriteOf("large", 1, 30, 100'000));
  ASSERT_TRUE(Await(journal->Write(std::move(one))).ok());
  EXPECT_EQ(journal->statistics().commits, 11u);
  size_t stored = 0;
  ASSERT_TRUE(Await(journal->OpenWriter("large", std::nullopt)).ok());
  for (int i = 0; i < 100; ++i) stored += Await(journal->Replay({.persistence_id = absl::StrCat("id-", i)}))->size();
  EXPECT_EQ(stored, 100u);
}

// A request is divided: some commits are made and the next one fails.
TEST_F(GroupCommit, KnowsWhatIsStoredOfARequestWhoseLastCommitsFail) {
  constexpr size_t kIds = 1100;
  const auto journal = OpenJournal({.max_commit_bytes = 100'000, .max_cached_ids = 100});
  Future<uint64_t> first = journal->AwaitAdvance(JournalSubject::OfId("id-0"), 0);
  std::vector<AtomicWrite> writes;
  for (size_t i = 0; i < kIds; ++i) writes.push_back(WriteOf(absl::StrCat("id-", i), 1, 1, 1000));
  Future<WriteResults> writing = journal->Write(std::move(writes));
  ASSERT_TRUE(toolbox_->RunUntil([&] { return journal->statistics().commits >= 3; }, absl::Hours(1)).ok());
  disk_.SetFull(true);
  const absl::Status failed = Await(std::move(writing)).status();
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(failed), JournalErrorKind::kDiskFull) << failed;
  // Queries hear of what is stored, although the request as a whole failed.
  ASSERT_TRUE(first.IsReady());
  EXPECT_EQ(first.Take().value(), 1u);
  disk_.SetFull(false);
  size_t stored = 0;
  ExpectOneTruth(*journal, kIds, stored);
  EXPECT_GT(stored, 100u);
  EXPECT_LT(stored, kIds - 100);
}

TEST_F(GroupCommit, ForgetsTheStatesOfAGroupThatFailed) {
  constexpr size_t kIds = 1100;
  const auto journal = OpenJournal({.max_cached_ids = 1000});
  disk_.SetFull(true);
  std::vector<AtomicWrite> writes;
  for (size_t i = 0; i < kIds; ++i) writes.push_back(WriteOf(absl::StrCat("id-", i), 1, 3, 1000));
  const absl::Status failed = Await(journal->Write(std::move(writes))).status();
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(failed), JournalErrorKind::kDiskFull) << failed;
  disk_.SetFull(false);
  size_t stored = 0;
  ExpectOneTruth(*journal, kIds, stored);
  EXPECT_EQ(stored, 0u);
}

// Events with tags are removed 512 at a time, behind other operations.
TEST_F(GroupCommit, GoesOnRemovingDeletedEventsWhenItIsOpenedAgain) {
  for (const bool crashes : {false, true}) {
    const std::string id = crashes ? "crashes" : "closes";
    {
      const auto journal = OpenJournal({});
      std::vector<AtomicWrite> writes;
      for (uint64_t number = 1; number <= 2000; ++number) {
        writes.push_back(
            AtomicWrite::Make(PersistentRepr{.persistence_id = id, .sequence_nr = number, .tags = {"red"}}).value());
      }
      ASSERT_TRUE(Await(journal->Write(std::move(writes))).ok());
      ASSERT_TRUE(Await(journal->DeleteTo(id, 1990, kNoEpoch)).ok());
      if (crashes) disk_.PowerOff();
    }
    if (crashes) disk_.PowerOn({});
    {
      const auto journal = OpenJournal({});
      ASSERT_TRUE(toolbox_->RunUntilIdle().ok());
      EXPECT_EQ(journal->statistics().commits, 3u) << id;
      const absl::StatusOr<EventBatch> left = Await(journal->Replay({.persistence_id = id}));
      ASSERT_TRUE(left.ok()) << left.status();
      EXPECT_EQ(left->size(), 10u);
    }
    const auto journal = OpenJournal({});
    ASSERT_TRUE(toolbox_->RunUntilIdle().ok());
    EXPECT_EQ(journal->statistics().commits, 0u) << id;
  }
}

class SnapshotGroups : public GroupCommit {
 protected:
  static constexpr uint64_t kSnapshots = 3000;

  Future<SnapshotMetadata> Save(const std::string& id, uint64_t number) {
    return store_->Save({.metadata = {.persistence_id = id, .sequence_nr = number}, .payload = "state"}, kNoEpoch);
  }
  // How often the disk syncs while the store does what `ask` asks it for. All of it must succeed.
  template <class Ask>
  uint64_t SyncsOf(Ask ask) {
    std::vector<Future<SnapshotMetadata>> saves;
    std::vector<Future<void>> deletions;
    const uint64_t before = disk_.sync_count();
    ask(saves, deletions);
    for (Future<SnapshotMetadata>& save : saves) EXPECT_TRUE(Await(std::move(save)).ok());
    for (Future<void>& deletion : deletions) EXPECT_TRUE(Await(std::move(deletion)).ok());
    return disk_.sync_count() - before;
  }
  // The highest number that is there; 0 for none.
  uint64_t Newest(const std::string& id, const SnapshotSelectionCriteria& criteria = {}) {
    const absl::StatusOr<std::optional<Snapshot>> found = Await(store_->Load(id, criteria));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() && found->has_value() ? (*found)->metadata.sequence_nr : 0;
  }

  std::unique_ptr<RocksDbSnapshotStore> store_ =
      RocksDbSnapshotStore::Open(*toolbox_, {.path = folder_.path("snapshots"), .env = disk_.env()}).value();
};

TEST_F(SnapshotGroups, DeleteManySnapshotsOfOneIdWithOneSync) {
  EXPECT_LE(SyncsOf([&](auto& saves, auto&) {
              for (uint64_t number = 1; number <= kSnapshots; ++number) saves.push_back(Save("a", number));
            }),
            3u);
  EXPECT_LE(SyncsOf([&](auto&, auto& deletions) {
              for (uint64_t number = 1; number <= kSnapshots; ++number)
                deletions.push_back(store_->Delete("a", number, kNoEpoch));
            }),
            3u);
  EXPECT_EQ(Newest("a"), 0u);
}

TEST_F(SnapshotGroups, DeleteSnapshotsOfManyIdsWithOneSync) {
  SyncsOf([&](auto& saves, auto&) {
    for (uint64_t i = 1; i <= kSnapshots; ++i) saves.push_back(Save(absl::StrCat("id-", i), 7));
  });
  EXPECT_LE(SyncsOf([&](auto&, auto& deletions) {
              for (uint64_t i = 1; i <= kSnapshots; ++i) {
                deletions.push_back(store_->DeleteMatching(absl::StrCat("id-", i), {}, kNoEpoch));
              }
            }),
            3u);
  for (uint64_t i = 1; i <= kSnapshots; i += 99) EXPECT_EQ(Newest(absl::StrCat("id-", i)), 0u);
}

// As actors with a retention do: a snapshot, and the deletion of those before it.
TEST_F(SnapshotGroups, DeleteWhatTheSameGroupHasSaved) {
  EXPECT_LE(SyncsOf([&](auto& saves, auto& deletions) {
              for (uint64_t number = 1; number <= kSnapshots; ++number) {
                const std::string id = absl::StrCat("id-", number % 100);
                saves.push_back(Save(id, number));
                deletions.push_back(store_->DeleteMatching(id, {.max_sequence_nr = number - 1}, kNoEpoch));
              }
            }),
            3u);
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string id = absl::StrCat("id-", i);
    const uint64_t newest = Newest(id);
    EXPECT_GT(newest, kSnapshots - 100);
    EXPECT_EQ(Newest(id, {.max_sequence_nr = newest - 1}), 0u);
  }
}

}  // namespace
}  // namespace fraktor
