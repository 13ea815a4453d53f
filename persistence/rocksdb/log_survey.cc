#include "fraktor/persistence/rocksdb/log_survey.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rocksdb/env.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/log_format.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

class Surveyor {
 public:
  using OnRecord = std::function<void(std::string_view)>;

  // `on_record`, if there is one, gets each record before the damage.
  explicit Surveyor(LogSurvey& log, OnRecord on_record = nullptr) : log_(log), on_record_(std::move(on_record)) {}

  // One block after the other; all but the last are whole.
  void Add(std::string_view block) {
    const size_t at = log_.damaged_at.has_value() ? 0 : ReadRecords(block);
    if (log_.damaged_at.has_value() && !log_.good_behind.has_value()) Search(block, at);
    log_.bytes += block.size();
  }

  void Finish() {
    if (!log_.damaged_at.has_value() && record_begin_.has_value()) log_.damaged_at = record_begin_;
  }

 private:
  // Up to the end or to the damage; answers where to search for good records.
  size_t ReadRecords(std::string_view block) {
    size_t at = 0;
    while (block.size() - at >= kLogHeaderBytes) {
      const std::optional<LogPiece> piece = ReadLogPiece(block, at, log_.number);
      if (!piece.has_value()) {
        log_.damaged_at = record_begin_.value_or(log_.bytes + at);
        return at + 1;
      }
      const bool continues = piece->type == kLogMiddle || piece->type == kLogLast;
      if (continues != record_begin_.has_value() && piece->type <= kLogLast) {
        log_.damaged_at = record_begin_.value_or(log_.bytes + at);
        return at;
      }
      if (piece->type == kLogFirst) record_begin_ = log_.bytes + at;
      if (piece->type <= kLogLast && head_.size() < kLogBatchHeadBytes) {
        head_ += piece->data.substr(0, kLogBatchHeadBytes - head_.size());
      }
      if (on_record_ != nullptr && piece->type <= kLogLast) {
        record_ += piece->data;
        if (piece->type == kLogFull || piece->type == kLogLast) on_record_(std::exchange(record_, {}));
      }
      if (piece->type == kLogFull || piece->type == kLogLast) {
        record_begin_.reset();
        if (piece->type == kLogLast || piece->begins_record) NoteRecord();
        head_.clear();
      }
      at += piece->bytes;
    }
    // What is too short for a header at the end of a block is filled up with zeros.
    if (at < block.size() && block.size() < kLogBlockBytes) log_.damaged_at = record_begin_.value_or(log_.bytes + at);
    return block.size();
  }

  void NoteRecord() {
    log_.has_records = true;
    if (head_.size() < kLogBatchHeadBytes) return;
    const uint64_t sequence = LoadFixed64(head_.data());
    if (log_.first_sequence == 0) log_.first_sequence = sequence;
    log_.next_sequence = sequence + LoadFixed32(head_.data() + 8);
  }

  void Search(std::string_view block, size_t at) {
    const size_t found = FindLogRecord(block, at, log_.number);
    if (found < block.size()) log_.good_behind = log_.bytes + found;
  }

  LogSurvey& log_;
  const OnRecord on_record_;
  std::string record_;  // as far as it has come
  std::string head_;    // of that: the number of the first thing in it, 8 bytes, and how many there are, 4 bytes
  // Of a record of which pieces have come, and not its last one.
  std::optional<uint64_t> record_begin_;
};

bool Survey(rocksdb::Env& env, LogSurvey& log, Surveyor::OnRecord on_record = nullptr) {
  std::unique_ptr<rocksdb::SequentialFile> file;
  if (!env.NewSequentialFile(log.path, &file, rocksdb::EnvOptions()).ok()) return false;
  std::string scratch(kLogBlockBytes, '\0');
  Surveyor surveyor(log, std::move(on_record));
  while (true) {
    rocksdb::Slice block;
    if (!file->Read(kLogBlockBytes, &block, scratch.data()).ok() || block.empty()) break;
    surveyor.Add(std::string_view(block.data(), block.size()));
    // A short read is the end: the files are local.
    if (block.size() < kLogBlockBytes) break;
  }
  surveyor.Finish();
  return true;
}

// What a change to the list of files says of logs. It is a row of tags and values; in the order of the tags only these
// come before and between those that are looked for.
void ReadChange(std::string_view change, LogsNeeded& needed) {
  enum Tag : uint64_t {
    kComparator = 1,
    kLogNumber = 2,
    kNextFile = 3,
    kLastSequence = 4,
    kPreviousLog = 9,
    kFirstLog = 10,
    kMaxColumnFamily = 203,
    kDatabaseId = 8193,
  };
  uint64_t log = 0;
  std::optional<uint64_t> first;
  uint64_t sequence = 0;
  for (ByteReader reader(change); reader.ok() && !reader.rest().empty();) {
    const uint64_t tag = reader.Varint();
    if (tag == kComparator || tag == kDatabaseId) {
      reader.Sized();
      continue;
    }
    if (tag != kLogNumber && tag != kPreviousLog && tag != kNextFile && tag != kMaxColumnFamily && tag != kFirstLog &&
        tag != kLastSequence) {
      break;
    }
    const uint64_t value = reader.Varint();
    if (!reader.ok()) return;
    if (tag == kLogNumber) log = value;
    if (tag == kFirstLog) first = value;
    if (tag == kLastSequence) sequence = value;
  }
  needed.newest = std::max(needed.newest, log);
  if (first.has_value() && *first >= needed.first.value_or(0)) {
    if (*first > needed.first.value_or(0)) needed.sequence = sequence;
    needed.first = first;
  }
  // An opening says of one family after the other that it needs no earlier log, and what was stored last may be in any.
  if (log != 0 && log == needed.first) needed.sequence = std::max(needed.sequence, sequence);
}

}  // namespace

std::vector<LogSurvey> SurveyLogs(rocksdb::Env& env, const std::string& path) {
  std::vector<LogSurvey> logs;
  std::vector<std::string> names;
  if (!env.GetChildren(path, &names).ok()) return logs;
  for (const std::string& name : names) {
    LogSurvey log{.path = absl::StrCat(path, "/", name)};
    if (!absl::EndsWith(name, ".log") || !absl::SimpleAtoi(name.substr(0, name.size() - 4), &log.number)) continue;
    if (!Survey(env, log)) continue;
    logs.push_back(std::move(log));
  }
  std::sort(logs.begin(), logs.end(), [](const LogSurvey& a, const LogSurvey& b) { return a.number < b.number; });
  return logs;
}

LogsNeeded SurveyNeed(rocksdb::Env& env, const std::string& path) {
  LogsNeeded needed;
  std::string manifest;
  if (!rocksdb::ReadFileToString(&env, path + "/CURRENT", &manifest).ok()) return needed;
  while (!manifest.empty() && manifest.back() == '\n') manifest.pop_back();
  LogSurvey list{.path = absl::StrCat(path, "/", manifest)};
  Survey(env, list, [&needed](std::string_view change) { ReadChange(change, needed); });
  // Each opening makes a list, and files are numbered in the order in which they are made. That no earlier log counts
  // is said by an opening with a number that it gives to no log, and later with that of the log that was begun then.
  uint64_t made_by_opening = 0;
  needed.first_is_log = needed.first.has_value() &&
                        absl::SimpleAtoi(absl::StripPrefix(manifest, "MANIFEST-"), &made_by_opening) &&
                        *needed.first > made_by_opening;
  return needed;
}

std::optional<std::string> MissingLog(const LogsNeeded& needed, const std::vector<LogSurvey>& logs) {
  if (!needed.first.has_value()) return std::nullopt;
  const LogSurvey* before = nullptr;
  const bool has_first =
      std::any_of(logs.begin(), logs.end(), [&needed](const LogSurvey& log) { return log.number == *needed.first; });
  for (const LogSurvey& log : logs) {
    if (log.number < *needed.first) continue;
    if (needed.first_is_log && !has_first) return absl::StrCat("before ", log.path);
    if (log.first_sequence == 0) continue;
    const uint64_t expected = before == nullptr ? needed.sequence + 1 : before->next_sequence;
    if (log.first_sequence > expected && (before != nullptr || !has_first)) {
      return before == nullptr ? absl::StrCat("before ", log.path)
                               : absl::StrCat("between ", before->path, " and ", log.path);
    }
    before = &log;
  }
  return std::nullopt;
}

std::optional<std::string> LostBeforeMark(const std::vector<LogPosition>& mark, const LogsNeeded& needed,
                                          const std::vector<LogSurvey>& logs) {
  for (const LogPosition& position : mark) {
    if (position.log < needed.first.value_or(0)) continue;
    const auto log = std::find_if(logs.begin(), logs.end(),
                                  [&position](const LogSurvey& found) { return found.number == position.log; });
    if (log != logs.end()) {
      const uint64_t whole = log->damaged_at.value_or(log->bytes);
      if (whole >= position.bytes) continue;
      return absl::StrCat(log->path, " can be read up to byte ", whole, ", and ", position.bytes,
                          " bytes of it were synced: what was acknowledged last is lost");
    }
    if (position.log != mark.back().log) continue;
    return absl::StrCat("the write-ahead log ", absl::Dec(position.log, absl::kZeroPad6), ".log is missing, of which ",
                        position.bytes, " bytes were synced");
  }
  return std::nullopt;
}

}  // namespace fraktor::inline v0
