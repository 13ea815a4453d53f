// LogPiece: the format of write-ahead logs, read and written without RocksDB.
//
// The format is the same since LevelDB: blocks of 32 KiB; pieces of a header (checksum, 2 bytes of
// length, 1 byte of type) and data, none across two blocks. A record is one piece, or several:
// first, middle, last. Where the rest of a block has no room for a header, it is filled with zeros.
// The list of files of a database (MANIFEST) has this format, too.
//
// The reader of RocksDB loops without end on some damage. LogFiles shows it only what ReadLogPiece
// can read.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_LOG_FORMAT_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_LOG_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fraktor::inline v0 {

inline constexpr size_t kLogBlockBytes = 32768;
inline constexpr size_t kLogHeaderBytes = 7;
// The head of a batch, which every record has: the number of the first thing in it, 8 bytes, and
// how many there are, 4 bytes. RocksDB begins a log with a record that has no more, if the log
// before was torn. If the process is killed then, both logs are there the next time.
inline constexpr size_t kLogBatchHeadBytes = 12;

// Types of pieces. Greater ones are descriptions of the file, each whole.
inline constexpr uint8_t kLogZero = 0;  // room that was reserved and not written
inline constexpr uint8_t kLogFull = 1;
inline constexpr uint8_t kLogFirst = 2;
inline constexpr uint8_t kLogMiddle = 3;
inline constexpr uint8_t kLogLast = 4;
// Pieces of a file that is used again. They name the number of the file.
inline constexpr uint8_t kLogRecyclableFull = 5;
inline constexpr uint8_t kLogRecyclableFirst = 6;
inline constexpr uint8_t kLogRecyclableLast = 8;

// A record, or a piece of one, with the right checksum.
struct LogPiece {
  // As if it were not recyclable.
  uint8_t type = kLogZero;
  // With its header.
  size_t bytes = 0;
  std::string_view data = {};
  // It begins a record that has more than the head of a batch.
  bool begins_record = false;
};

// The piece that begins there. None if there is none that is whole, or if it is not of the log with
// that number.
std::optional<LogPiece> ReadLogPiece(std::string_view block, size_t at, uint64_t log_number);

// Searches byte by byte, behind damage: the first place from `at` on where a record begins. The end
// of the block if there is none.
size_t FindLogRecord(std::string_view block, size_t at, uint64_t log_number);

// Appends the data in as many pieces as it needs. `type` is kLogFull, or the type of a description.
// `log` is a log without its first `dropped` bytes.
void AppendLogRecord(std::string& log, uint64_t dropped, uint8_t type, std::string_view data);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_LOG_FORMAT_H_
