#include "fraktor/persistence/rocksdb/database.h"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/rocksdb/journal_layout.h"
#include "fraktor/persistence/rocksdb/log_tail.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/shared/shared_mutex.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kSchemaKey = "schema";
constexpr std::string_view kOpenCountKey = "open count";
constexpr size_t kMaxDroppedLines = 100;

rocksdb::Slice ToSlice(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }

// RocksDB says only in its log what it has dropped while it recovered. This one passes everything on and keeps that.
class RecoveryLogger final : public rocksdb::Logger {
 public:
  explicit RecoveryLogger(std::shared_ptr<rocksdb::Logger> target)
      : rocksdb::Logger(rocksdb::InfoLogLevel::INFO_LEVEL), target_(std::move(target)) {}

  using rocksdb::Logger::Logv;
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level >= rocksdb::InfoLogLevel::WARN_LEVEL) Look(format, arguments);
    if (target_ != nullptr) target_->Logv(level, format, arguments);
  }
  void LogHeader(const char* format, va_list arguments) override {
    if (target_ != nullptr) target_->LogHeader(format, arguments);
  }
  size_t GetLogFileSize() const override { return target_ == nullptr ? 0 : target_->GetLogFileSize(); }
  void Flush() override {
    if (target_ != nullptr) target_->Flush();
  }

  std::vector<std::string> TakeDropped() {
    MutexLock lock(mutex_);
    return std::exchange(dropped_, {});
  }

 protected:
  rocksdb::Status CloseImpl() override { return target_ == nullptr ? rocksdb::Status::OK() : target_->Close(); }

 private:
  void Look(const char* format, va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    char line[1024];
    std::vsnprintf(line, sizeof(line), format, copy);
    va_end(copy);
    if (std::string_view(line).find("dropping") == std::string_view::npos) return;
    MutexLock lock(mutex_);
    if (dropped_.size() < kMaxDroppedLines) dropped_.emplace_back(line);
  }

  const std::shared_ptr<rocksdb::Logger> target_;
  Mutex mutex_;
  std::vector<std::string> dropped_ ABSL_GUARDED_BY(mutex_);
};

rocksdb::DBOptions MakeDbOptions(const Database::Options& options) {
  rocksdb::DBOptions db;
  if (options.env != nullptr) db.env = options.env;
  db.create_if_missing = options.create_if_missing;
  db.create_missing_column_families = true;
  // The acknowledged prefix opens, whatever has become of the end.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Column families that are rarely written would keep old log files alive for ever.
  db.max_total_wal_size = uint64_t{256} << 20;
  db.max_open_files = 1000;
  db.max_background_jobs = 2;
  db.bytes_per_sync = 1 << 20;
  db.avoid_unnecessary_blocking_io = true;
  // The commit queue opens the database again after an error, rather than RocksDB trying behind its back.
  db.max_bgerror_resume_count = 0;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.max_log_file_size = 10 << 20;
  db.keep_log_file_num = 5;
  return db;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(Options options) {
  auto database = absl::WrapUnique(new Database(std::move(options)));
  FRAKTOR_RETURN_IF_ERROR(database->OpenAll());
  return database;
}

Database::~Database() { Close().IgnoreError(); }

absl::Status Database::OpenAll() {
  has_failed_ = false;
  open_status_ = OpenFiles();
  if (open_status_.ok()) open_status_ = CheckIdentity();
  if (!open_status_.ok()) LetGo().IgnoreError();
  return open_status_;
}

absl::Status Database::Reopen() {
  FRAKTOR_RETURN_IF_ERROR(TryToWrite());
  WriterMutexLock lock(mutex_);
  LetGo().IgnoreError();
  return OpenAll();
}

absl::Status Database::TryToWrite() const {
  // As much as RocksDB needs at least to open.
  constexpr size_t kBytes = size_t{1} << 20;
  rocksdb::Env* const env = options_.env == nullptr ? rocksdb::Env::Default() : options_.env;
  const std::string path = absl::StrCat(options_.path, "/room.probe");
  rocksdb::Status written = rocksdb::WriteStringToFile(env, std::string(kBytes, '\0'), path, /*should_sync=*/true);
  env->DeleteFile(path).PermitUncheckedError();
  return ToStatus(written, "write after an error");
}

absl::Status Database::OpenFiles() {
  rocksdb::DBOptions db_options = MakeDbOptions(options_);
  // All that are there have to be opened, also those of a newer schema, so that the schema can be read at all.
  std::vector<std::string> existing;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(db_options, options_.path, &existing);
  is_new_ = !listed.ok();
  if (is_new_ && (options_.read_only || !options_.create_if_missing)) {
    if (!listed.IsPathNotFound() && !listed.IsNotFound() && !listed.IsIOError()) return ToStatus(listed, "open");
    return MakeError(absl::StatusCode::kNotFound, JournalErrorKind::kInvalid,
                     absl::StrCat(options_.path, ": there is no database (", listed.ToString(),
                                  "); name the folder that a store was opened with"));
  }
  // Before it is opened for writing, which would add what it lacks.
  if (!is_new_ && !options_.read_only && !HasAllFamilies(existing)) {
    FRAKTOR_RETURN_IF_ERROR(CheckFormatOf(existing, db_options.env));
  }
  std::shared_ptr<rocksdb::Logger> log_file;
  if (!options_.read_only) {
    FRAKTOR_RETURN_IF_ERROR(MakeFolder(*db_options.env));
    rocksdb::CreateLoggerFromOptions(options_.path, db_options, &log_file).PermitUncheckedError();
  }
  const auto logger = std::make_shared<RecoveryLogger>(log_file);
  db_options.info_log = logger;

  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = {
      {rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions()}};
  for (const ColumnFamily& family : options_.column_families) descriptors.emplace_back(family.name, family.options);
  for (const std::string& name : existing) {
    bool is_known = false;
    for (const rocksdb::ColumnFamilyDescriptor& known : descriptors) is_known = is_known || known.name == name;
    if (!is_known) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  const std::vector<std::string> torn = TornLogTails(*db_options.env, options_.path);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      options_.read_only ? rocksdb::DB::OpenForReadOnly(db_options, options_.path, descriptors, &handles_, &db)
                         : rocksdb::DB::Open(db_options, options_.path, descriptors, &handles_, &db);
  std::vector<std::string> dropped = logger->TakeDropped();
  if (dropped.empty()) dropped = torn;
  // What was said when it was opened first stays.
  if (report_.open_count == 0) report_.dropped = std::move(dropped);
  if (!opened.ok()) return ToStatus(opened, "open");
  db_.reset(db);
  return absl::OkStatus();
}

absl::Status Database::MakeFolder(rocksdb::Env& env) const {
  const rocksdb::Status made = env.CreateDirIfMissing(options_.path);
  if (made.ok()) return absl::OkStatus();
  const std::string parent = std::filesystem::path(options_.path + "/..").lexically_normal().string();
  if (parent.empty() || !env.FileExists(parent).IsNotFound())
    return absl::OkStatus();  // Opening it says what is wrong.
  return MakeError(absl::StatusCode::kNotFound, JournalErrorKind::kInvalid,
                   absl::StrCat(options_.path, ": there is no folder ", parent, " to make it in; make that one first"));
}

bool Database::HasAllFamilies(const std::vector<std::string>& existing) const {
  return std::all_of(options_.column_families.begin(), options_.column_families.end(), [&](const ColumnFamily& family) {
    return std::find(existing.begin(), existing.end(), family.name) != existing.end();
  });
}

absl::Status Database::CheckFormatOf(const std::vector<std::string>& existing, rocksdb::Env* env) const {
  rocksdb::DBOptions look;
  look.env = env;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : existing) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(look, options_.path, descriptors, &handles, &opened);
  if (!status.ok()) return ToStatus(status, "look what it is");
  const std::unique_ptr<rocksdb::DB> db(opened);
  std::string format;
  const rocksdb::Status found =
      db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(), ToSlice(kStoreFormatKey), &format);
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  if (!found.ok() && !found.IsNotFound()) return ToStatus(found, "read its description");
  return CheckFormat(format);
}

absl::Status Database::CheckFormat(const std::string& format) const {
  if (format == options_.format) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kInvalid,
                   absl::StrCat(options_.path, ": this is ",
                                format.empty() ? "a RocksDB database of something else" : absl::StrCat("a ", format),
                                ", not a ", options_.format, "; name another folder"));
}

absl::Status Database::CheckIdentity() {
  const auto read = [this](std::string_view key, std::string& value) {
    return db_->Get(rocksdb::ReadOptions(), handles_[0], ToSlice(key), &value);
  };
  std::string format;
  std::string schema;
  std::string opens;
  for (const auto& [key, value] :
       {std::pair(kStoreFormatKey, &format), std::pair(kSchemaKey, &schema), std::pair(kOpenCountKey, &opens)}) {
    const rocksdb::Status found = read(key, *value);
    if (!found.ok() && !found.IsNotFound()) return ToStatus(found, "read its description");
  }
  if (!is_new_) FRAKTOR_RETURN_IF_ERROR(CheckFormat(format));
  const uint32_t version = schema.size() == 4 ? LoadFixed32(schema.data()) : 0;
  if (version > options_.schema_version) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNewerSchema,
        absl::StrCat(options_.path, ": has schema ", version, "; this program knows schemas up to ",
                     options_.schema_version, ". Nothing was changed. Open it with the newer program that wrote it"),
        {{"schema", version}});
  }
  const uint64_t open_count = opens.size() == 8 ? LoadFixed64(opens.data()) : 0;
  if (report_.open_count == 0) report_.open_count = open_count + (options_.read_only ? 0 : 1);
  if (options_.read_only) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  opens.clear();
  AppendFixed64(opens, open_count + 1);
  schema.clear();
  AppendFixed32(schema, options_.schema_version);
  batch.Put(handles_[0], ToSlice(kStoreFormatKey), options_.format);
  batch.Put(handles_[0], ToSlice(kSchemaKey), schema);
  batch.Put(handles_[0], ToSlice(kOpenCountKey), opens);
  // Synced even where the store does not sync: offsets are made of it and must never come twice.
  rocksdb::WriteOptions write;
  write.sync = true;
  return ToStatus(db_->Write(write, &batch), "count its opening");
}

absl::Status Database::Close() {
  WriterMutexLock lock(mutex_);
  return LetGo();
}

absl::Status Database::LetGo() {
  if (db_ == nullptr) return absl::OkStatus();
  rocksdb::Status synced;
  if (!options_.read_only && !has_failed_) synced = db_->SyncWAL();
  if (synced.IsNotSupported()) synced = rocksdb::Status::OK();  // files in memory
  for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  handles_.clear();
  const rocksdb::Status closed = db_->Close();
  db_.reset();
  FRAKTOR_RETURN_IF_ERROR(ToStatus(synced, "sync at the end"));
  return ToStatus(closed, "close");
}

absl::Status Database::ToStatus(const rocksdb::Status& status, std::string_view what) const {
  if (status.ok()) return absl::OkStatus();
  const std::string text = status.ToString();
  const auto make = [&](absl::StatusCode code, JournalErrorKind kind, std::string_view advice) {
    return MakeError(code, kind,
                     absl::StrCat(options_.path, ": cannot ", ToAbsl(what), ": ", text, ". ", ToAbsl(advice)));
  };
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit ||
      absl::StrContains(text, "No space left")) {
    return make(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                "The disk is full: make room on it; the store goes on by itself then");
  }
  if (absl::StrContains(text, "lock hold by current process") || absl::StrContains(text, "While lock file") ||
      absl::StrContains(text, "LOCK: Resource temporarily unavailable")) {
    return make(absl::StatusCode::kUnavailable, JournalErrorKind::kLocked,
                "Another store has it open: close that one, or name another folder");
  }
  if (absl::StrContains(text, "Permission denied") || absl::StrContains(text, "Read-only file system") ||
      absl::StrContains(text, "Not supported operation in read only mode")) {
    return make(absl::StatusCode::kPermissionDenied, JournalErrorKind::kReadOnly,
                "Give this user the right to write there, or open it for reading only");
  }
  if (status.IsCorruption()) {
    return make(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
                "Files are damaged: restore them from a backup; `journal verify` says what can still be read");
  }
  return make(absl::StatusCode::kUnavailable, JournalErrorKind::kIo, "Look at the device and at the file LOG there");
}

}  // namespace fraktor::inline v0
