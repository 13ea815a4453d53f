#include "fraktor/persistence/rocksdb/commit_mark.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"

#include "fraktor/persistence/rocksdb/log_files.h"
#include "fraktor/persistence/rocksdb/log_view.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"

namespace fraktor {
namespace {

using Logs = std::vector<LogPosition>;

// The time stands still until it is told.
class StillEnv final : public rocksdb::EnvWrapper {
 public:
  explicit StillEnv(rocksdb::Env* base) : rocksdb::EnvWrapper(base) {}
  const char* Name() const override { return "StillEnv"; }
  uint64_t NowMicros() override { return now_; }

  void Advance(uint64_t micros) { now_ += micros; }

 private:
  uint64_t now_ = 1'000'000'000;
};

class CommitMarkTest : public testing::Test {
 protected:
  CommitMarkTest() { std::filesystem::create_directory(path_); }

  // The mark that a loss of power leaves.
  Logs AfterLossOfPower() {
    disk_.PowerOff();
    mark_.Close();
    disk_.PowerOn({});
    return CommitMark::Read(env_, path_);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("database");
  ForgetfulDisk disk_;
  StillEnv env_{disk_.env()};
  CommitMark mark_{env_, path_};
};

TEST_F(CommitMarkTest, IsReadBack) {
  EXPECT_EQ(CommitMark::Read(env_, path_), Logs());
  for (uint64_t i = 1; i <= 5; ++i) {
    mark_.Write({{.log = 7, .bytes = 100 * i}});
    EXPECT_EQ(CommitMark::Read(env_, path_), (Logs{{.log = 7, .bytes = 100 * i}}));
  }
  EXPECT_EQ(std::filesystem::file_size(path_ + "/" + CommitMark::kFileName), 1024u);
  // Another writer goes on behind it.
  CommitMark next(env_, path_);
  next.Write({{.log = 8, .bytes = 1}});
  EXPECT_EQ(CommitMark::Read(env_, path_), (Logs{{.log = 8, .bytes = 1}}));
  // After logs were dropped, the mark may go back.
  next.Write({{.log = 6, .bytes = 2}});
  EXPECT_EQ(CommitMark::Read(env_, path_), (Logs{{.log = 6, .bytes = 2}}));
}

TEST_F(CommitMarkTest, HasTheNewestLogs) {
  Logs logs;
  for (uint64_t i = 1; i <= CommitMark::kMaxLogs + 5; ++i) {
    logs.push_back({.log = i, .bytes = i * i});
    mark_.Write(logs);
    const size_t left_out = logs.size() - std::min(logs.size(), CommitMark::kMaxLogs);
    EXPECT_EQ(CommitMark::Read(env_, path_), Logs(logs.begin() + static_cast<std::ptrdiff_t>(left_out), logs.end()));
  }
  EXPECT_EQ(std::filesystem::file_size(path_ + "/" + CommitMark::kFileName), 1024u);
}

TEST_F(CommitMarkTest, IsSyncedWhenTheLogChangesAndOncePerSecond) {
  mark_.Write({{.log = 7, .bytes = 100}});
  EXPECT_EQ(AfterLossOfPower(), (Logs{{.log = 7, .bytes = 100}}));
  mark_.Write({{.log = 7, .bytes = 200}});
  mark_.Write({{.log = 7, .bytes = 300}});
  EXPECT_EQ(CommitMark::Read(env_, path_), (Logs{{.log = 7, .bytes = 300}}));
  EXPECT_EQ(AfterLossOfPower(), (Logs{{.log = 7, .bytes = 200}})) << "the first one after it was opened is synced";
  mark_.Write({{.log = 7, .bytes = 400}});
  env_.Advance(999'999);
  mark_.Write({{.log = 7, .bytes = 500}});
  EXPECT_EQ(AfterLossOfPower(), (Logs{{.log = 7, .bytes = 400}}));
  mark_.Write({{.log = 7, .bytes = 600}});
  env_.Advance(1'000'000);
  mark_.Write({{.log = 7, .bytes = 700}});
  EXPECT_EQ(AfterLossOfPower(), (Logs{{.log = 7, .bytes = 700}}));
  mark_.Write({{.log = 7, .bytes = 800}});
  mark_.Write({{.log = 9, .bytes = 10}});
  EXPECT_EQ(AfterLossOfPower(), (Logs{{.log = 9, .bytes = 10}}));
  mark_.Write({{.log = 9, .bytes = 20}});
  mark_.Write({{.log = 9, .bytes = 30}});
  mark_.Close();
  EXPECT_EQ(AfterLossOfPower(), (Logs{{.log = 9, .bytes = 30}}));
}

TEST_F(CommitMarkTest, StaysBehindAfterAnErrorUntilItIsOpenedAgain) {
  mark_.Write({{.log = 7, .bytes = 100}});
  disk_.PowerOff();
  mark_.Write({{.log = 7, .bytes = 200}});
  disk_.PowerOn({});
  mark_.Write({{.log = 7, .bytes = 300}});
  EXPECT_EQ(CommitMark::Read(env_, path_), (Logs{{.log = 7, .bytes = 100}}));
  mark_.Close();
  mark_.Write({{.log = 7, .bytes = 400}});
  EXPECT_EQ(CommitMark::Read(env_, path_), (Logs{{.log = 7, .bytes = 400}}));
}

TEST(LogFiles, KnowTheLogsThatAreSyncedAndNotDeleted) {
  const TemporaryFolder folder;
  const auto files = std::make_shared<LogFiles>(rocksdb::FileSystem::Default(), LogReading::kUpToDamage);
  const std::unique_ptr<rocksdb::Env> env = files->MakeEnv(*rocksdb::Env::Default());
  for (const std::string name : {"000007.log", "000009.log", "000010.sst", "LOG"}) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ASSERT_TRUE(env->GetFileSystem()->NewWritableFile(folder.path(name), rocksdb::FileOptions(), &file, nullptr).ok());
    ASSERT_TRUE(file->Append("abc", rocksdb::IOOptions(), nullptr).ok());
    if (name == "000009.log") {
      EXPECT_EQ(files->synced(), (Logs{{.log = 7, .bytes = 3}}));
    }
    ASSERT_TRUE(file->Sync(rocksdb::IOOptions(), nullptr).ok());
    ASSERT_TRUE(file->Append("d", rocksdb::IOOptions(), nullptr).ok());
  }
  EXPECT_EQ(files->synced(), (Logs{{.log = 7, .bytes = 3}, {.log = 9, .bytes = 3}}));
  ASSERT_TRUE(env->DeleteFile(folder.path("000007.log")).ok());
  EXPECT_EQ(files->synced(), (Logs{{.log = 9, .bytes = 3}}));
}

// RocksDB would go on by itself after its own error of a full disk.
TEST(LogFiles, HaveAPlainErrorForAFullDisk) {
  const TemporaryFolder folder;
  ForgetfulDisk disk;
  const auto files = std::make_shared<LogFiles>(disk.env()->GetFileSystem(), LogReading::kUpToDamage);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(files->NewWritableFile(folder.path("000007.log"), rocksdb::FileOptions(), &file, /*dbg=*/nullptr).ok());
  disk.SetFull(true);
  const rocksdb::IOStatus status = file->Append("abc", rocksdb::IOOptions(), /*dbg=*/nullptr);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
  EXPECT_FALSE(status.IsNoSpace()) << status.ToString();
  EXPECT_NE(status.ToString().find("No space left"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace fraktor
