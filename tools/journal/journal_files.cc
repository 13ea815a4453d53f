#include "fraktor/tools/journal/journal_files.h"

#include <cstdarg>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/iterator.h"
#include "rocksdb/metadata.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/status.h"

#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/rocksdb/journal_layout.h"
#include "fraktor/persistence/rocksdb/log_files.h"
#include "fraktor/persistence/rocksdb/log_view.h"
#include "fraktor/persistence/rocksdb/rocksdb_text.h"
#include "fraktor/tools/journal/id_text.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kAdvice =
    ". Restore it from a backup; `journal export --skip-corrupt` takes out what can still be read";

rocksdb::Slice ToSlice(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }

// Without it RocksDB would write a file into the folder that is only looked at.
class SilentLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

rocksdb::ReadOptions WholeRead() {
  rocksdb::ReadOptions read;
  read.verify_checksums = true;
  read.total_order_seek = true;
  read.ignore_range_deletions = true;
  read.fill_cache = false;
  return read;
}

std::string KeyText(const std::string& key) {
  std::string_view id;
  uint64_t number = 0;
  if (!ParseEventKey(key, id, number)) return absl::StrCat("\"", IdText(key), "\"");
  return absl::StrCat("event ", number, " of \"", IdText(id), "\"");
}

// "/var/lib/shop/journal/000012.sst, which has event 1 of "a" to event 9 of "b"".
std::string FileText(const rocksdb::LiveFileMetaData& file, const std::string& path) {
  if (file.column_family_name == JournalLayout::kEvents) {
    return absl::StrCat(path, ", which has ", KeyText(file.smallestkey), " to ", KeyText(file.largestkey));
  }
  return absl::StrCat(path, ", which has ",
                      file.column_family_name == JournalLayout::kIds     ? "epochs and deletions of ids"
                      : file.column_family_name == JournalLayout::kIndex ? "the list of ids and the events of tags"
                                                                         : "what the journal says of itself");
}

}  // namespace

absl::StatusOr<std::unique_ptr<JournalFiles>> JournalFiles::Open(const std::string& path, rocksdb::Env& env) {
  rocksdb::DBOptions options;
  auto files = absl::WrapUnique(new JournalFiles(path, env));
  options.env = files->db_env_.get();
  std::vector<std::string> names;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, path, &names);
  if (!listed.ok()) return absl::NotFoundError(absl::StrCat(path, ": there is no database: ", RocksDbText(listed)));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  rocksdb::DB* db = nullptr;
  options.info_log = std::make_shared<SilentLogger>();
  // As much as can be read: Verify says what cannot.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  options.paranoid_checks = false;
  options.skip_checking_sst_file_sizes_on_db_open = true;
  const rocksdb::Status opened = rocksdb::DB::OpenForReadOnly(options, path, families, &files->handles_, &db);
  if (!opened.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": cannot be opened: ", RocksDbText(opened), ". Restore the whole folder from a backup"));
  }
  files->db_.reset(db);
  return files;
}

JournalFiles::JournalFiles(std::string path, rocksdb::Env& env)
    : path_(std::move(path)),
      env_(env),
      files_(std::make_shared<LogFiles>(env.GetFileSystem(), LogReading::kGoodRecords)),
      db_env_(files_->MakeEnv(env)) {}

JournalFiles::~JournalFiles() {
  for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
}

rocksdb::ColumnFamilyHandle* JournalFiles::Family(std::string_view name) const {
  for (rocksdb::ColumnFamilyHandle* const handle : handles_) {
    if (handle->GetName() == name) return handle;
  }
  return nullptr;
}

absl::Status JournalFiles::CheckIsJournal() const {
  std::string format;
  const rocksdb::Status read = db_->Get(WholeRead(), db_->DefaultColumnFamily(), ToSlice(kStoreFormatKey), &format);
  if (!read.ok() && !read.IsNotFound()) {
    return absl::DataLossError(absl::StrCat(path_, ": cannot read what it is: ", RocksDbText(read), ToAbsl(kAdvice)));
  }
  if (format == JournalLayout::kFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": this is ", format.empty() ? "a RocksDB database of something else" : absl::StrCat("a ", format),
      ", not a ", ToAbsl(JournalLayout::kFormat), "; name another folder"));
}

bool JournalFiles::Knows(std::string_view persistence_id) const {
  rocksdb::ColumnFamilyHandle* const ids = Family(JournalLayout::kIds);
  std::string record;
  return ids != nullptr && !db_->Get(WholeRead(), ids, ToSlice(persistence_id), &record).IsNotFound();
}

bool JournalFiles::HasRecord(std::string_view persistence_id, uint64_t sequence_nr) const {
  rocksdb::ColumnFamilyHandle* const events = Family(JournalLayout::kEvents);
  std::string record;
  return events != nullptr && db_->Get(WholeRead(), events, EventKey(persistence_id, sequence_nr), &record).ok();
}

std::vector<std::string> JournalFiles::Ids() const {
  std::vector<std::string> found;
  rocksdb::ColumnFamilyHandle* const ids = Family(JournalLayout::kIds);
  if (ids == nullptr) return found;
  const std::unique_ptr<rocksdb::Iterator> entries(db_->NewIterator(WholeRead(), ids));
  for (entries->SeekToFirst(); entries->Valid(); entries->Next()) found.push_back(entries->key().ToString());
  entries->status().PermitUncheckedError();  // as far as it goes
  return found;
}

uint64_t JournalFiles::Verify(const std::function<void(const std::string&)>& damaged) const {
  uint64_t count = 0;
  std::vector<rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  rocksdb::Options options;
  options.env = &env_;
  for (const rocksdb::LiveFileMetaData& file : files) {
    const std::string path = absl::StrCat(path_, file.name);
    rocksdb::SstFileReader reader(options);
    rocksdb::Status read = reader.Open(path);
    if (read.ok()) read = reader.VerifyChecksum(WholeRead());
    std::error_code error;
    // A program that has the journal open may have merged it into others meanwhile: it was there when it was opened.
    if (read.ok() || !std::filesystem::exists(path, error)) continue;
    ++count;
    damaged(absl::StrCat(FileText(file, path), ": ", RocksDbText(read), ToAbsl(kAdvice)));
  }
  // What a file says of itself may be right, and yet not be what RocksDB expects there.
  for (rocksdb::ColumnFamilyHandle* const family : handles_) {
    const std::unique_ptr<rocksdb::Iterator> entries(db_->NewIterator(WholeRead(), family));
    for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
    }
    if (entries->status().ok() || count > 0) continue;
    ++count;
    damaged(absl::StrCat(path_, ": \"", family->GetName(),
                         "\" cannot be read to its end: ", RocksDbText(entries->status()), ToAbsl(kAdvice)));
  }
  return count;
}

}  // namespace fraktor::inline v0
