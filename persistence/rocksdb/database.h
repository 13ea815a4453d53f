// Database: a RocksDB database that belongs to a journal or a snapshot store, opened, recognized and closed.
//
//   Database::Options options{.path = "/var/lib/shop/journal", .format = "fraktor-journal", .schema_version = 1};
//   options.column_families.push_back({.name = "events", .options = ...});
//   std::unique_ptr<Database> database = Database::Open(std::move(options)).value();
//   batch.Put(database->column_family(0), key, value);
//   FRAKTOR_RETURN_IF_ERROR(database->Commit(/*sync=*/true, batch));
//
// The default column family has what the database says of itself: its format, the version of its
// schema, how often it has been opened, and its identity (StoreIdentity). Open refuses, before
// anything is written: a newer schema, another format, a database or a folder of something else, an
// incomplete one, a log that is damaged before its end, a log that ends before what was synced
// (CommitMark), a full disk.
//
// After a failed write RocksDB may be past mending: Reopen closes it and opens it again, while readers wait.
//
// Thread safety: one thread writes, reopens and closes, and reads as it likes; others read inside a Database::Lease.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_DATABASE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_DATABASE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/log_files.h"
#include "fraktor/persistence/rocksdb/log_survey.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/rocksdb/store_folder.h"
#include "fraktor/utils/shared/shared_mutex.h"

namespace fraktor::inline v0 {

class Database {
 public:
  struct ColumnFamily {
    std::string name = {};
    rocksdb::ColumnFamilyOptions options = {};
  };
  struct Options {
    std::string path = {};
    // What the database is for; another one is refused.
    std::string format = {};
    uint32_t schema_version = 1;
    std::vector<ColumnFamily> column_families = {};
    // The options of the default column family.
    rocksdb::ColumnFamilyOptions default_family = {};
    // Says whether the database is what its owner expects. For databases that do not describe
    // themselves as said above: nothing is written into them. Null: they do.
    std::function<absl::Status(rocksdb::DB&)> check = {};
    bool create_if_missing = true;
    bool read_only = false;
    OnDamagedLog on_damaged_log = OnDamagedLog::kRefuse;
    // Who opens it, in texts: "RocksDbJournalOptions".
    std::string options_name = {};
    // What to do if files are damaged: "Restore the folder from a backup".
    std::string damage_advice = {};
    // Of all write-ahead logs together.
    uint64_t max_log_bytes = uint64_t{256} << 20;
    // Hears of what was dropped. Null: a line on standard error.
    std::function<void(const std::string&)> on_warning = {};
    // Null: the default one.
    rocksdb::Env* env = nullptr;
  };

  // Errors: kNewerSchema, kLocked, kReadOnly, kDiskFull, kCorrupt, kInvalid (something else is there), kIo. Nothing is
  // changed then, apart from RocksDB's own text LOG.
  static absl::StatusOr<std::unique_ptr<Database>> Open(Options options);

  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() { return *db_; }
  // In the order of Options::column_families.
  rocksdb::ColumnFamilyHandle* column_family(size_t i) { return handles_[i + 1]; }
  rocksdb::ColumnFamilyHandle* default_column_family() { return handles_[0]; }
  const RocksDbOpenReport& report() const { return report_; }
  const std::string& path() const { return options_.path; }
  bool read_only() const { return options_.read_only; }

  // For readers on other threads: the database stays as it is for as long as the lease lives.
  class ABSL_SCOPED_LOCKABLE Lease {
   public:
    explicit Lease(Database& database) ABSL_SHARED_LOCK_FUNCTION(database.mutex_) : database_(database) {
      database_.mutex_.ReaderLock();
    }
    ~Lease() ABSL_UNLOCK_FUNCTION() { database_.mutex_.ReaderUnlock(); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // Not OK if there is no database now, because it could not be opened again.
    const absl::Status& status() const { return database_.open_status_; }

   private:
    Database& database_;
  };

  // Closes the database and opens it again, to go on after an error. Tries first whether anything can be written at
  // all: if not, nothing changes and readers go on.
  absl::Status Reopen();

  // The identity, constant while open. Empty for databases with a `check`, and for those of older
  // programs that are opened read only.
  const StoreIdentity& identity() const { return identity_; }
  // Adds to `batch` which store was used with this one. `identity()` stays.
  void PutPartner(std::string_view role, std::string_view id, rocksdb::WriteBatch& batch);

  // Adds to `batch` that the database was opened so often: the next opening counts on from there.
  void PutOpenCount(uint64_t count, rocksdb::WriteBatch& batch);

  // Syncs the log, unless a write has failed, and lets the files go. Also done by the destructor.
  absl::Status Close();

  // Writes the batch, and syncs it if `sync`. All writes go this way, so that the mark beside the
  // database follows what is synced. After an error the database must be opened again.
  absl::Status Commit(bool sync, rocksdb::WriteBatch& batch);

  // The error of an operation on this database; `what` says which. OK for OK.
  absl::Status ToStatus(const rocksdb::Status& status, std::string_view what) const;

 private:
  explicit Database(Options options);

  absl::Status OpenAll();
  absl::Status OpenFiles();
  absl::Status OpenChecked(rocksdb::DBOptions db_options, const std::vector<std::string>& existing);
  absl::Status CheckIdentity();
  absl::Status ReadIdentity();
  absl::Status CheckFolder(const StoreFolder& folder) const;
  // Whether the logs are there that are needed, and are whole up to their torn end; what they are not goes to `dropped`
  // and `damaged`.
  // `mark` was read before `needed`, and that before `logs`.
  absl::Status CheckLogs(const std::vector<LogPosition>& mark, LogsNeeded needed,
                         const std::vector<std::string>& existing, std::vector<LogSurvey> logs,
                         RocksDbOpenReport& found) const;
  // Logs of lower numbers are waste that was not taken away: what was in them is in tables, or an
  // earlier opening has dropped it. 0 if nobody knows.
  uint64_t FirstLogThatCounts(const std::vector<std::string>& existing) const;
  // Of the folder only; what is above it is somebody else's. Whether it was not there.
  absl::StatusOr<bool> MakeFolder(rocksdb::Env& env) const;
  bool HasAllFamilies(const std::vector<std::string>& existing) const;
  bool HasOnlyOwnFamilies(const std::vector<std::string>& existing) const;
  // Looks into the database for what it is, and changes nothing. Whether it is one whose making was interrupted.
  absl::StatusOr<bool> IsUnfinished(const std::vector<std::string>& existing, rocksdb::Env* env) const;
  absl::Status CheckFormat(const std::string& format) const;
  absl::Status UnfinishedError() const;
  absl::Status TryToWrite(std::string_view what) const;
  // For opening it, when the logs become other files.
  absl::Status CheckRoom(const std::vector<LogSurvey>& logs) const;
  absl::Status LetGo();
  // Notes beside the database how far its logs are synced.
  void WriteMark();
  void Warn() const;
  rocksdb::Env& env() const { return options_.env == nullptr ? *rocksdb::Env::Default() : *options_.env; }

  const Options options_;
  // Held for reading by leases, for writing while the database is exchanged.
  SharedMutex mutex_;
  absl::Status open_status_;
  RocksDbOpenReport report_;
  StoreIdentity identity_;
  bool is_new_ = false;
  // It has no files yet that would say otherwise.
  bool may_be_unfinished_ = false;
  // A write has failed. A log that has seen an error must not be touched: RocksDB takes that for a
  // bug of its own, and ends the process where it was compiled with assertions.
  bool has_failed_ = false;
  const std::shared_ptr<LogFiles> files_;
  // With those files. The database itself has it.
  const std::unique_ptr<rocksdb::Env> db_env_;
  CommitMark mark_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_DATABASE_H_
