#include "fraktor/persistence/rocksdb/log_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"

#include "fraktor/persistence/rocksdb/log_format.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"

namespace fraktor {
namespace {

constexpr uint64_t kNumber = 12;

// A file in memory that may give less than it is asked for.
class Bytes final : public rocksdb::FSSequentialFile {
 public:
  Bytes(std::string bytes, size_t at_most) : bytes_(std::move(bytes)), at_most_(at_most) {}

  rocksdb::IOStatus Read(size_t bytes, const rocksdb::IOOptions&, rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext*) override {
    const size_t taken = std::min({bytes, at_most_, bytes_.size() - at_});
    std::copy_n(bytes_.data() + at_, taken, scratch);
    *result = rocksdb::Slice(scratch, taken);
    at_ += taken;
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Skip(uint64_t) override { return rocksdb::IOStatus::NotSupported(); }

 private:
  const std::string bytes_;
  const size_t at_most_;
  size_t at_ = 0;
};

std::string ReadAll(rocksdb::FSSequentialFile& file, size_t bytes) {
  std::string all;
  std::string scratch(bytes, '\0');
  while (true) {
    rocksdb::Slice read;
    EXPECT_TRUE(file.Read(bytes, rocksdb::IOOptions(), &read, scratch.data(), nullptr).ok());
    all += read.ToString();
    // RocksDB takes a short read for the end.
    if (read.size() < bytes) return all;
  }
}

std::string View(LogReading reading, const std::string& log, size_t bytes = kLogBlockBytes, size_t at_most = 1 << 20) {
  return ReadAll(*MakeLogView(reading, kNumber, std::make_unique<Bytes>(log, at_most)), bytes);
}

std::string RecordOf(size_t i, size_t bytes) { return std::string(bytes, static_cast<char>('a' + i % 26)); }

// Records of all lengths, among them those that end near the end of a block.
std::vector<std::string> Records() {
  std::vector<std::string> records;
  for (const size_t bytes : {13, 40, 100, 32'580, 7, 0, 32'761, 32'755, 70'000, 30'000, 2'700, 20, 200'000, 15}) {
    records.push_back(RecordOf(records.size(), bytes));
  }
  return records;
}

std::string LogOf(const std::vector<std::string>& records, std::vector<size_t>* ends = nullptr) {
  std::string log;
  for (const std::string& record : records) {
    AppendLogRecord(log, 0, kLogFull, record);
    if (ends != nullptr) ends->push_back(log.size());
  }
  return log;
}

TEST(LogView, ShowsAWholeLogAsItIs) {
  const std::string log = LogOf(Records());
  for (const LogReading reading : {LogReading::kUpToDamage, LogReading::kGoodRecords}) {
    for (const size_t bytes : {size_t{1000}, kLogBlockBytes, size_t{100'000}, size_t{1} << 20}) {
      for (const size_t at_most : {size_t{777}, size_t{1} << 20}) {
        EXPECT_TRUE(View(reading, log, bytes, at_most) == log) << bytes << " " << at_most;
      }
    }
    EXPECT_EQ(View(reading, ""), "");
  }
}

TEST(LogView, ShowsWhatRocksDbHasWritten) {
  const TemporaryFolder folder;
  rocksdb::DB* opened = nullptr;
  rocksdb::Options options;
  options.create_if_missing = true;
  ASSERT_TRUE(rocksdb::DB::Open(options, folder.path("db"), &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (const std::string& record : Records()) {
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), absl::StrCat("key", record.size()), record).ok());
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("db"))) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string log((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ASSERT_GT(log.size(), 400'000u);
    EXPECT_TRUE(View(LogReading::kUpToDamage, log) == log);
    EXPECT_TRUE(View(LogReading::kGoodRecords, log) == log);
  }
}

// One bit of each of the headers, and some within, is turned.
TEST(LogView, LeavesOutWhatIsDamaged) {
  const std::vector<std::string> records = Records();
  std::vector<size_t> ends;
  const std::string log = LogOf(records, &ends);
  size_t begin = 0;
  for (size_t i = 0; i < records.size(); begin = ends[i], ++i) {
    std::vector<std::string> rest = records;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const size_t room = kLogBlockBytes - begin % kLogBlockBytes;
    const size_t header = room < kLogHeaderBytes ? begin + room : begin;
    for (size_t at = header; at < ends[i]; at += at < header + kLogHeaderBytes ? 1 : 9973) {
      for (const int bit : {1, 4, 128}) {
        SCOPED_TRACE(absl::StrCat("record ", i, ", byte ", at, ", bit ", bit));
        std::string damaged = log;
        damaged[at] = static_cast<char>(damaged[at] ^ bit);
        const std::string shown = View(LogReading::kUpToDamage, damaged);
        // Pieces of the damaged record may be before the damage.
        ASSERT_GE(shown.size(), header);
        ASSERT_LE(shown.size(), at + 1);
        EXPECT_TRUE(shown.substr(0, shown.size() - 1) == log.substr(0, shown.size() - 1));
        EXPECT_EQ(shown.back(), '\0');
        EXPECT_LT(shown.size() % kLogBlockBytes, kLogBlockBytes - kLogHeaderBytes + 2) << "RocksDB sees a torn header";
        const std::string good = View(LogReading::kGoodRecords, damaged);
        if (good != LogOf(rest)) {
          // The head of a batch, or less, is no sign of a good record, nor is what is behind it in
          // the block.
          ASSERT_LT(i + 1, records.size());
          EXPECT_LE(records[i + 1].size(), kLogBatchHeadBytes);
        }
      }
    }
  }
}

TEST(LogView, LeavesOutWhatLooksLikeAFileThatIsUsedAgain) {
  for (const char type : {5, 6, 7, 8}) {
    for (const std::string_view length :
         {std::string_view("\xff\xff", 2), std::string_view("\0\0", 2), std::string_view("\x20\0", 2)}) {
      const std::string garbage = absl::StrCat("cccc", std::string(length), std::string(1, type), std::string(40, 'x'));
      const std::string before = LogOf({RecordOf(0, 50)});
      EXPECT_EQ(View(LogReading::kUpToDamage, before + garbage), before + '\0');
      EXPECT_EQ(View(LogReading::kGoodRecords, before + garbage), before);
      EXPECT_EQ(View(LogReading::kGoodRecords, garbage + before), before);
    }
  }
}

TEST(ManifestView, FailsAtWhatLooksLikeAFileThatIsUsedAgain) {
  const std::string list = LogOf({RecordOf(0, 50), RecordOf(1, 50), RecordOf(2, 40'000)});
  EXPECT_TRUE(ReadAll(*MakeManifestView(std::make_unique<Bytes>(list, 1 << 20)), kLogBlockBytes) == list);
  for (const char type : {5, 6, 7, 8}) {
    std::string damaged = list;
    damaged[57 + 6] = type;
    const auto view = MakeManifestView(std::make_unique<Bytes>(damaged, 1 << 20));
    std::string scratch(kLogBlockBytes, '\0');
    rocksdb::Slice read;
    EXPECT_TRUE(view->Read(kLogBlockBytes, rocksdb::IOOptions(), &read, scratch.data(), nullptr).IsCorruption());
  }
}

}  // namespace
}  // namespace fraktor
