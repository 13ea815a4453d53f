#include "fraktor/persistence/rocksdb/database.h"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
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
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/journal_layout.h"
#include "fraktor/persistence/rocksdb/log_files.h"
#include "fraktor/persistence/rocksdb/log_survey.h"
#include "fraktor/persistence/rocksdb/log_view.h"
#include "fraktor/persistence/rocksdb/mutation.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/rocksdb/rocksdb_text.h"
#include "fraktor/persistence/rocksdb/store_folder.h"
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
constexpr std::string_view kStoreIdKey = "store id";
// With the role of another store behind it.
constexpr std::string_view kPartnerPrefix = "partner ";
constexpr size_t kMaxDroppedLines = 100;
// As much as RocksDB needs at least to open.
constexpr size_t kMinRoomBytes = size_t{1} << 20;
// How often to look at files that another process changes.
constexpr int kMaxLooks = 3;

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

rocksdb::DBOptions MakeDbOptions(const Database::Options& options, rocksdb::Env& env) {
  rocksdb::DBOptions db;
  db.env = &env;
  db.create_if_missing = options.create_if_missing;
  db.create_missing_column_families = true;
  // The acknowledged prefix opens, whatever has become of the end.
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Not track_and_verify_wals_in_manifest: RocksDB 7.8 with assertions ends whoever opens such a database for reading
  // without it.
  if (options.on_damaged_log == OnDamagedLog::kSkip) {
    db.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    db.paranoid_checks = false;
    db.skip_checking_sst_file_sizes_on_db_open = true;
  }
  // Column families that are rarely written would keep old log files alive for ever.
  db.max_total_wal_size = options.max_log_bytes;
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

// Opens the database for reading, without a trace, and lets `use` look at it.
rocksdb::Status Look(const std::string& path, const std::vector<std::string>& families, rocksdb::Env* env,
                     const std::function<void(rocksdb::DB&, const std::vector<rocksdb::ColumnFamilyHandle*>&)>& use) {
  rocksdb::DBOptions look;
  look.env = env;
  look.info_log = std::make_shared<RecoveryLogger>(nullptr);
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : families) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(look, path, descriptors, &handles, &opened);
  if (!status.ok()) return status;
  const std::unique_ptr<rocksdb::DB> db(opened);
  use(*db, handles);
  for (rocksdb::ColumnFamilyHandle* const handle : handles) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  return status;
}

// Whether nothing is stored in it.
bool IsBlank(rocksdb::DB& db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  return std::all_of(handles.begin(), handles.end(), [&](rocksdb::ColumnFamilyHandle* handle) {
    const std::unique_ptr<rocksdb::Iterator> entries(db.NewIterator(read, handle));
    entries->SeekToFirst();
    return !entries->Valid() && entries->status().ok();
  });
}

LogReading LogReadingOf(const Database::Options& options) {
  return options.on_damaged_log == OnDamagedLog::kSkip ? LogReading::kGoodRecords : LogReading::kUpToDamage;
}

// The first log that is damaged and followed by good records, in it or in another.
std::optional<size_t> FirstDamagedBeforeItsEnd(const std::vector<LogSurvey>& logs) {
  for (size_t i = 0; i < logs.size(); ++i) {
    if (!logs[i].damaged_at.has_value()) continue;
    if (logs[i].good_behind.has_value()) return i;
    for (size_t later = i + 1; later < logs.size(); ++later) {
      if (logs[later].has_records || logs[later].good_behind.has_value()) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(Options options) {
  if (options.on_damaged_log == OnDamagedLog::kSkip && !options.read_only) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.options_name, "::on_damaged_log is OnDamagedLog::kSkip, which is only to look; set read_only too"));
  }
  auto database = absl::WrapUnique(new Database(std::move(options)));
  FRAKTOR_RETURN_IF_ERROR(database->OpenAll());
  return database;
}

Database::Database(Options options)
    : options_(std::move(options)),
      files_(std::make_shared<LogFiles>(env().GetFileSystem(), LogReadingOf(options_))),
      db_env_(files_->MakeEnv(env())),
      mark_(env(), options_.path) {}

Database::~Database() { Close().IgnoreError(); }

absl::Status Database::OpenAll() {
  has_failed_ = false;
  open_status_ = OpenFiles();
  if (open_status_.ok()) open_status_ = CheckIdentity();
  if (!open_status_.ok()) LetGo().IgnoreError();
  return open_status_;
}

absl::Status Database::Reopen() {
  FRAKTOR_RETURN_IF_ERROR(TryToWrite("write after an error"));
  WriterMutexLock lock(mutex_);
  LetGo().IgnoreError();
  return OpenAll();
}

absl::Status Database::TryToWrite(std::string_view what) const {
  const std::string path = absl::StrCat(options_.path, "/", kProbeName);
  const rocksdb::Status written =
      rocksdb::WriteStringToFile(&env(), std::string(kMinRoomBytes, '\0'), path, /*should_sync=*/true);
  env().DeleteFile(path).PermitUncheckedError();
  return ToStatus(written, what);
}

absl::Status Database::CheckRoom(const std::vector<LogSurvey>& logs) const {
  uint64_t needed = kMinRoomBytes;
  for (const LogSurvey& log : logs) needed += log.bytes;
  uint64_t free = 0;
  if (env().GetFreeSpace(options_.path, &free).ok() && free < needed) {
    return MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                     absl::StrCat(options_.path, ": cannot open: the disk has ", free, " bytes free, and ", needed,
                                  " may be needed. Nothing was changed. Make room on it and open it again"));
  }
  // Quotas, and file systems that count in their own way.
  return TryToWrite("open");
}

absl::Status Database::OpenFiles() {
  StoreFolder folder;
  const rocksdb::Status looked = StoreFolder::Look(env(), options_.path, &folder);
  if (!looked.ok()) return ToStatus(looked, "open");
  FRAKTOR_RETURN_IF_ERROR(CheckFolder(folder));
  is_new_ = folder.kind != StoreFolder::Kind::kDatabase;
  const rocksdb::DBOptions db_options = MakeDbOptions(options_, *db_env_);
  // All that are there have to be opened, also those of a newer schema, so that the schema can be read at all.
  std::vector<std::string> existing;
  if (!is_new_) {
    const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(db_options, options_.path, &existing);
    if (!listed.ok()) return ToStatus(listed, "open");
  }
  may_be_unfinished_ = !is_new_ && !folder.has_tables && HasOnlyOwnFamilies(existing);
  RocksDbOpenReport found;
  // A store that has the database open writes a log, then the mark, and goes on to another log. So
  // they are read the other way round.
  const std::vector<LogPosition> mark = is_new_ ? std::vector<LogPosition>() : CommitMark::Read(env(), options_.path);
  const LogsNeeded needed = is_new_ ? LogsNeeded() : SurveyNeed(env(), options_.path);
  const std::vector<LogSurvey> logs = SurveyLogs(env(), options_.path);
  if (!is_new_ && !folder.has_only_first_manifest) {
    FRAKTOR_RETURN_IF_ERROR(CheckLogs(mark, needed, existing, logs, found));
  }
  // Before it is opened for writing, which would add what it lacks.
  if (!is_new_ && !HasAllFamilies(existing)) {
    FRAKTOR_ASSIGN_OR_RETURN(is_new_, IsUnfinished(existing, db_env_.get()));
    if (is_new_ && options_.read_only) return UnfinishedError();
  }
  // What was said when it was opened first stays.
  const bool is_first = report_.open_count == 0;
  if (is_first) {
    report_.dropped = std::move(found.dropped);
    report_.damaged = std::move(found.damaged);
  }
  if (options_.read_only) return OpenChecked(db_options, existing);
  FRAKTOR_ASSIGN_OR_RETURN(const bool is_made, MakeFolder(env()));
  const absl::Status room = CheckRoom(logs);
  if (!room.ok()) {
    if (is_made) env().DeleteDir(options_.path).PermitUncheckedError();
    return room;
  }
  FRAKTOR_RETURN_IF_ERROR(OpenChecked(db_options, existing));
  if (is_first) Warn();
  return absl::OkStatus();
}

absl::Status Database::OpenChecked(rocksdb::DBOptions db_options, const std::vector<std::string>& existing) {
  std::shared_ptr<rocksdb::Logger> log_file;
  if (!options_.read_only) {
    rocksdb::CreateLoggerFromOptions(options_.path, db_options, &log_file).PermitUncheckedError();
  }
  const auto logger = std::make_shared<RecoveryLogger>(log_file);
  db_options.info_log = logger;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = {
      {rocksdb::kDefaultColumnFamilyName, options_.default_family}};
  for (const ColumnFamily& family : options_.column_families) descriptors.emplace_back(family.name, family.options);
  for (const std::string& name : existing) {
    bool is_known = false;
    for (const rocksdb::ColumnFamilyDescriptor& known : descriptors) is_known = is_known || known.name == name;
    if (!is_known) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  rocksdb::DB* db = nullptr;
  rocksdb::Status opened;
  if (options_.read_only) {
    // A store that has it open may take files away between the reading of their list and of them.
    for (int attempt = 0; attempt < kMaxLooks; ++attempt) {
      opened = rocksdb::DB::OpenForReadOnly(db_options, options_.path, descriptors, &handles_, &db);
      if (!opened.IsCorruption() && !opened.IsPathNotFound()) break;
    }
  } else {
    opened = rocksdb::DB::Open(db_options, options_.path, descriptors, &handles_, &db);
  }
  std::vector<std::string> dropped = logger->TakeDropped();
  // The survey says it better, if it has seen it.
  if (report_.open_count == 0 && report_.dropped.empty()) report_.dropped = std::move(dropped);
  if (!opened.ok()) return ToStatus(opened, "open");
  db_.reset(db);
  return absl::OkStatus();
}

void Database::Warn() const {
  const auto warn = [this](const std::string& line) {
    if (options_.on_warning != nullptr) {
      options_.on_warning(line);
    } else {
      std::fprintf(stderr, "fraktor: warning: %s\n", line.c_str());
    }
  };
  for (const std::string& line : report_.damaged) warn(line);
  for (const std::string& line : report_.dropped) warn(line);
}

absl::Status Database::CheckFolder(const StoreFolder& folder) const {
  const auto refuse = [this](absl::StatusCode code, const std::string& text) {
    return MakeError(code, JournalErrorKind::kInvalid, absl::StrCat(options_.path, ": ", text));
  };
  const bool creates = options_.create_if_missing && !options_.read_only;
  switch (folder.kind) {
    case StoreFolder::Kind::kDatabase:
      return absl::OkStatus();
    case StoreFolder::Kind::kFile:
      return refuse(absl::StatusCode::kFailedPrecondition, "this is a file; name a folder");
    case StoreFolder::Kind::kNoCurrent:
      return MakeError(
          absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
          absl::StrCat(options_.path, ": the file CURRENT is missing, and files of a database are there (",
                       folder.names,
                       "): this is an incomplete copy. Nothing was changed. Restore the whole folder, with CURRENT, "
                       "from a backup"));
    case StoreFolder::Kind::kForeign:
      return refuse(absl::StatusCode::kFailedPrecondition,
                    absl::StrCat("the folder has something else in it (", folder.names, "), and no ", options_.format,
                                 creates ? "; name one that is empty or not there yet"
                                         : "; name the folder that a store was opened with"));
    case StoreFolder::Kind::kMissing:
      if (creates) return absl::OkStatus();
      return refuse(absl::StatusCode::kNotFound,
                    "there is no database, and no such folder; name the folder that a store was opened with");
    case StoreFolder::Kind::kNew:
      if (creates) return absl::OkStatus();
      return refuse(absl::StatusCode::kNotFound,
                    "there is no database in this folder; name the folder that a store was opened with");
  }
  return absl::OkStatus();
}

absl::Status Database::CheckLogs(const std::vector<LogPosition>& mark, LogsNeeded needed,
                                 const std::vector<std::string>& existing, std::vector<LogSurvey> logs,
                                 RocksDbOpenReport& found) const {
  const auto judge = [&](const std::string& text) -> absl::Status {
    found.damaged.push_back(text);
    if (options_.on_damaged_log != OnDamagedLog::kRefuse) return absl::OkStatus();
    return MakeError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
                     absl::StrCat(options_.path, ": cannot open: ", text, ". Nothing was changed. ",
                                  options_.damage_advice, ". ", options_.options_name,
                                  "::on_damaged_log = OnDamagedLog::kDropRest opens it without what is lost"));
  };
  const auto lacks_newest = [&] { return logs.empty() || logs.back().number < needed.newest; };
  // All are there at any time, but a list of files that change, since a store has it open, may be without some.
  for (int attempt = 0; attempt < kMaxLooks; ++attempt) {
    if (!lacks_newest() && !MissingLog(needed, logs).has_value() && !LostBeforeMark(mark, needed, logs).has_value()) {
      break;
    }
    needed = SurveyNeed(env(), options_.path);
    logs = SurveyLogs(env(), options_.path);
  }
  if (lacks_newest()) {
    return judge("the newest write-ahead log (a file with a number and .log) is missing, with what was stored last");
  }
  std::optional<size_t> damaged = FirstDamagedBeforeItsEnd(logs);
  if (damaged.has_value()) {
    const uint64_t first = FirstLogThatCounts(existing);
    logs.erase(std::remove_if(logs.begin(), logs.end(), [&](const LogSurvey& log) { return log.number < first; }),
               logs.end());
    damaged = FirstDamagedBeforeItsEnd(logs);
  }
  if (damaged.has_value()) {
    const LogSurvey& log = logs[*damaged];
    return judge(absl::StrCat(
        log.path, " is damaged at byte ", *log.damaged_at, " of ", log.bytes, ", and good records follow, ",
        log.good_behind.has_value() ? absl::StrCat("from byte ", *log.good_behind, " on") : "in a later log",
        ": this is not the torn end that a crash leaves, and what was acknowledged is concerned"));
  }
  if (const std::optional<std::string> lost = LostBeforeMark(mark, needed, logs); lost.has_value()) {
    return judge(absl::StrCat(*lost, " (", options_.path, "/", CommitMark::kFileName,
                              " says how much was synced; if the folder comes from a backup that has no such file, "
                              "remove this one)"));
  }
  if (const std::optional<std::string> missing = MissingLog(needed, logs); missing.has_value()) {
    return judge(absl::StrCat("a write-ahead log (a file with a number and .log) is missing, or its end, ", *missing,
                              ", with what was stored then"));
  }
  for (const LogSurvey& log : logs) {
    if (!log.damaged_at.has_value()) continue;
    const uint64_t bytes = log.bytes - *log.damaged_at;
    const std::string what = options_.read_only ? absl::StrCat("the last ", bytes, " bytes cannot be read")
                                                : absl::StrCat("dropping ", bytes, " bytes at its end");
    found.dropped.push_back(absl::StrCat(
        log.path, ": ", what,
        "; a crash tears the last record so, and then it was never acknowledged if synced. If nothing crashed there, "
        "it is damage, and events that were acknowledged may be among them"));
  }
  return absl::OkStatus();
}

uint64_t Database::FirstLogThatCounts(const std::vector<std::string>& existing) const {
  // RocksDB reads no earlier one when it opens. Its property kMinLogNumberToKeep is no answer: an
  // opening that finds nothing in the logs leaves it as it was, though no family needs them from
  // then on.
  const auto files = std::make_shared<LogFiles>(env().GetFileSystem(), LogReadingOf(options_));
  const std::unique_ptr<rocksdb::Env> look_env = files->MakeEnv(env());
  const rocksdb::Status looked =
      Look(options_.path, existing, look_env.get(),
           [](rocksdb::DB& /*db*/, const std::vector<rocksdb::ColumnFamilyHandle*>& /*handles*/) {});
  if (!looked.ok()) return 0;  // then all count
  return files->first_read().value_or(std::numeric_limits<uint64_t>::max());
}

absl::StatusOr<bool> Database::MakeFolder(rocksdb::Env& env) const {
  const bool is_there = env.FileExists(options_.path).ok();
  const rocksdb::Status made = env.CreateDirIfMissing(options_.path);
  if (made.ok()) return !is_there;
  const std::string parent = std::filesystem::path(options_.path + "/..").lexically_normal().string();
  if (parent.empty() || !env.FileExists(parent).IsNotFound()) return ToStatus(made, "make the folder");
  return MakeError(absl::StatusCode::kNotFound, JournalErrorKind::kInvalid,
                   absl::StrCat(options_.path, ": there is no folder ", parent, " to make it in; make that one first"));
}

bool Database::HasAllFamilies(const std::vector<std::string>& existing) const {
  return std::all_of(options_.column_families.begin(), options_.column_families.end(), [&](const ColumnFamily& family) {
    return std::find(existing.begin(), existing.end(), family.name) != existing.end();
  });
}

bool Database::HasOnlyOwnFamilies(const std::vector<std::string>& existing) const {
  return std::all_of(existing.begin(), existing.end(), [&](const std::string& name) {
    return name == rocksdb::kDefaultColumnFamilyName ||
           std::any_of(options_.column_families.begin(), options_.column_families.end(),
                       [&](const ColumnFamily& family) { return family.name == name; });
  });
}

absl::StatusOr<bool> Database::IsUnfinished(const std::vector<std::string>& existing, rocksdb::Env* env) const {
  std::string format;
  rocksdb::Status found;
  bool is_blank = false;
  const auto look = [&](rocksdb::DB& db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
    found = db.Get(rocksdb::ReadOptions(), db.DefaultColumnFamily(), ToSlice(kStoreFormatKey), &format);
    is_blank = IsBlank(db, handles);
  };
  const rocksdb::Status looked = Look(options_.path, existing, env, look);
  if (!looked.ok()) return ToStatus(looked, "look what it is");
  if (!found.ok() && !found.IsNotFound()) return ToStatus(found, "read its description");
  if (may_be_unfinished_ && is_blank) return true;
  FRAKTOR_RETURN_IF_ERROR(CheckFormat(format));
  return false;
}

absl::Status Database::CheckFormat(const std::string& format) const {
  if (format == options_.format) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kInvalid,
                   absl::StrCat(options_.path, ": this is ",
                                format.empty() ? "a RocksDB database of something else" : absl::StrCat("a ", format),
                                ", not a ", options_.format, "; name another folder"));
}

absl::Status Database::UnfinishedError() const {
  return MakeError(absl::StatusCode::kNotFound, JournalErrorKind::kInvalid,
                   absl::StrCat(options_.path,
                                ": nothing is stored here: the making of this database was interrupted. Open it for "
                                "writing, which finishes it"));
}

absl::Status Database::CheckIdentity() {
  if (options_.check != nullptr) {
    ++report_.open_count;
    return options_.check(*db_);
  }
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
  // What it is may have been in the log that is damaged.
  const bool is_lost = format.empty() && !report_.damaged.empty();
  if (!is_new_ && !is_lost && may_be_unfinished_ && IsBlank(*db_, handles_)) {
    if (options_.read_only) return UnfinishedError();
    is_new_ = true;
  }
  if (!is_new_ && !is_lost) FRAKTOR_RETURN_IF_ERROR(CheckFormat(format));
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
  FRAKTOR_RETURN_IF_ERROR(ReadIdentity());
  if (options_.read_only) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  if (identity_.id.empty()) {
    identity_.id = env().GenerateUniqueId();
    batch.Put(handles_[0], ToSlice(kStoreIdKey), identity_.id);
  }
  opens.clear();
  AppendFixed64(opens, open_count + 1);
  schema.clear();
  AppendFixed32(schema, options_.schema_version);
  batch.Put(handles_[0], ToSlice(kStoreFormatKey), options_.format);
  batch.Put(handles_[0], ToSlice(kSchemaKey), schema);
  batch.Put(handles_[0], ToSlice(kOpenCountKey), opens);
  // Synced even where the store does not sync: offsets are made of it and must never come twice.
  return Commit(/*sync=*/true, batch);
}

absl::Status Database::ReadIdentity() {
  identity_ = {};
  const rocksdb::Status found = db_->Get(rocksdb::ReadOptions(), handles_[0], ToSlice(kStoreIdKey), &identity_.id);
  if (!found.ok() && !found.IsNotFound()) return ToStatus(found, "read its identity");
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> entries(db_->NewIterator(read, handles_[0]));
  for (entries->Seek(ToSlice(kPartnerPrefix)); entries->Valid() && entries->key().starts_with(ToSlice(kPartnerPrefix));
       entries->Next()) {
    rocksdb::Slice role = entries->key();
    role.remove_prefix(kPartnerPrefix.size());
    identity_.partners.insert_or_assign(role.ToString(), entries->value().ToString());
  }
  return ToStatus(entries->status(), "read its identity");
}

void Database::PutPartner(std::string_view role, std::string_view id, rocksdb::WriteBatch& batch) {
  std::string key(kPartnerPrefix);
  key += role;
  batch.Put(handles_[0], key, ToSlice(id));
}

absl::Status Database::Commit(bool sync, rocksdb::WriteBatch& batch) {
  rocksdb::WriteOptions write;
  write.sync = sync && !IsMutated("skip_sync");
  const absl::Status written = ToStatus(db_->Write(write, &batch), "write");
  has_failed_ = has_failed_ || !written.ok();
  if (written.ok() && sync) WriteMark();
  return written;
}

void Database::WriteMark() {
  if (!IsMutated("forget_commit_mark")) mark_.Write(files_->synced());
}

void Database::PutOpenCount(uint64_t count, rocksdb::WriteBatch& batch) {
  std::string opens;
  AppendFixed64(opens, count);
  batch.Put(handles_[0], ToSlice(kOpenCountKey), opens);
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
  if (!options_.read_only) {
    if (!has_failed_ && synced.ok()) WriteMark();
    mark_.Close();
  }
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
  const std::string text = RocksDbText(status);
  const auto make = [&](absl::StatusCode code, JournalErrorKind kind, std::string_view advice) {
    return MakeError(code, kind,
                     absl::StrCat(options_.path, ": cannot ", ToAbsl(what), ": ", text, ". ", ToAbsl(advice)));
  };
  const auto advice = [this]() -> std::string {
    // Whoever looks at what is damaged has been given the advice to do so.
    if (options_.on_damaged_log != OnDamagedLog::kSkip) return options_.damage_advice;
    return db_ == nullptr ? "Without them nothing can be read: restore the whole folder from a backup"
                          : "Restore the whole folder from a backup";
  };
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit ||
      absl::StrContains(text, "No space left")) {
    return make(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                db_ == nullptr ? "The disk is full: make room on it and open it again"
                               : "The disk is full: make room on it; the store goes on by itself then");
  }
  if (absl::StrContains(text, "lock hold by current process") || absl::StrContains(text, "While lock file") ||
      absl::StrContains(text, "LOCK: Resource temporarily unavailable")) {
    return make(absl::StatusCode::kUnavailable, JournalErrorKind::kLocked,
                "Another store has it open: close that one, or name another folder");
  }
  if (absl::StrContains(text, "Permission denied") || absl::StrContains(text, "Read-only file system") ||
      absl::StrContains(text, "Not supported operation in read only mode")) {
    return make(absl::StatusCode::kPermissionDenied, JournalErrorKind::kReadOnly,
                options_.read_only ? "Give this user the right to read the folder and its files"
                                   : "Give this user the right to write there, or open it for reading only");
  }
  if (status.IsCorruption() || status.IsPathNotFound()) {
    return make(
        absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt,
        absl::StrCat(status.IsCorruption() ? "Files are damaged or missing. " : "A file is missing. ", advice()));
  }
  return make(absl::StatusCode::kUnavailable, JournalErrorKind::kIo, "Look at the device and at the file LOG there");
}

}  // namespace fraktor::inline v0
