// What is in the folder that a store is opened with: nothing, half a database, something else, no room.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/rocksdb_state_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

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

// The files and what is in them, but for RocksDB's own text.
std::map<std::string, std::string> Contents(const std::string& path) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "LOG") || name == "LOCK") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    contents[name] = std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

class Folder : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(RocksDbJournalOptions options = {}) {
    options.path = path_;
    return RocksDbJournal::Open(*toolbox_, options);
  }

  static void Write(RocksDbJournal& journal, uint64_t number) {
    std::vector<AtomicWrite> writes;
    writes.push_back(
        AtomicWrite::Make(PersistentRepr{.persistence_id = "a", .sequence_nr = number, .payload = "payload"}).value());
    const absl::StatusOr<WriteResults> results = journal.Write(std::move(writes)).Wait();
    ASSERT_TRUE(results.ok() && results->empty()) << results.status();
  }

  // Events in tables and in the log.
  void Fill() {
    for (uint64_t number = 1; number <= 4; number += 2) {
      const auto journal = Open().value();
      Write(*journal, number);
      Write(*journal, number + 1);
    }
  }

  void ExpectTheEvents() {
    const auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ((*journal)->Replay({.persistence_id = "a"}).Wait()->size(), 4u);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("journal");
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
};

TEST_F(Folder, IsNotTakenForEmptyIfOnlyCurrentIsMissing) {
  Fill();
  const std::string current = path_ + "/CURRENT";
  std::filesystem::rename(current, folder_.path("CURRENT"));
  const std::map<std::string, std::string> before = Contents(path_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const bool read_only : {false, true}) {
      EXPECT_TRUE(Says(Open({.read_only = read_only}).status(), JournalErrorKind::kCorrupt,
                       {path_, "CURRENT is missing", ".sst", "incomplete copy", "from a backup"}));
      EXPECT_EQ(Contents(path_), before);
    }
  }
  std::filesystem::rename(folder_.path("CURRENT"), current);
  ExpectTheEvents();
}

// Whichever files of a database are there without CURRENT.
TEST_F(Folder, IsNotTakenForEmptyByAnyFileOfADatabase) {
  for (const char* const name : {"000012.sst", "000012.log", "000012.blob", "MANIFEST-000005", "OPTIONS-000007"}) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
    std::ofstream(path_ + "/" + name) << "content";
    const std::map<std::string, std::string> before = Contents(path_);
    EXPECT_TRUE(Says(Open().status(), JournalErrorKind::kCorrupt, {"CURRENT is missing", name}));
    EXPECT_EQ(Contents(path_), before) << name;
  }
}

TEST_F(Folder, IsRefusedIfAFileOfTheDatabaseIsMissingOrDamaged) {
  Fill();
  std::string manifest;
  std::string table;
  for (const auto& [name, content] : Contents(path_)) {
    if (absl::StartsWith(name, "MANIFEST")) manifest = name;
    if (absl::EndsWith(name, ".sst")) table = name;
  }
  ASSERT_FALSE(manifest.empty());
  ASSERT_FALSE(table.empty());
  std::filesystem::copy(path_, folder_.path("image"), std::filesystem::copy_options::recursive);
  for (const std::string& name : {std::string("CURRENT"), manifest, table}) {
    for (const bool is_missing : {false, true}) {
      if (name == "CURRENT" && is_missing) continue;
      std::filesystem::remove_all(path_);
      std::filesystem::copy(folder_.path("image"), path_, std::filesystem::copy_options::recursive);
      if (is_missing) {
        std::filesystem::remove(path_ + "/" + name);
      } else {
        std::filesystem::resize_file(path_ + "/" + name, 3);
      }
      const std::map<std::string, std::string> before = Contents(path_);
      for (const bool read_only : {false, true}) {
        EXPECT_TRUE(Says(Open({.read_only = read_only}).status(), JournalErrorKind::kCorrupt,
                         {path_, "from a backup", "journal export --skip-corrupt"}))
            << name << " missing: " << is_missing;
        EXPECT_EQ(Contents(path_), before) << name;
      }
    }
  }
}

// What is said of a journal would not help.
TEST_F(Folder, SaysWhatToDoAboutADamagedSnapshotStore) {
  const std::string snapshots = folder_.path("snapshots");
  const std::string states = folder_.path("states");
  ASSERT_TRUE(RocksDbSnapshotStore::Open(*toolbox_, {.path = snapshots}).ok());
  ASSERT_TRUE(RocksDbStateStore::Open(*toolbox_, {.path = states}).ok());
  std::filesystem::resize_file(snapshots + "/CURRENT", 3);
  std::filesystem::resize_file(states + "/CURRENT", 3);
  const absl::Status snapshot = RocksDbSnapshotStore::Open(*toolbox_, {.path = snapshots}).status();
  const absl::Status state = RocksDbStateStore::Open(*toolbox_, {.path = states}).status();
  EXPECT_TRUE(Says(snapshot, JournalErrorKind::kCorrupt, {snapshots, "from a backup", "move it away"}));
  EXPECT_TRUE(Says(state, JournalErrorKind::kCorrupt, {states, "from a backup"}));
  EXPECT_FALSE(absl::StrContains(snapshot.message(), "`journal")) << snapshot;
  EXPECT_FALSE(absl::StrContains(state.message(), "`journal")) << state;
}

TEST_F(Folder, IsRefusedIfSomethingElseIsInIt) {
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/data.txt") << "x\n";
  std::filesystem::create_directory(path_ + "/pictures");
  const std::vector<std::string> words = {path_, "data.txt, pictures", "empty or not there yet"};
  EXPECT_TRUE(Says(Open().status(), JournalErrorKind::kInvalid, words));
  // Whoever only looks does not want a new one.
  EXPECT_TRUE(Says(Open({.read_only = true}).status(), JournalErrorKind::kInvalid,
                   {path_, "data.txt, pictures", "the folder that a store was opened with"}));
  EXPECT_TRUE(Says(RocksDbSnapshotStore::Open(*toolbox_, {.path = path_}).status(), JournalErrorKind::kInvalid, words));
  EXPECT_TRUE(Says(RocksDbStateStore::Open(*toolbox_, {.path = path_}).status(), JournalErrorKind::kInvalid, words));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 2);
}

TEST_F(Folder, MayBeTheRootOfAFileSystem) {
  std::filesystem::create_directory(path_);
  std::filesystem::create_directory(path_ + "/lost+found");
  Fill();
  ExpectTheEvents();
}

TEST_F(Folder, IsNotAFile) {
  std::ofstream(path_) << "x\n";
  for (const bool read_only : {false, true}) {
    EXPECT_TRUE(Says(Open({.read_only = read_only}).status(), JournalErrorKind::kInvalid, {path_, "this is a file"}));
  }
}

TEST_F(Folder, SaysThatItMayNotBeRead) {
  Fill();
  std::filesystem::permissions(path_, std::filesystem::perms::none);
  {
    const BoundByRights bound;
    ASSERT_TRUE(bound.is_bound());
    EXPECT_TRUE(Says(Open({.read_only = true}).status(), JournalErrorKind::kReadOnly, {path_, "the right to read"}));
  }
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
}

TEST_F(Folder, IsNotMadeForOptionsThatMakeNoSense) {
  for (const int threads : {0, 65}) {
    const std::string value = absl::StrCat("::reader_threads is ", threads);
    const auto refuses = [&](const absl::Status& status, const std::string& name) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), name + value)) << status;
      EXPECT_FALSE(std::filesystem::exists(path_)) << name;
    };
    refuses(Open({.reader_threads = threads}).status(), "RocksDbJournalOptions");
    refuses(RocksDbSnapshotStore::Open(*toolbox_, {.path = path_, .reader_threads = threads}).status(),
            "RocksDbSnapshotStoreOptions");
    refuses(RocksDbStateStore::Open(*toolbox_, {.path = path_, .reader_threads = threads}).status(),
            "RocksDbStateStoreOptions");
  }
  const absl::Status skips = Open({.on_damaged_log = OnDamagedLog::kSkip}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(skips)) << skips;
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// RocksDB as Debian compiles it ends the process if it has no room while it opens.
TEST_F(Folder, IsNotOpenedOnAFullDisk) {
  ForgetfulDisk disk;
  disk.SetFull(true);
  const std::vector<std::string> words = {path_, "Make room", "open it again"};
  EXPECT_TRUE(Says(Open({.env = disk.env()}).status(), JournalErrorKind::kDiskFull, words));
  EXPECT_TRUE(Says(RocksDbSnapshotStore::Open(*toolbox_, {.path = path_, .env = disk.env()}).status(),
                   JournalErrorKind::kDiskFull, words));
  EXPECT_TRUE(Says(RocksDbStateStore::Open(*toolbox_, {.path = path_, .env = disk.env()}).status(),
                   JournalErrorKind::kDiskFull, words));
  EXPECT_FALSE(std::filesystem::exists(path_));
  Fill();
  const std::map<std::string, std::string> before = Contents(path_);
  EXPECT_TRUE(Says(Open({.env = disk.env()}).status(), JournalErrorKind::kDiskFull, words));
  EXPECT_EQ(Contents(path_), before);
  // Looking needs no room.
  EXPECT_TRUE(Open({.read_only = true, .env = disk.env()}).ok());
  disk.SetFull(false);
  ExpectTheEvents();
}

// Copies the folder before each change, which is what a process leaves that is killed there.
class Recorder final : public rocksdb::FileSystemWrapper {
 public:
  Recorder(std::string path, std::string states)
      : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()),
        path_(std::move(path)),
        states_(std::move(states)) {}

  const char* Name() const override { return "Recorder"; }
  size_t count() const {
    MutexLock lock(mutex_);
    return count_;
  }
  std::string state(size_t i) const { return absl::StrCat(states_, i); }

  // Nothing changes while it copies: files are taken away by a thread of their own.
  void Record() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::filesystem::exists(path_)) return;
    std::filesystem::copy(path_, state(count_), std::filesystem::copy_options::recursive);
    ++count_;
  }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override {
    MutexLock lock(mutex_);
    Record();
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const IOStatus made = target()->NewWritableFile(path, options, &file, debug);
    // Texts change often and do not count.
    if (made.ok() && path.find("/LOG") == std::string::npos) file = std::make_unique<File>(*this, std::move(file));
    *result = std::move(file);
    return made;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    MutexLock lock(mutex_);
    Record();
    return target()->RenameFile(from, to, options, debug);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    MutexLock lock(mutex_);
    Record();
    return target()->DeleteFile(path, options, debug);
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(Recorder& recorder, std::unique_ptr<rocksdb::FSWritableFile> file)
        : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), recorder_(recorder) {}

    IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options, IODebugContext* debug) override {
      MutexLock lock(recorder_.mutex_);
      recorder_.Record();
      return FSWritableFileOwnerWrapper::Append(bytes, options, debug);
    }
    IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options,
                    const rocksdb::DataVerificationInfo& verification, IODebugContext* debug) override {
      MutexLock lock(recorder_.mutex_);
      recorder_.Record();
      return FSWritableFileOwnerWrapper::Append(bytes, options, verification, debug);
    }

   private:
    Recorder& recorder_;
  };

  const std::string path_;
  const std::string states_;
  mutable Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(Folder, IsFinishedIfItsMakingWasInterruptedAnywhere) {
  const auto recorder = std::make_shared<Recorder>(path_, folder_.path("state-"));
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(recorder);
  ASSERT_TRUE(Open({.env = env.get()}).ok());
  const size_t states = recorder->count();
  ASSERT_GT(states, 15u);
  size_t unfinished = 0;
  for (size_t i = 0; i < states; ++i) {
    SCOPED_TRACE(absl::StrCat("state ", i));
    std::filesystem::remove_all(path_);
    std::filesystem::copy(recorder->state(i), path_, std::filesystem::copy_options::recursive);
    const absl::Status looked = Open({.read_only = true}).status();
    if (!looked.ok()) {
      ++unfinished;
      EXPECT_TRUE(Says(looked, JournalErrorKind::kInvalid, {path_}));
    }
    Fill();
    ExpectTheEvents();
  }
  EXPECT_GT(unfinished, 5u);
}

// Killed while it opens, after it was killed while it wrote.
TEST_F(Folder, IsOpenedIfItsRecoveryWasInterruptedAnywhere) {
  Fill();
  for (const auto& [name, content] : Contents(path_)) {
    if (absl::EndsWith(name, ".log")) std::ofstream(path_ + "/" + name, std::ios::binary | std::ios::app) << "torn end";
  }
  const auto recorder = std::make_shared<Recorder>(path_, folder_.path("state-"));
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(recorder);
  size_t warnings = 0;
  ASSERT_TRUE(Open({.on_warning = [&](const std::string&) { ++warnings; }, .env = env.get()}).ok());
  EXPECT_GT(warnings, 0u);
  const size_t states = recorder->count();
  ASSERT_GT(states, 10u);
  for (size_t i = 0; i < states; ++i) {
    SCOPED_TRACE(absl::StrCat("state ", i));
    std::filesystem::remove_all(path_);
    std::filesystem::copy(recorder->state(i), path_, std::filesystem::copy_options::recursive);
    ExpectTheEvents();
  }
}

}  // namespace
}  // namespace fraktor
