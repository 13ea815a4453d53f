#include "fraktor/persistence/rocksdb/commit_mark.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rocksdb/env.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kMagic = "fraktorM";
constexpr size_t kSlots = 2;
constexpr size_t kSlotBytes = 512;
constexpr size_t kHeadBytes = 20;
constexpr size_t kBytesPerLog = 16;
constexpr uint64_t kMicrosBetweenSyncs = 1'000'000;
static_assert(kHeadBytes + CommitMark::kMaxLogs * kBytesPerLog + sizeof(uint32_t) <= kSlotBytes);

struct Slot {
  uint64_t serial = 0;
  std::vector<LogPosition> logs = {};
};

std::string WriteOf(uint64_t serial, const std::vector<LogPosition>& logs) {
  std::string bytes(kMagic);
  AppendFixed64(bytes, serial);
  AppendFixed32(bytes, static_cast<uint32_t>(logs.size()));
  for (const LogPosition& log : logs) {
    AppendFixed64(bytes, log.log);
    AppendFixed64(bytes, log.bytes);
  }
  AppendFixed32(bytes, ExtendCrc32c(0, bytes));
  return bytes;
}

std::optional<Slot> ReadSlot(std::string_view content, size_t i) {
  if (content.size() < i * kSlotBytes + kHeadBytes) return std::nullopt;
  const std::string_view bytes = content.substr(i * kSlotBytes, kSlotBytes);
  if (bytes.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  const size_t count = LoadFixed32(bytes.data() + 16);
  const size_t checked = kHeadBytes + count * kBytesPerLog;
  if (count > CommitMark::kMaxLogs || bytes.size() < checked + sizeof(uint32_t)) return std::nullopt;
  if (LoadFixed32(bytes.data() + checked) != ExtendCrc32c(0, bytes.substr(0, checked))) return std::nullopt;
  Slot slot{.serial = LoadFixed64(bytes.data() + 8)};
  for (const char* at = bytes.data() + kHeadBytes; at < bytes.data() + checked; at += kBytesPerLog) {
    slot.logs.push_back({.log = LoadFixed64(at), .bytes = LoadFixed64(at + 8)});
  }
  return slot;
}

// The slot that counts, and its index.
std::optional<Slot> NewestSlot(std::string_view content, size_t& index) {
  std::optional<Slot> newest;
  for (size_t i = 0; i < kSlots; ++i) {
    std::optional<Slot> slot = ReadSlot(content, i);
    if (!slot.has_value() || (newest.has_value() && newest->serial > slot->serial)) continue;
    newest = std::move(slot);
    index = i;
  }
  return newest;
}

}  // namespace

std::vector<LogPosition> CommitMark::Read(rocksdb::Env& env, const std::string& folder) {
  std::string content;
  if (!rocksdb::ReadFileToString(&env, absl::StrCat(folder, "/", kFileName), &content).ok()) return {};
  size_t index = 0;
  std::optional<Slot> newest = NewestSlot(content, index);
  return newest.has_value() ? std::move(newest->logs) : std::vector<LogPosition>();
}

CommitMark::CommitMark(rocksdb::Env& env, const std::string& folder)
    : env_(env), folder_(folder), path_(absl::StrCat(folder, "/", kFileName)) {}

CommitMark::~CommitMark() { Close(); }

void CommitMark::Write(std::vector<LogPosition> logs) {
  if (logs.size() > kMaxLogs) logs.erase(logs.begin(), logs.end() - static_cast<std::ptrdiff_t>(kMaxLogs));
  if (has_failed_ || logs.empty() || logs == written_) return;
  rocksdb::Status status = file_ == nullptr ? Open() : rocksdb::Status::OK();
  if (status.ok()) status = WriteSlot(logs);
  const bool is_due = logs.back().log != synced_log_ || env_.NowMicros() - synced_at_micros_ >= kMicrosBetweenSyncs;
  if (status.ok() && is_due) status = Sync();
  has_failed_ = !status.ok();
}

void CommitMark::Close() {
  if (file_ != nullptr && is_dirty_ && !has_failed_) Sync().PermitUncheckedError();
  if (file_ != nullptr) file_->Close().PermitUncheckedError();
  file_.reset();
  has_failed_ = false;
  written_.clear();
  synced_log_ = 0;
}

rocksdb::Status CommitMark::Open() {
  std::string content;
  if (env_.FileExists(path_).ok()) {
    const rocksdb::Status read = rocksdb::ReadFileToString(&env_, path_, &content);
    if (!read.ok()) return read;
    size_t index = kSlots - 1;
    const std::optional<Slot> newest = NewestSlot(content, index);
    serial_ = newest.has_value() ? newest->serial : 0;
    next_slot_ = (index + 1) % kSlots;
  } else {
    // A name that is not synced could be lost with all later marks.
    const rocksdb::Status made =
        rocksdb::WriteStringToFile(&env_, std::string(kSlots * kSlotBytes, '\0'), path_, /*should_sync=*/true);
    if (!made.ok()) return made;
    std::unique_ptr<rocksdb::Directory> folder;
    rocksdb::Status synced = env_.NewDirectory(folder_, &folder);
    if (synced.ok()) synced = folder->Fsync();
    if (!synced.ok()) return synced;
    serial_ = 0;
    next_slot_ = 0;
  }
  return env_.NewRandomRWFile(path_, &file_, rocksdb::EnvOptions());
}

rocksdb::Status CommitMark::WriteSlot(const std::vector<LogPosition>& logs) {
  const std::string slot = WriteOf(serial_ + 1, logs);
  const rocksdb::Status written = file_->Write(next_slot_ * kSlotBytes, rocksdb::Slice(slot));
  if (!written.ok()) return written;
  ++serial_;
  next_slot_ = (next_slot_ + 1) % kSlots;
  written_ = logs;
  is_dirty_ = true;
  return written;
}

rocksdb::Status CommitMark::Sync() {
  const rocksdb::Status synced = file_->Sync();
  if (!synced.ok()) return synced;
  is_dirty_ = false;
  synced_log_ = written_.back().log;
  synced_at_micros_ = env_.NowMicros();
  return synced;
}

}  // namespace fraktor::inline v0
