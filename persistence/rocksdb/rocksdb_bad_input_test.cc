// What goes wrong from outside, and what is said about it: each error names the id, the number and what to do, and
// nobody else suffers.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/id_cache.h"
#include "fraktor/persistence/rocksdb/prefix_transform.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

testing::AssertionResult Says(const absl::Status& status, JournalErrorKind kind,
                              const std::vector<std::string>& words = {}) {
  if (ErrorKindOf<JournalErrorKind>(status) != kind) {
    return testing::AssertionFailure() << "expected " << JournalErrorKindName(kind) << ", got " << status;
  }
  for (const std::string& word : words) {
    if (std::string(status.message()).find(word) == std::string::npos) {
      return testing::AssertionFailure() << "no \"" << word << "\" in " << status;
    }
  }
  return testing::AssertionSuccess();
}

class BadInput : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(RocksDbJournalOptions options = {}) {
    options.path = path_;
    return RocksDbJournal::Open(*toolbox_, options);
  }

  static PersistentRepr Event(const std::string& id, uint64_t sequence_nr) {
    return {.persistence_id = id, .sequence_nr = sequence_nr, .payload = absl::StrCat(id, "/", sequence_nr)};
  }

  static absl::Status Write(RocksDbJournal& journal, const PersistentRepr& event) {
    std::vector<AtomicWrite> writes;
    writes.push_back(AtomicWrite::Make(event).value());
    const absl::StatusOr<WriteResults> results = journal.Write(std::move(writes)).Wait();
    if (!results.ok()) return results.status();
    return results->empty() ? absl::OkStatus() : results->front();
  }

  void Fill(const std::string& id, uint64_t to) {
    const auto journal = Open().value();
    for (uint64_t number = 1; number <= to; ++number) ASSERT_TRUE(Write(*journal, Event(id, number)).ok());
  }

  // The database as RocksDB sees it, to do things to it that no journal does.
  class Raw {
   public:
    explicit Raw(const std::string& path) {
      std::vector<std::string> names;
      EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), path, &names).ok());
      std::vector<rocksdb::ColumnFamilyDescriptor> families;
      for (const std::string& name : names) {
        rocksdb::ColumnFamilyOptions options;
        options.prefix_extractor = std::make_shared<SizedPrefixTransform>();
        families.emplace_back(name, options);
      }
      const rocksdb::Status opened = rocksdb::DB::Open(rocksdb::DBOptions(), path, families, &handles, &db);
      EXPECT_TRUE(opened.ok()) << opened.ToString();
    }
    ~Raw() {
      for (rocksdb::ColumnFamilyHandle* const handle : handles) {
        EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
      }
      delete db;
    }
    rocksdb::ColumnFamilyHandle* family(std::string_view name) {
      for (rocksdb::ColumnFamilyHandle* const handle : handles) {
        if (handle->GetName() == name) return handle;
      }
      ADD_FAILURE() << name;
      return nullptr;
    }
    // Turns one bit of a value around.
    void Damage(std::string_view name, const std::string& key, size_t byte) {
      std::string value;
      ASSERT_TRUE(db->Get(rocksdb::ReadOptions(), family(name), key, &value).ok());
      ASSERT_LT(byte, value.size());
      value[byte] = static_cast<char>(value[byte] ^ 1);
      ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), family(name), key, value).ok());
    }

    rocksdb::DB* db = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
  };

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("journal");
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
};

TEST_F(BadInput, NamesACorruptRecordAndShowsWhatIsBeforeIt) {
  Fill("a", 5);
  Fill("b", 5);
  Raw(path_).Damage("events", EventKey("a", 3), 20);
  const auto journal = Open().value();
  const absl::StatusOr<EventBatch> before = journal->Replay({.persistence_id = "a"}).Wait();
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->size(), 2u);
  EXPECT_FALSE(before->at_end());
  EXPECT_EQ(before->resume_at(), 3u);
  const absl::Status corrupt = journal->Replay({.persistence_id = "a", .from_sequence_nr = 3}).Wait().status();
  EXPECT_TRUE(Says(corrupt, JournalErrorKind::kCorrupt, {"event 3 of \"a\"", "Restore it from a backup", "verify"}));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(corrupt, "id"), "a");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(corrupt, "nr"), 3);
  // Those after it can be read, and nobody else suffers.
  EXPECT_EQ(journal->Replay({.persistence_id = "a", .from_sequence_nr = 4}).Wait()->size(), 2u);
  EXPECT_EQ(journal->Replay({.persistence_id = "b"}).Wait()->size(), 5u);
  EXPECT_EQ(journal->HighestSequenceNr("a").Wait().value(), 5u);
}

TEST_F(BadInput, NamesAnIdWhoseStateIsCorrupt) {
  Fill("a", 2);
  Fill("b", 2);
  Raw(path_).Damage("ids", "a", 1);
  const auto journal = Open().value();
  EXPECT_TRUE(Says(journal->OpenWriter("a", std::nullopt).Wait().status(), JournalErrorKind::kCorrupt,
                   {"\"a\"", "Restore it from a backup"}));
  EXPECT_TRUE(Says(journal->Replay({.persistence_id = "a"}).Wait().status(), JournalErrorKind::kCorrupt, {"\"a\""}));
  EXPECT_TRUE(Says(journal->DeleteTo("a", 1, kNoEpoch).Wait(), JournalErrorKind::kCorrupt, {"\"a\""}));
  // One request that has both: the other one goes on.
  std::vector<AtomicWrite> writes;
  writes.push_back(AtomicWrite::Make(Event("a", 3)).value());
  writes.push_back(AtomicWrite::Make(Event("b", 3)).value());
  const absl::StatusOr<WriteResults> results = journal->Write(std::move(writes)).Wait();
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_TRUE(Says((*results)[0], JournalErrorKind::kCorrupt, {"event 3 of \"a\""}));
  EXPECT_TRUE((*results)[1].ok()) << (*results)[1];
}

TEST_F(BadInput, NamesARecordOfANewerVersion) {
  Fill("a", 2);
  {
    Raw raw(path_);
    std::string record;
    AppendEventBody(Event("a", 2), record);
    record[0] = 9;
    SealRecord(EventKeyCrc("a", 2), 1, record);
    ASSERT_TRUE(raw.db->Put(rocksdb::WriteOptions(), raw.family("events"), EventKey("a", 2), record).ok());
  }
  const auto journal = Open().value();
  EXPECT_TRUE(Says(journal->Replay({.persistence_id = "a", .from_sequence_nr = 2}).Wait().status(),
                   JournalErrorKind::kNewerSchema, {"event 2 of \"a\"", "version 9", "newer program"}));
}

TEST_F(BadInput, RefusesANewerSchemaAndChangesNothing) {
  Fill("a", 2);
  {
    Raw raw(path_);
    // A newer program may have added a column family, too.
    rocksdb::ColumnFamilyHandle* added = nullptr;
    ASSERT_TRUE(raw.db->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), "novelty", &added).ok());
    raw.handles.push_back(added);
    ASSERT_TRUE(
        raw.db->Put(rocksdb::WriteOptions(), raw.family("default"), "schema", std::string("\x2\0\0\0", 4)).ok());
  }
  std::string opens;
  ASSERT_TRUE(Raw(path_).db->Get(rocksdb::ReadOptions(), "open count", &opens).ok());
  for (const bool read_only : {false, true}) {
    EXPECT_TRUE(Says(Open({.read_only = read_only}).status(), JournalErrorKind::kNewerSchema,
                     {path_, "schema 2", "up to 1", "newer program"}));
  }
  std::string opens_after;
  ASSERT_TRUE(Raw(path_).db->Get(rocksdb::ReadOptions(), "open count", &opens_after).ok());
  EXPECT_EQ(opens, opens_after);
}

TEST_F(BadInput, RefusesADatabaseOfSomethingElse) {
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path_, &db).ok());
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), "k", "v").ok());
    delete db;
  }
  EXPECT_TRUE(Says(Open().status(), JournalErrorKind::kInvalid, {path_, "something else", "another folder"}));
  // A snapshot store is something else, too.
  RocksDbSnapshotStore::Open(*toolbox_, {.path = folder_.path("snapshots")}).value().reset();
  const absl::Status mixed = RocksDbJournal::Open(*toolbox_, {.path = folder_.path("snapshots")}).status();
  EXPECT_TRUE(Says(mixed, JournalErrorKind::kInvalid, {"fraktor-snapshots", "not a fraktor-journal"}));
}

TEST_F(BadInput, NamesTheEventOfATagThatCannotBeRead) {
  {
    const auto journal = Open().value();
    PersistentRepr event = Event("a", 1);
    event.tags = {"red"};
    event.payload = std::string(10'000, 'x');
    ASSERT_TRUE(Write(*journal, event).ok());
  }
  Open().value().reset();  // What is in the log becomes files.
  std::filesystem::path largest;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().extension() != ".sst") continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) largest = entry.path();
  }
  ASSERT_TRUE(std::filesystem::remove(largest));
  const auto journal = Open({.read_only = true, .on_damaged_log = OnDamagedLog::kSkip}).value();
  const absl::Status missing = journal->EventsByTag({.tag = "red"}).Wait().status();
  EXPECT_TRUE(Says(missing, JournalErrorKind::kCorrupt, {"event 1 of \"a\"", largest.filename().string()}));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(missing, "id"), "a");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(missing, "nr"), 1);
}

TEST_F(BadInput, SaysThatTheDatabaseIsLocked) {
  const auto journal = Open().value();
  EXPECT_TRUE(Says(Open().status(), JournalErrorKind::kLocked, {path_, "Another store has it open"}));
  // Looking is possible, and the one that has it goes on.
  ASSERT_TRUE(Write(*journal, Event("a", 1)).ok());
  const auto onlooker = Open({.read_only = true}).value();
  EXPECT_EQ(onlooker->Replay({.persistence_id = "a"}).Wait()->size(), 1u);
  ASSERT_TRUE(Write(*journal, Event("a", 2)).ok());
}

TEST_F(BadInput, OnlyLooksIfItIsOpenedForReading) {
  EXPECT_TRUE(Says(Open({.read_only = true}).status(), JournalErrorKind::kInvalid, {path_, "there is no database"}));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(Says(Open({.create_if_missing = false}).status(), JournalErrorKind::kInvalid, {path_}));
  Fill("a", 3);
  const auto journal = Open({.read_only = true}).value();
  EXPECT_EQ(journal->Replay({.persistence_id = "a"}).Wait()->size(), 3u);
  EXPECT_EQ(journal->HighestSequenceNr("a").Wait().value(), 3u);
  EXPECT_EQ(journal->PersistenceIds({}).Wait()->ids, std::vector<std::string>{"a"});
  EXPECT_TRUE(Says(Write(*journal, Event("a", 4)), JournalErrorKind::kReadOnly, {path_, "open it for writing"}));
  EXPECT_TRUE(Says(journal->OpenWriter("a", std::nullopt).Wait().status(), JournalErrorKind::kReadOnly));
  EXPECT_TRUE(Says(journal->DeleteTo("a", 1, kNoEpoch).Wait(), JournalErrorKind::kReadOnly));
  // Nothing that comes later is seen, so nobody waits for it.
  EXPECT_EQ(journal->AwaitAdvance(JournalSubject::OfId("a"), 2).Wait().value(), 3u);
  Future<uint64_t> waiting = journal->AwaitAdvance(JournalSubject::OfId("a"), 3);
  const std::optional<absl::StatusOr<uint64_t>> waited = waiting.WaitFor(absl::Seconds(10));
  ASSERT_TRUE(waited.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(waited->status())) << waited->status();
  EXPECT_TRUE(Says(waited->status(), JournalErrorKind::kReadOnly, {path_, "live", "open for writing", "again"}));
  EXPECT_TRUE(journal->Close().Wait().ok());
  EXPECT_TRUE(Says(journal->HighestSequenceNr("a").Wait().status(), JournalErrorKind::kClosed));
}

// An answer is there a little before its reader is done with it.
TEST_F(BadInput, MayBeDestroyedRightAfterAnAnswer) {
  Fill("a", 1);
  for (int i = 0; i < 40; ++i) {
    const auto journal = Open({.read_only = i % 2 == 0}).value();
    Future<uint64_t> first = journal->HighestSequenceNr("a");
    Future<uint64_t> second = journal->HighestSequenceNr("a");
    EXPECT_EQ(second.Wait().value(), 1u);
  }
}

TEST_F(BadInput, SaysThatTheFolderCannotBeWritten) {
  Fill("a", 1);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  {
    const BoundByRights bound;
    ASSERT_TRUE(bound.is_bound());
    EXPECT_TRUE(Says(Open().status(), JournalErrorKind::kReadOnly, {path_, "right to write"}));
  }
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
}

TEST_F(BadInput, SaysThatTheParentFolderIsMissing) {
  const absl::Status missing = RocksDbJournal::Open(*toolbox_, {.path = folder_.path("no/such/journal")}).status();
  EXPECT_TRUE(
      Says(missing, JournalErrorKind::kInvalid, {"no/such/journal", "there is no folder", "make that one first"}));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("no")));
}

TEST_F(BadInput, AddsNothingToTheDatabaseOfSomethingElse) {
  const std::string path = folder_.path("snapshots");
  ASSERT_TRUE(RocksDbSnapshotStore::Open(*toolbox_, {.path = path}).ok());
  const auto families = [&path] {
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), path, &names).ok());
    return names;
  };
  const std::vector<std::string> before = families();
  EXPECT_TRUE(Says(RocksDbJournal::Open(*toolbox_, {.path = path}).status(), JournalErrorKind::kInvalid,
                   {path, "this is a fraktor-snapshots, not a fraktor-journal"}));
  EXPECT_EQ(families(), before);
}

TEST_F(BadInput, FailsOnAFullDiskAndGoesOnWhenThereIsRoom) {
  ForgetfulDisk disk;
  const auto journal = Open({.env = disk.env()}).value();
  ASSERT_TRUE(Write(*journal, Event("a", 1)).ok());
  disk.SetFull(true);
  for (uint64_t attempt = 0; attempt < 3; ++attempt) {
    const absl::Status full = Write(*journal, Event("a", 2));
    EXPECT_TRUE(Says(full, JournalErrorKind::kDiskFull, {"event 2 of \"a\"", path_, "make room"}));
    EXPECT_TRUE(Says(journal->OpenWriter("b", std::nullopt).Wait().status(), JournalErrorKind::kDiskFull, {"\"b\""}));
    EXPECT_TRUE(Says(journal->DeleteTo("a", 1, kNoEpoch).Wait(), JournalErrorKind::kDiskFull, {"\"a\""}));
    // Reading goes on.
    EXPECT_EQ(journal->Replay({.persistence_id = "a"}).Wait()->size(), 1u);
    EXPECT_EQ(journal->HighestSequenceNr("a").Wait().value(), 1u);
  }
  disk.SetFull(false);
  const absl::Status again = Write(*journal, Event("a", 2));
  EXPECT_TRUE(again.ok()) << again;
  ASSERT_TRUE(Write(*journal, Event("a", 3)).ok());
  EXPECT_EQ(journal->Replay({.persistence_id = "a"}).Wait()->size(), 3u);
}

TEST_F(BadInput, KeepsWhatIsThereAfterAFullDiskAndALossOfPower) {
  ForgetfulDisk disk;
  {
    const auto journal = Open({.env = disk.env()}).value();
    ASSERT_TRUE(Write(*journal, Event("a", 1)).ok());
    disk.SetFull(true);
    ASSERT_FALSE(Write(*journal, Event("a", 2)).ok());
    disk.SetFull(false);
    ASSERT_TRUE(Write(*journal, Event("a", 2)).ok());
    disk.PowerOff();
  }
  disk.PowerOn({});
  const auto journal = Open({.env = disk.env()}).value();
  EXPECT_EQ(journal->Replay({.persistence_id = "a"}).Wait()->size(), 2u);
}

TEST_F(BadInput, RejectsAnOversizedEventAndGoesOn) {
  const auto journal = Open({.limits = {.max_event_bytes = 1000}}).value();
  ASSERT_TRUE(Write(*journal, Event("a", 1)).ok());
  EXPECT_TRUE(Says(Write(*journal, Event("a", 2).WithPayload(std::string(1001, 'x'))), JournalErrorKind::kTooLarge,
                   {"event 2 of \"a\"", "1001", "limit is 1000", "max_event_bytes"}));
  ASSERT_TRUE(Write(*journal, Event("a", 3)).ok());
}

TEST_F(BadInput, RefusesMoreThanMayWait) {
  // One thread per toolbox worker; the first commit is held up by nothing but speed, so many are sent at once.
  const auto journal = Open({.max_waiting_requests = 4, .max_waiting_bytes = 1 << 20}).value();
  std::vector<Future<WriteResults>> sent;
  for (uint64_t number = 1; number <= 500; ++number) {
    std::vector<AtomicWrite> writes;
    writes.push_back(AtomicWrite::Make(Event(absl::StrCat("id-", number), 1)).value());
    sent.push_back(journal->Write(std::move(writes)));
  }
  size_t refused = 0;
  for (Future<WriteResults>& future : sent) {
    const absl::StatusOr<WriteResults> results = future.Wait();
    if (results.ok()) continue;
    ++refused;
    EXPECT_TRUE(Says(results.status(), JournalErrorKind::kOverloaded, {path_, "limits are 4 and 1048576"}));
  }
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(journal->PersistenceIds({}).Wait()->ids.size(), 500 - refused);
}

TEST_F(BadInput, RefusesOptionsThatMakeNoSense) {
  EXPECT_FALSE(RocksDbJournal::Open(*toolbox_, {}).ok());
  EXPECT_FALSE(Open({.limits = {.max_tags = 0}}).ok());
  EXPECT_FALSE(Open({.reader_threads = 0}).ok());
  EXPECT_FALSE(Open({.max_log_bytes = 0}).ok());
  EXPECT_FALSE(Open({.max_commit_bytes = 0}).ok());
  EXPECT_FALSE(Open({.max_cached_ids = 0}).ok());
  EXPECT_FALSE(RocksDbSnapshotStore::Open(*toolbox_, {}).ok());
  EXPECT_FALSE(RocksDbSnapshotStore::Open(*toolbox_, {.path = path_, .limits = {.max_snapshot_bytes = 0}}).ok());
}

TEST_F(BadInput, NamesACorruptSnapshotAndFindsTheOneBelow) {
  const std::string path = folder_.path("snapshots");
  {
    const auto store = RocksDbSnapshotStore::Open(*toolbox_, {.path = path}).value();
    for (uint64_t number = 1; number <= 2; ++number) {
      Snapshot snapshot;
      snapshot.metadata = {.persistence_id = "a", .sequence_nr = number};
      snapshot.payload = std::string(10'000, 'x');
      ASSERT_TRUE(store->Save(snapshot, kNoEpoch).Wait().ok());
    }
  }
  {
    Raw raw(path);
    const std::unique_ptr<rocksdb::Iterator> records(
        raw.db->NewIterator(rocksdb::ReadOptions(), raw.family("records")));
    records->SeekToLast();
    ASSERT_TRUE(records->Valid());
    raw.Damage("records", records->key().ToString(), 5000);
  }
  const auto store = RocksDbSnapshotStore::Open(*toolbox_, {.path = path}).value();
  EXPECT_TRUE(Says(store->Load("a", {}).Wait().status(), JournalErrorKind::kCorrupt, {"snapshot 2 of \"a\""}));
  const absl::StatusOr<std::optional<Snapshot>> below = store->Load("a", {.max_sequence_nr = 1}).Wait();
  ASSERT_TRUE(below.ok()) << below.status();
  ASSERT_TRUE(below->has_value());
  EXPECT_EQ((*below)->metadata.sequence_nr, 1u);
}

// PER-19: the store does not know the owner of this id, and refuses it. Other ids are served.
TEST_F(BadInput, ChangesNoSnapshotsOfAnIdWhoseOwnerCannotBeRead) {
  const std::string path = folder_.path("snapshots");
  {
    const auto store = RocksDbSnapshotStore::Open(*toolbox_, {.path = path}).value();
    ASSERT_TRUE(store->OpenWriter("a", 7).Wait().ok());
    ASSERT_TRUE(store->Save({.metadata = {.persistence_id = "a", .sequence_nr = 1}}, 7).Wait().ok());
  }
  Raw(path).Damage("default", "owner a", 3);
  const auto store = RocksDbSnapshotStore::Open(*toolbox_, {.path = path}).value();
  EXPECT_TRUE(Says(store->OpenWriter("a", 8).Wait(), JournalErrorKind::kCorrupt, {"\"a\""}));
  EXPECT_TRUE(Says(store->Save({.metadata = {.persistence_id = "a", .sequence_nr = 2}}, 8).Wait().status(),
                   JournalErrorKind::kCorrupt, {"\"a\""}));
  EXPECT_TRUE(Says(store->DeleteMatching("a", {}, 8).Wait(), JournalErrorKind::kCorrupt, {"\"a\""}));
  EXPECT_TRUE(store->Load("a", {}).Wait()->has_value());
  EXPECT_TRUE(store->OpenWriter("b", 1).Wait().ok());
}

TEST_F(BadInput, FailsToSaveASnapshotOnAFullDiskAndGoesOn) {
  ForgetfulDisk disk;
  const auto store =
      RocksDbSnapshotStore::Open(*toolbox_, {.path = folder_.path("snapshots"), .env = disk.env()}).value();
  Snapshot snapshot;
  snapshot.metadata = {.persistence_id = "a", .sequence_nr = 7};
  disk.SetFull(true);
  EXPECT_TRUE(Says(store->OpenWriter("a", 1).Wait(), JournalErrorKind::kDiskFull, {"\"a\""}));
  EXPECT_TRUE(
      Says(store->Save(snapshot, kNoEpoch).Wait().status(), JournalErrorKind::kDiskFull, {"snapshot 7 of \"a\""}));
  EXPECT_FALSE(store->Load("a", {}).Wait()->has_value());
  disk.SetFull(false);
  EXPECT_TRUE(store->Save(snapshot, kNoEpoch).Wait().ok());
}

// Deletions of tagged events go in pieces, and go on.
TEST_F(BadInput, NamesADurableStateThatIsCorruptOrNewer) {
  const std::string path = folder_.path("states");
  {
    const auto store = RocksDbStateStore::Open(*toolbox_, {.path = path}).value();
    for (const char* const id : {"a", "b", "c"}) {
      ASSERT_TRUE(store->Upsert({.persistence_id = id, .revision = 1, .payload = "payload"}, kNoEpoch).Wait().ok());
    }
  }
  {
    Raw raw(path);
    raw.Damage("states", "a", 5);
    std::string record = {3};  // the version
    AppendFixed32(record, ExtendCrc32c(ExtendCrc32c(0, "b"), record));
    ASSERT_TRUE(raw.db->Put(rocksdb::WriteOptions(), raw.family("states"), "b", record).ok());
  }
  const auto store = RocksDbStateStore::Open(*toolbox_, {.path = path}).value();
  EXPECT_TRUE(Says(store->Load("a").Wait().status(), JournalErrorKind::kCorrupt, {"\"a\"", "backup"}));
  EXPECT_TRUE(Says(store->Upsert({.persistence_id = "a", .revision = 2}, kNoEpoch).Wait(), JournalErrorKind::kCorrupt));
  EXPECT_TRUE(Says(store->Load("b").Wait().status(), JournalErrorKind::kNewerSchema, {"\"b\"", "version 3"}));
  EXPECT_EQ(store->Load("c").Wait().value().state.payload, "payload");
  EXPECT_TRUE(store->Upsert({.persistence_id = "c", .revision = 2}, kNoEpoch).Wait().ok());
}

// Version 1 of a record does not say who wrote it.
TEST_F(BadInput, ReadsDurableStatesThatOlderProgramsHaveStored) {
  const std::string path = folder_.path("states");
  { const auto store = RocksDbStateStore::Open(*toolbox_, {.path = path}).value(); }
  {
    Raw raw(path);
    std::string record = {1, 1};  // the version, and that it exists
    AppendVarint(record, 7);      // the revision
    AppendVarint(record, 3);      // the manifest's version, and the manifest
    AppendSized(record, "cart");
    record.append("payload");
    AppendFixed32(record, ExtendCrc32c(ExtendCrc32c(0, "old"), record));
    ASSERT_TRUE(raw.db->Put(rocksdb::WriteOptions(), raw.family("states"), "old", record).ok());
  }
  const auto store = RocksDbStateStore::Open(*toolbox_, {.path = path}).value();
  const DurableState old{
      .persistence_id = "old", .revision = 7, .manifest = "cart", .manifest_version = 3, .payload = "payload"};
  EXPECT_EQ(store->Load("old").Wait().value().state, old);
  DurableState next = old;
  next.writer = {.high = 1, .low = 2};
  EXPECT_TRUE(Says(store->Upsert(next, kNoEpoch).Wait(), JournalErrorKind::kSequenceMismatch));
  next.revision = 8;
  EXPECT_TRUE(store->Upsert(next, kNoEpoch).Wait().ok());
  EXPECT_EQ(store->Load("old").Wait().value().state, next);
}

// RocksDB keeps range deletions apart from events, and must not look for the place of the one from that of the other:
// neither when they are written, together or one after the other, nor when they are read from the log.
TEST_F(BadInput, KeepsEventsBetweenRangeDeletions) {
  uint64_t last = 0;
  for (int round = 0; round < 4; ++round) {
    const auto journal = Open({.sync = false}).value();
    for (int deletions = 0; deletions < 3; ++deletions) {
      std::vector<AtomicWrite> writes;
      for (int i = 0; i < 700; ++i) {
        writes.push_back(AtomicWrite::Make(Event("a", ++last)).value());
        if (i % 7 == 0) writes.push_back(AtomicWrite::Make(Event("b", last)).value());
      }
      // One request after the other, but perhaps in one commit.
      Future<WriteResults> writing = journal->Write(std::move(writes));
      Future<void> deleting = journal->DeleteTo("a", last - 5, kNoEpoch);
      std::vector<AtomicWrite> more = {AtomicWrite::Make(Event("a", ++last)).value()};
      EXPECT_TRUE(journal->Write(std::move(more)).Wait()->empty());
      EXPECT_TRUE(writing.Wait()->empty());
      EXPECT_TRUE(deleting.Wait().ok());
    }
    const absl::StatusOr<EventBatch> events = journal->Replay({.persistence_id = "a"}).Wait();
    ASSERT_TRUE(events.ok()) << events.status();
    ASSERT_EQ(events->size(), 6u);
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ((*events)[i].sequence_nr, last - 5 + i);
    const absl::StatusOr<EventBatch> others =
        journal->Replay({.persistence_id = "b", .limits = {.max_events = 10'000}}).Wait();
    ASSERT_TRUE(others.ok()) << others.status();
    EXPECT_EQ(others->size(), static_cast<size_t>(300 * (round + 1)));
  }
}

TEST_F(BadInput, TakesTheEntriesOfDeletedTagsAway) {
  {
    const auto journal = Open({.sync = false}).value();
    for (uint64_t from = 1; from <= 2000; from += 100) {
      std::vector<AtomicWrite> writes;
      for (uint64_t number = from; number < from + 100; ++number) {
        writes.push_back(AtomicWrite::Make(Event("a", number).WithTags({"red"})).value());
      }
      ASSERT_TRUE(journal->Write(std::move(writes)).Wait()->empty());
    }
    ASSERT_TRUE(journal->DeleteTo("a", 1990, kNoEpoch).Wait().ok());
    EXPECT_EQ(journal->EventsByTag({.tag = "red"}).Wait()->size(), 10u);
    // Four commits later they are gone. An opening comes behind them in the queue.
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(journal->OpenWriter("b", std::nullopt).Wait().ok());
  }
  Raw raw(path_);
  const auto count = [&raw](std::string_view family) {
    size_t keys = 0;
    const std::unique_ptr<rocksdb::Iterator> all(raw.db->NewIterator(rocksdb::ReadOptions(), raw.family(family)));
    for (all->SeekToFirst(); all->Valid(); all->Next()) ++keys;
    return keys;
  };
  EXPECT_EQ(count("events"), 10u);
  EXPECT_EQ(count("index"), 12u);  // and two ids
}

TEST(IdCache, KeepsTheIdsThatAreUsed) {
  IdCache cache(8);
  for (uint64_t i = 0; i < 100; ++i) {
    cache.Insert(absl::StrCat("id-", i), {.purged_to = i});
    ASSERT_NE(cache.Find("id-0"), nullptr) << i;
    cache.Trim();
    EXPECT_LE(cache.size(), 8u);
  }
  ASSERT_NE(cache.Find("id-99"), nullptr);
  EXPECT_EQ(cache.Find("id-99")->purged_to, 99u);
  EXPECT_EQ(cache.Find("id-50"), nullptr);
  cache.Clear();
  EXPECT_EQ(cache.Find("id-0"), nullptr);
}

TEST(IdCache, EvictsNothingBeforeItIsTrimmed) {
  IdCache cache(8);
  for (uint64_t i = 0; i < 100; ++i) cache.Insert(absl::StrCat("id-", i), {.purged_to = i});
  for (uint64_t i = 0; i < 100; ++i) {
    const CachedId* const id = cache.Find(absl::StrCat("id-", i));
    ASSERT_NE(id, nullptr) << i;
    EXPECT_EQ(id->purged_to, i);
  }
  cache.Trim();
  cache.Insert("young", {});
  EXPECT_NE(cache.Find("id-0"), nullptr);
  for (int i = 0; i < 4; ++i) cache.Insert(absl::StrCat("younger-", i), {});
  cache.Trim();
  EXPECT_LE(cache.size(), 8u);
  EXPECT_EQ(cache.Find("id-1"), nullptr);
}

}  // namespace
}  // namespace fraktor
