#include "fraktor/persistence/rocksdb/log_tail.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/env.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace fraktor::inline v0 {
namespace {

constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;
// Of the records in files that are used again, which name the file's number.
constexpr size_t kRecyclableHeaderBytes = 11;

enum RecordType : uint8_t {
  kZero = 0,  // room that was reserved and not written
  kFull = 1,
  kFirst = 2,
  kMiddle = 3,
  kLast = 4,
  kRecyclableFull = 5,
  kRecyclableLast = 8,
};

// How many bytes follow the last whole record; none if the log has something in it that is not known here, about which
// RocksDB has something to say itself.
uint64_t TornBytes(rocksdb::SequentialFile& file) {
  uint64_t whole = 0;  // the end of the last whole record
  uint64_t begin = 0;  // of the block
  std::string scratch(kBlockBytes, '\0');
  while (true) {
    rocksdb::Slice block;
    // A short read is the end: the files are local.
    if (!file.Read(kBlockBytes, &block, scratch.data()).ok() || block.empty()) break;
    size_t at = 0;
    while (at + kHeaderBytes <= block.size()) {
      const auto byte = [&block, at](size_t i) { return static_cast<uint8_t>(block[at + i]); };
      const size_t length = byte(4) | static_cast<size_t>(byte(5)) << 8;
      const uint8_t type = byte(6);
      if (type == kZero) return 0;
      const bool is_recyclable = type >= kRecyclableFull && type <= kRecyclableLast;
      const size_t end = at + (is_recyclable ? kRecyclableHeaderBytes : kHeaderBytes) + length;
      if (end > block.size()) {
        // At the end of the file RocksDB takes it for the end, and may say nothing.
        if (block.size() == kBlockBytes) return 0;
        break;
      }
      at = end;
      // Types above are descriptions of the file, each whole.
      const uint8_t piece = is_recyclable ? static_cast<uint8_t>(type - kRecyclableFull + kFull) : type;
      if (piece != kFirst && piece != kMiddle) whole = begin + at;
    }
    begin += block.size();
    if (block.size() < kBlockBytes) break;
    // What is too short for a header at the end of a block is filled up with zeros.
    if (kBlockBytes - at < kHeaderBytes && whole == begin - kBlockBytes + at) whole = begin;
  }
  return begin - whole;
}

}  // namespace

std::vector<std::string> TornLogTails(rocksdb::Env& env, const std::string& path) {
  std::vector<std::string> lines;
  std::vector<std::string> names;
  if (!env.GetChildren(path, &names).ok()) return lines;
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".log")) continue;
    std::unique_ptr<rocksdb::SequentialFile> file;
    const std::string log = absl::StrCat(path, "/", name);
    if (!env.NewSequentialFile(log, &file, rocksdb::EnvOptions()).ok()) continue;
    const uint64_t bytes = TornBytes(*file);
    if (bytes > 0) {
      lines.push_back(absl::StrCat(log, ": dropping ", bytes,
                                   " bytes; the last record is torn, and was never acknowledged if synced"));
    }
  }
  return lines;
}

}  // namespace fraktor::inline v0
