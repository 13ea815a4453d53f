#include "fraktor/persistence/rocksdb/log_format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/utils/bytes/bytes.h"

namespace fraktor::inline v0 {
namespace {

// The header of recyclable pieces has the number of the file, too.
constexpr size_t kRecyclableHeaderBytes = 11;
constexpr uint32_t kMaskDelta = 0xa282ead8U;

uint32_t Mask(uint32_t checksum) { return ((checksum >> 15) | (checksum << 17)) + kMaskDelta; }

bool IsRecyclable(uint8_t type) { return type >= kLogRecyclableFull && type <= kLogRecyclableLast; }

}  // namespace

std::optional<LogPiece> ReadLogPiece(std::string_view block, size_t at, uint64_t log_number) {
  if (at + kLogHeaderBytes > block.size()) return std::nullopt;
  const auto byte = [&block, at](size_t i) { return static_cast<uint8_t>(block[at + i]); };
  const size_t length = byte(4) | static_cast<size_t>(byte(5)) << 8;
  uint8_t type = byte(6);
  if (type == kLogZero) return std::nullopt;
  const bool is_recyclable = IsRecyclable(type);
  const size_t bytes = (is_recyclable ? kRecyclableHeaderBytes : kLogHeaderBytes) + length;
  if (bytes > block.size() - at) return std::nullopt;
  if (is_recyclable) {
    // One of another number was there before the file was used again.
    if (LoadFixed32(block.data() + at + kLogHeaderBytes) != static_cast<uint32_t>(log_number)) return std::nullopt;
    type = static_cast<uint8_t>(type - kLogRecyclableFull + kLogFull);
  }
  if (LoadFixed32(block.data() + at) != Mask(ExtendCrc32c(0, block.substr(at + 6, bytes - 6)))) return std::nullopt;
  LogPiece piece{.type = type, .bytes = bytes, .data = block.substr(at + bytes - length, length)};
  piece.begins_record = type == kLogFirst || (type == kLogFull && length > kLogBatchHeadBytes);
  return piece;
}

size_t FindLogRecord(std::string_view block, size_t at, uint64_t log_number) {
  for (; at + kLogHeaderBytes <= block.size(); ++at) {
    // Most places are no begin of a record, and a checksum takes its time.
    const auto type = static_cast<uint8_t>(block[at + 6]);
    if (type != kLogFull && type != kLogFirst && type != kLogRecyclableFull && type != kLogRecyclableFirst) continue;
    const std::optional<LogPiece> piece = ReadLogPiece(block, at, log_number);
    if (piece.has_value() && piece->begins_record) return at;
  }
  return block.size();
}

void AppendLogRecord(std::string& log, uint64_t dropped, uint8_t type, std::string_view data) {
  for (bool is_first = true;; is_first = false) {
    size_t room = kLogBlockBytes - static_cast<size_t>((dropped + log.size()) % kLogBlockBytes);
    if (room < kLogHeaderBytes) {
      log.append(room, '\0');
      room = kLogBlockBytes;
    }
    const std::string_view piece = data.substr(0, std::min(data.size(), room - kLogHeaderBytes));
    data.remove_prefix(piece.size());
    const bool is_last = data.empty();
    const uint8_t piece_type = is_first && is_last ? type : is_first ? kLogFirst : is_last ? kLogLast : kLogMiddle;
    std::string checked(1, static_cast<char>(piece_type));
    checked += piece;
    AppendFixed32(log, Mask(ExtendCrc32c(0, checked)));
    log += static_cast<char>(piece.size() & 0xff);
    log += static_cast<char>(piece.size() >> 8);
    log += checked;
    if (is_last) return;
  }
}

}  // namespace fraktor::inline v0
