#include "fraktor/persistence/testing/rocksdb/sim_disk.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace fraktor {
namespace {

constexpr const char* kFolder = "/store";
constexpr const char* kFile = "/store/file";

std::unique_ptr<rocksdb::WritableFile> Make(SimDisk& disk, const std::string& path) {
  EXPECT_TRUE(disk.env()->CreateDirIfMissing(kFolder).ok());
  std::unique_ptr<rocksdb::WritableFile> file;
  EXPECT_TRUE(disk.env()->NewWritableFile(path, &file, rocksdb::EnvOptions()).ok());
  return file;
}
rocksdb::Status SyncFolder(SimDisk& disk) {
  std::unique_ptr<rocksdb::Directory> folder;
  const rocksdb::Status opened = disk.env()->NewDirectory(kFolder, &folder);
  return opened.ok() ? folder->Fsync() : opened;
}
// The content of the file; "none" if it is not there.
std::string Read(SimDisk& disk, const std::string& path) {
  std::string content;
  return rocksdb::ReadFileToString(disk.env(), path, &content).ok() ? content : "none";
}
void Crash(SimDisk& disk) {
  disk.PowerOff();
  disk.PowerOn();
}

TEST(SimDisk, KeepsWhatIsSyncedAndNoMoreThanWasWritten) {
  std::set<size_t> sizes;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    const auto file = Make(disk, kFile);
    ASSERT_TRUE(file->Append("synced").ok() && file->Sync().ok() && SyncFolder(disk).ok());
    ASSERT_TRUE(file->Append(std::string(100, 'x')).ok());
    Crash(disk);
    const std::string content = Read(disk, kFile);
    EXPECT_EQ(content.substr(0, 6), "synced");
    EXPECT_LE(content.size(), 106u);
    sizes.insert(content.size());
  }
  EXPECT_GT(sizes.size(), 5u);
}

TEST(SimDisk, LosesANameWhoseFolderIsNotSynced) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimDisk disk(seed);
    const auto file = Make(disk, kFile);
    ASSERT_TRUE(file->Append("synced").ok() && file->Sync().ok());
    Crash(disk);
    const std::string content = Read(disk, kFile);
    EXPECT_TRUE(content == "synced" || content == "none") << content;
    lost += content == "none" ? 1 : 0;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 20);
}

TEST(SimDisk, RenamesAsAWholeOrNotAtAll) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SimDisk disk(seed);
    const auto old_file = Make(disk, kFile);
    const auto new_file = Make(disk, "/store/new");
    ASSERT_TRUE(old_file->Append("old").ok() && old_file->Sync().ok());
    ASSERT_TRUE(new_file->Append("new").ok() && new_file->Sync().ok());
    ASSERT_TRUE(SyncFolder(disk).ok());
    ASSERT_TRUE(disk.env()->RenameFile("/store/new", kFile).ok());
    EXPECT_EQ(Read(disk, kFile), "new");
    Crash(disk);
    seen.insert(Read(disk, kFile) + " " + Read(disk, "/store/new"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"old new", "new none"}));
}

TEST(SimDisk, CrashesInsteadOfThePointThatItIsTold) {
  SimDisk disk(1);
  const auto file = Make(disk, kFile);
  disk.CrashAtPoint(2);
  ASSERT_TRUE(file->Append("a").ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_FALSE(disk.is_off());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_TRUE(disk.is_off());
  EXPECT_FALSE(file->Append("b").ok());
}

TEST(SimDisk, MayForgetBytesThatALaterSyncSaysItHas) {
  SimDisk disk(1);
  const auto file = Make(disk, kFile);
  ASSERT_TRUE(SyncFolder(disk).ok());
  ASSERT_TRUE(file->Append("abc").ok());
  disk.set_faults({.fail_sync = 1, .forget = 1});
  EXPECT_FALSE(file->Sync().ok());
  disk.set_faults({});
  ASSERT_TRUE(file->Append("def").ok() && file->Sync().ok());
  EXPECT_EQ(Read(disk, kFile), "abcdef");
  Crash(disk);
  EXPECT_EQ(Read(disk, kFile), std::string("\0\0\0def", 6));
}

TEST(SimDisk, HasNoRoomWhileItIsFull) {
  SimDisk disk(1);
  const auto file = Make(disk, kFile);
  disk.SetFull(true);
  EXPECT_NE(file->Append("abc").ToString().find("No space left"), std::string::npos);
  disk.SetFull(false);
  EXPECT_TRUE(file->Append("def").ok());
}

}  // namespace
}  // namespace fraktor
