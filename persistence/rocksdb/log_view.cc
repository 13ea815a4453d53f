#include "fraktor/persistence/rocksdb/log_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/slice.h"

#include "fraktor/persistence/rocksdb/log_format.h"

namespace fraktor::inline v0 {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Reads the file block by block, and shows what derived classes make of each.
class LogView : public rocksdb::FSSequentialFile {
 public:
  explicit LogView(std::unique_ptr<rocksdb::FSSequentialFile> file) : file_(std::move(file)) {}

  // A short read is the end.
  IOStatus Read(size_t bytes, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* debug) override {
    const IOStatus status = Prepare(bytes, options, debug);
    if (!status.ok()) return status;
    const size_t taken = std::min(bytes, shown_.size() - taken_);
    std::memcpy(scratch, shown_.data() + taken_, taken);
    taken_ += taken;
    *result = rocksdb::Slice(scratch, taken);
    return status;
  }
  IOStatus Skip(uint64_t bytes) override {
    const IOStatus status = Prepare(static_cast<size_t>(bytes), IOOptions(), nullptr);
    if (status.ok()) taken_ += std::min(static_cast<size_t>(bytes), shown_.size() - taken_);
    return status;
  }

 protected:
  // Shows what there is to see of the block; all but the last are whole.
  virtual IOStatus ShowBlock(std::string_view block) = 0;

  void Show(std::string_view bytes) { shown_ += bytes; }
  // Shows no more.
  void End() { is_at_end_ = true; }
  void ShowRecord(uint8_t type, std::string_view data) { AppendLogRecord(shown_, dropped_, type, data); }

 private:
  // Until so many bytes can be taken, or there are no more.
  IOStatus Prepare(size_t bytes, const IOOptions& options, IODebugContext* debug) {
    dropped_ += taken_;
    shown_.erase(0, std::exchange(taken_, 0));
    while (shown_.size() < bytes && !is_at_end_) {
      std::string block(kLogBlockBytes, '\0');
      size_t filled = 0;
      while (filled < block.size()) {
        rocksdb::Slice read;
        const IOStatus status = file_->Read(block.size() - filled, options, &read, block.data() + filled, debug);
        if (!status.ok()) return status;
        if (read.empty()) break;
        if (read.data() != block.data() + filled) std::memmove(block.data() + filled, read.data(), read.size());
        filled += read.size();
      }
      block.resize(filled);
      if (filled < kLogBlockBytes) End();
      const IOStatus status = ShowBlock(block);
      if (!status.ok()) return status;
    }
    return IOStatus::OK();
  }

  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
  // Behind the first `dropped_` bytes. The first `taken_` of it are read already.
  std::string shown_;
  uint64_t dropped_ = 0;
  size_t taken_ = 0;
  bool is_at_end_ = false;
};

class UpToDamage final : public LogView {
 public:
  UpToDamage(uint64_t log_number, std::unique_ptr<rocksdb::FSSequentialFile> file)
      : LogView(std::move(file)), log_number_(log_number) {}

 private:
  IOStatus ShowBlock(std::string_view block) override {
    size_t at = 0;
    while (at + kLogHeaderBytes <= block.size()) {
      const std::optional<LogPiece> piece = ReadLogPiece(block, at, log_number_);
      if (!piece.has_value()) {
        Show(block.substr(0, at));
        Show(std::string_view("\0", 1));
        End();
        return IOStatus::OK();
      }
      at += piece->bytes;
    }
    Show(block);
    return IOStatus::OK();
  }

  const uint64_t log_number_;
};

class GoodRecords final : public LogView {
 public:
  GoodRecords(uint64_t log_number, std::unique_ptr<rocksdb::FSSequentialFile> file)
      : LogView(std::move(file)), log_number_(log_number) {}

 private:
  IOStatus ShowBlock(std::string_view block) override {
    for (size_t at = 0; at + kLogHeaderBytes <= block.size();) {
      const std::optional<LogPiece> piece = ReadLogPiece(block, at, log_number_);
      if (!piece.has_value()) {
        record_.reset();
        at = FindLogRecord(block, at + 1, log_number_);
        continue;
      }
      Take(*piece);
      at += piece->bytes;
    }
    return IOStatus::OK();
  }

  void Take(const LogPiece& piece) {
    switch (piece.type) {
      case kLogFull:
        record_.reset();
        ShowRecord(kLogFull, piece.data);
        return;
      case kLogFirst:
        record_ = std::string(piece.data);
        return;
      case kLogMiddle:
        if (record_.has_value()) *record_ += piece.data;
        return;
      case kLogLast:
        if (!record_.has_value()) return;
        *record_ += piece.data;
        ShowRecord(kLogFull, *record_);
        record_.reset();
        return;
      default:
        ShowRecord(piece.type, piece.data);
    }
  }

  const uint64_t log_number_;
  // The record whose first pieces have come.
  std::optional<std::string> record_;
};

class ManifestView final : public LogView {
 public:
  using LogView::LogView;

 private:
  IOStatus ShowBlock(std::string_view block) override {
    for (size_t at = 0; at + kLogHeaderBytes <= block.size();) {
      const auto type = static_cast<uint8_t>(block[at + 6]);
      if (type >= kLogRecyclableFull && type <= kLogRecyclableLast) {
        return IOStatus::Corruption("the list of files (MANIFEST) has a record of a file that is used again");
      }
      const std::optional<LogPiece> piece = ReadLogPiece(block, at, /*log_number=*/0);
      if (!piece.has_value()) break;
      at += piece->bytes;
    }
    Show(block);
    return IOStatus::OK();
  }
};

}  // namespace

std::unique_ptr<rocksdb::FSSequentialFile> MakeLogView(LogReading reading, uint64_t log_number,
                                                       std::unique_ptr<rocksdb::FSSequentialFile> file) {
  if (reading == LogReading::kUpToDamage) return std::make_unique<UpToDamage>(log_number, std::move(file));
  return std::make_unique<GoodRecords>(log_number, std::move(file));
}

std::unique_ptr<rocksdb::FSSequentialFile> MakeManifestView(std::unique_ptr<rocksdb::FSSequentialFile> file) {
  return std::make_unique<ManifestView>(std::move(file));
}

}  // namespace fraktor::inline v0
