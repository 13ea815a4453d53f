#include "fraktor/cluster/embedded/rocksdb/rocksdb_backend.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

std::string Folder(const std::string& name) { return absl::StrCat(testing::TempDir(), "/", name); }

ActivationEntry EntryOf(uint64_t token) {
  return {.owner = "a:1#7",
          .record = {.pid = "pekko://s@a:1/system/grains/x", .snapshot = std::string("\0\1", 2), .version = 3},
          .observed_at = Instant::FromNanoseconds(-5),
          .token = token,
          .epoch = 9};
}

// CLU-13: what was written is there when the node comes back.
TEST(RocksDbBackend, FindsWhatItHasWritten) {
  const std::string folder = Folder("finds");
  const GrainKey alice("account", "alice");
  const GrainKey odd("k", std::string("a/\0b", 4));
  const Member member{.authority = "a:1",
                      .incarnation = 7,
                      .system_uid = 5,
                      .kinds = {"account", "k"},
                      .oldest_kinds = {"k"},
                      .status = MemberStatus::kLeaving};
  {
    const std::shared_ptr<RocksDbBackend> backend = RocksDbBackend::Open({.path = folder}).value();
    EXPECT_FALSE(backend->Load().value().exists);
    ASSERT_TRUE(backend->Write({.token_limit = 10'001, .epoch = 8, .members = {member}}).ok());
    ASSERT_TRUE(backend->Write({.activations = {{alice, EntryOf(3)}, {odd, EntryOf(4)}}}).ok());
    EXPECT_FALSE(RocksDbBackend::Open({.path = folder}).ok()) << "one process at a time";
  }
  {
    const std::shared_ptr<RocksDbBackend> backend = RocksDbBackend::Open({.path = folder}).value();
    const EmbeddedState state = backend->Load().value();
    EXPECT_TRUE(state.exists);
    EXPECT_EQ(state.token_limit, 10'001u);
    EXPECT_EQ(state.epoch, 8u);
    EXPECT_EQ(state.members, std::vector<Member>{member});
    ASSERT_EQ(state.activations.size(), 2u);
    for (const auto& [key, entry] : state.activations) EXPECT_EQ(entry, EntryOf(key == alice ? 3 : 4));
    // In order: the last word counts.
    ASSERT_TRUE(backend->Write({.activations = {{alice, std::nullopt}, {odd, EntryOf(5)}, {alice, EntryOf(6)}}}).ok());
    ASSERT_TRUE(backend->Write({.activations = {{odd, std::nullopt}}}).ok());
  }
  const EmbeddedState state = RocksDbBackend::Open({.path = folder}).value()->Load().value();
  ASSERT_EQ(state.activations.size(), 1u);
  EXPECT_EQ(state.activations[0].first, alice);
  EXPECT_EQ(state.activations[0].second, EntryOf(6));
  EXPECT_EQ(state.epoch, 8u);
}

// One record that cannot be read keeps all of them from being read: so it is not written, nor is what comes with it.
TEST(RocksDbBackend, WritesNothingThatItCouldNotRead) {
  const std::string folder = Folder("unreadable");
  const std::shared_ptr<RocksDbBackend> backend = RocksDbBackend::Open({.path = folder}).value();
  ASSERT_TRUE(backend->Write({.token_limit = 1}).ok());
  const GrainKey alice("account", "alice");
  ActivationEntry large = EntryOf(3);
  large.record.snapshot.resize(size_t{17} << 20);
  for (const auto& [key, entry] : std::vector<std::pair<GrainKey, ActivationEntry>>{
           {GrainKey("a/b", "alice"), EntryOf(3)}, {GrainKey("account", ""), EntryOf(3)}, {alice, large}}) {
    const absl::Status refused = backend->Write({.token_limit = 2, .activations = {{alice, EntryOf(2)}, {key, entry}}});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
  const absl::StatusOr<EmbeddedState> state = backend->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->token_limit, 1u);
  EXPECT_TRUE(state->activations.empty());
}

TEST(RocksDbBackend, SaysWhyAFolderCannotBeOpened) {
  const absl::Status status = RocksDbBackend::Open({.path = Folder("none/of/these/is/there")}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(std::string(status.message()).find("none/of/these"), std::string::npos) << status;
}

TEST(RocksDbBackend, SaysThatAnotherHasTheFolder) {
  const std::string folder = Folder("taken");
  const std::shared_ptr<RocksDbBackend> first = RocksDbBackend::Open({.path = folder}).value();
  const absl::Status status = RocksDbBackend::Open({.path = folder}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  for (const std::string& words : {folder, std::string("Another store has it open")}) {
    EXPECT_NE(std::string(status.message()).find(words), std::string::npos) << words << " in " << status;
  }
}

std::string NewestLog(const std::string& folder) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".log") newest = std::max(newest, entry.path().string());
  }
  return newest;
}

// Three tokens that were acknowledged; where the log ends after each of them.
std::vector<uintmax_t> WriteTokens(const std::string& folder) {
  std::vector<uintmax_t> ends;
  const std::shared_ptr<RocksDbBackend> backend = RocksDbBackend::Open({.path = folder}).value();
  for (const uint64_t token : {10'001, 20'001, 30'001}) {
    EXPECT_TRUE(backend->Write({.token_limit = token}).ok());
    ends.push_back(std::filesystem::file_size(NewestLog(folder)));
  }
  return ends;
}

// A token that was given must never be given again.
TEST(RocksDbBackend, RefusesALogWhoseDamageWouldTakeTokensBack) {
  const std::string folder = Folder("damaged");
  const std::vector<uintmax_t> ends = WriteTokens(folder);
  const std::string log = NewestLog(folder);
  {
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(ends[0]) + 10);
    file.put('\xff');
  }
  const absl::Status refused = RocksDbBackend::Open({.path = folder}).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  for (const std::string& words : {log, std::string("Nothing was changed"), std::string("the cluster's store")}) {
    EXPECT_NE(std::string(refused.message()).find(words), std::string::npos) << words << " in " << refused;
  }
}

TEST(RocksDbBackend, RefusesALogThatWasCutBetweenTwoRecords) {
  const std::string folder = Folder("cut");
  const std::vector<uintmax_t> ends = WriteTokens(folder);
  for (const uintmax_t end : {ends[1], ends[0], uintmax_t{0}}) {
    std::filesystem::resize_file(NewestLog(folder), end);
    const absl::Status refused = RocksDbBackend::Open({.path = folder}).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  }
}

TEST(RocksDbBackend, RefusesALogThatIsMissing) {
  const std::string folder = Folder("missing");
  WriteTokens(folder);
  std::filesystem::remove(NewestLog(folder));
  const absl::Status refused = RocksDbBackend::Open({.path = folder}).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
}

TEST(RocksDbBackend, OpensADamagedLogIfItIsAskedTo) {
  const std::string folder = Folder("asked");
  const std::vector<uintmax_t> ends = WriteTokens(folder);
  std::filesystem::resize_file(NewestLog(folder), ends[1]);
  std::vector<std::string> warnings;
  const absl::StatusOr<std::shared_ptr<RocksDbBackend>> backend = RocksDbBackend::Open(
      {.path = folder, .on_damaged_log = OnDamagedLog::kDropRest, .on_warning = [&](const std::string& line) {
         warnings.push_back(line);
       }});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->Load()->token_limit, 20'001u);
  EXPECT_EQ(warnings.size(), 1u);
}

// The process need not end for that.
TEST(RocksDbBackend, GoesOnAfterAWriteThatFailed) {
  ForgetfulDisk disk;
  const std::shared_ptr<RocksDbBackend> backend =
      RocksDbBackend::Open({.path = Folder("full"), .env = disk.env()}).value();
  ASSERT_TRUE(backend->Write({.token_limit = 10'001}).ok());
  disk.SetFull(true);
  for (int i = 0; i < 2; ++i) {
    const absl::Status full = backend->Write({.token_limit = 20'001});
    EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
    EXPECT_EQ(backend->Load()->token_limit, 10'001u);
  }
  disk.SetFull(false);
  EXPECT_EQ(backend->Load()->token_limit, 10'001u);
  ASSERT_TRUE(backend->Write({.token_limit = 30'001}).ok());
  EXPECT_EQ(backend->Load()->token_limit, 30'001u);
}

TEST(RocksDbBackend, KeepsWhatItHasAcknowledgedIfASyncFailsAndThePowerGoes) {
  ForgetfulDisk disk;
  const std::string folder = Folder("power");
  for (uint64_t token = 10'001; token < 60'000; token += 10'000) {
    {
      const std::shared_ptr<RocksDbBackend> backend = RocksDbBackend::Open({.path = folder, .env = disk.env()}).value();
      EXPECT_EQ(backend->Load()->token_limit, token - (token == 10'001 ? 10'001 : 10'000));
      ASSERT_TRUE(backend->Write({.token_limit = token}).ok());
      disk.PowerOffAtNextSync();
      EXPECT_FALSE(backend->Write({.token_limit = token + 1}).ok());
    }
    disk.PowerOn({});
  }
}

TEST(RocksDbBackend, OpensAStoreThatAnOlderVersionHasWritten) {
  const std::string folder = Folder("older");
  WriteTokens(folder);
  // Older versions keep no mark.
  std::filesystem::remove(folder + "/COMMIT-MARK");
  const absl::StatusOr<std::shared_ptr<RocksDbBackend>> backend = RocksDbBackend::Open({.path = folder});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->Load()->token_limit, 30'001u);
}

TEST(RocksDbBackend, RefusesStoresOfOtherVersions) {
  const std::string folder = Folder("versions");
  ASSERT_TRUE(RocksDbBackend::Open({.path = folder}).value()->Write({}).ok());
  for (const char version : {1, 2, 4}) {
    {
      rocksdb::DB* opened = nullptr;
      ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), folder, &opened).ok());
      const std::unique_ptr<rocksdb::DB> db(opened);
      ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), "schema", std::string(1, version)).ok());
    }
    const absl::Status status = RocksDbBackend::Open({.path = folder}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(std::string(status.message()).find(absl::StrCat("is of version ", static_cast<int>(version), ",")),
              std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace fraktor
