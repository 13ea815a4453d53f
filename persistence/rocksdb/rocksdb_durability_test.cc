// What survives a loss of power, and what is said of what does not.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/log_format.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/persistence/rocksdb/store_fixture.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

std::vector<AtomicWrite> WriteOf(const std::string& id, uint64_t sequence_nr, uint64_t epoch) {
  std::vector<AtomicWrite> writes;
  writes.push_back(AtomicWrite::Make(PersistentRepr{.persistence_id = id,
                                                    .sequence_nr = sequence_nr,
                                                    .epoch = epoch,
                                                    .payload = absl::StrCat(id, "/", sequence_nr),
                                                    .tags = {"all"}})
                       .value());
  return writes;
}

// What a writer was told. The highest number that was acknowledged, and the epoch.
struct Acknowledged {
  uint64_t epoch = 0;
  uint64_t highest = 0;
  uint64_t deleted_to = 0;
};

class LossOfPower : public testing::Test {
 protected:
  std::unique_ptr<RocksDbJournal> Open(bool sync) {
    absl::StatusOr<std::unique_ptr<RocksDbJournal>> opened = RocksDbJournal::Open(
        *toolbox_, {.path = folder_.path("journal"), .sync = sync, .write_buffer_bytes = 64 << 10, .env = disk_.env()});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  // Writes for some ids, with several requests in flight, until the power goes; notes what was acknowledged.
  void RunUntilPowerGoes(RocksDbJournal& journal, Random& random, std::map<std::string, Acknowledged>& acknowledged,
                         bool goes_in_sync) {
    struct Flight {
      std::string id;
      uint64_t sequence_nr;
      Future<WriteResults> result;
    };
    std::vector<Flight> flights;
    std::map<std::string, uint64_t> next;
    for (int i = 0; i < 5; ++i) {
      const std::string id = absl::StrCat("id-", i);
      const absl::StatusOr<WriterOpened> opened = journal.OpenWriter(id, std::nullopt).Wait();
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_GT(opened->epoch, acknowledged[id].epoch);
      acknowledged[id].epoch = opened->epoch;
      next[id] = opened->highest_sequence_nr + 1;
    }
    const uint64_t rounds = 20 + random.Uniform(200);
    for (uint64_t round = 0; round < rounds; ++round) {
      const std::string id = absl::StrCat("id-", random.Uniform(5));
      const uint64_t number = next[id]++;
      flights.push_back({id, number, journal.Write(WriteOf(id, number, acknowledged[id].epoch))});
      if (random.Bernoulli(0.02) && acknowledged[id].highest > 3) {
        const uint64_t to = acknowledged[id].highest - 3;
        if (journal.DeleteTo(id, to, acknowledged[id].epoch).Wait().ok()) {
          acknowledged[id].deleted_to = std::max(acknowledged[id].deleted_to, to);
        }
      }
      if (round + 10 == rounds) goes_in_sync ? disk_.PowerOffAtNextSync() : disk_.PowerOff();
      while (flights.size() > 8) {
        Land(flights.front().id, flights.front().sequence_nr, flights.front().result.Wait(), acknowledged);
        flights.erase(flights.begin());
      }
    }
    for (Flight& flight : flights) Land(flight.id, flight.sequence_nr, flight.result.Wait(), acknowledged);
  }

  static void Land(const std::string& id, uint64_t sequence_nr, const absl::StatusOr<WriteResults>& results,
                   std::map<std::string, Acknowledged>& acknowledged) {
    if (results.ok() && results->empty()) {
      acknowledged[id].highest = std::max(acknowledged[id].highest, sequence_nr);
    }
  }

  // How many acknowledged events are missing. Everything else must hold in any case: order, no gap, contents, tags.
  uint64_t Missing(RocksDbJournal& journal, const std::map<std::string, Acknowledged>& acknowledged) {
    uint64_t missing = 0;
    size_t stored = 0;
    for (const auto& [id, told] : acknowledged) {
      const absl::StatusOr<EventBatch> batch =
          journal.Replay({.persistence_id = id, .limits = {.max_events = 100'000}}).Wait();
      EXPECT_TRUE(batch.ok()) << batch.status();
      uint64_t last = 0;
      for (const StoredEvent& event : *batch) {
        if (last != 0) {
          EXPECT_EQ(event.sequence_nr, last + 1);
        }
        last = event.sequence_nr;
        EXPECT_EQ(event.payload, absl::StrCat(id, "/", event.sequence_nr));
      }
      stored += batch->size();
      const uint64_t highest = journal.HighestSequenceNr(id).Wait().value();
      if (!batch->empty()) {
        EXPECT_EQ(last, highest);
      }
      missing += told.highest - std::min(told.highest, highest);
      if (!batch->empty() && (*batch)[0].sequence_nr <= told.deleted_to) missing += 1;
    }
    const absl::StatusOr<EventBatch> tagged =
        journal.EventsByTag({.tag = "all", .limits = {.max_events = 100'000}}).Wait();
    EXPECT_TRUE(tagged.ok()) << tagged.status();
    EXPECT_EQ(tagged->size(), stored);
    for (size_t i = 1; i < tagged->size(); ++i) EXPECT_GT((*tagged)[i].offset, (*tagged)[i - 1].offset);
    return missing;
  }

  TemporaryFolder folder_;
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  ForgetfulDisk disk_;
};

TEST_F(LossOfPower, LosesNoAcknowledgedEventIfEachCommitIsSynced) {
  std::map<std::string, Acknowledged> acknowledged;
  Random random(17);
  for (int round = 0; round < 12; ++round) {
    {
      const auto journal = Open(true);
      EXPECT_EQ(Missing(*journal, acknowledged), 0u) << "round " << round;
      // While something is being synced, or whenever it is.
      RunUntilPowerGoes(*journal, random, acknowledged, round % 2 == 0);
    }
    // Sometimes a piece of what was not synced is there all the same.
    disk_.PowerOn({.kept_unsynced_bytes = random.Uniform(3) * random.Uniform(100)});
    // The next round starts from what is really there: what was not acknowledged may be there, too.
  }
  EXPECT_EQ(Missing(*Open(true), acknowledged), 0u);
  EXPECT_GT(disk_.sync_count(), 100u);
  EXPECT_GT(disk_.forgotten_bytes(), 0u);
}

// The same without sync shows that the disk forgets and the test looks.
TEST_F(LossOfPower, LosesAcknowledgedEventsIfNothingIsSynced) {
  std::map<std::string, Acknowledged> acknowledged;
  Random random(17);
  uint64_t missing = 0;
  for (int round = 0; round < 3; ++round) {
    acknowledged.clear();
    {
      const auto journal = Open(false);
      RunUntilPowerGoes(*journal, random, acknowledged, false);
    }
    disk_.PowerOn({});
    missing += Missing(*Open(false), acknowledged);
  }
  EXPECT_GT(missing, 100u);
}

// Offsets rise even if the journal does not sync and a crash takes the last ones back.
TEST_F(LossOfPower, NeverGivesAnOffsetTwice) {
  uint64_t highest = 0;
  for (int round = 0; round < 3; ++round) {
    {
      const auto journal = Open(false);
      const absl::StatusOr<WriterOpened> opened = journal->OpenWriter("a", std::nullopt).Wait();
      ASSERT_TRUE(opened.ok()) << opened.status();
      ASSERT_TRUE(journal->Write(WriteOf("a", opened->highest_sequence_nr + 1, opened->epoch)).Wait()->empty());
      const absl::StatusOr<EventBatch> tagged = journal->EventsByTag({.tag = "all"}).Wait();
      ASSERT_TRUE(tagged.ok()) << tagged.status();
      EXPECT_GT(tagged->back().offset, highest);
      highest = tagged->back().offset;
      disk_.PowerOff();
    }
    disk_.PowerOn({});
  }
}

TEST_F(LossOfPower, KeepsSnapshotsThatWereAcknowledged) {
  const auto open = [this](bool sync) {
    return RocksDbSnapshotStore::Open(*toolbox_, {.path = folder_.path("snapshots"), .sync = sync, .env = disk_.env()})
        .value();
  };
  const auto save = [](RocksDbSnapshotStore& store, uint64_t number) {
    Snapshot snapshot;
    snapshot.metadata = {.persistence_id = "a", .sequence_nr = number};
    snapshot.payload = std::string(20'000, static_cast<char>('a' + number));
    return store.Save(std::move(snapshot), kNoEpoch).Wait().ok();
  };
  const auto newest = [](RocksDbSnapshotStore& store) {
    const absl::StatusOr<std::optional<Snapshot>> loaded = store.Load("a", {}).Wait();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded->has_value() ? (*loaded)->metadata.sequence_nr : 0;
  };
  for (uint64_t number = 1; number <= 5; ++number) {
    {
      const auto store = open(true);
      EXPECT_EQ(newest(*store), number - 1);
      ASSERT_TRUE(save(*store, number));
      disk_.PowerOff();
      EXPECT_FALSE(save(*store, 100));
    }
    disk_.PowerOn({});
  }
  {
    const auto store = open(false);
    ASSERT_TRUE(save(*store, 6));
    disk_.PowerOff();
  }
  disk_.PowerOn({});
  EXPECT_EQ(newest(*open(true)), 5u);
}

// The write-ahead log after a crash: whole, cut at every so many bytes, and with garbage behind it.
class TornLog : public testing::Test {
 protected:
  static constexpr uint64_t kAcknowledged = 20;

  TornLog() {
    // A journal that was left in the middle: twenty acknowledged events, and a log that has more.
    const auto journal = RocksDbJournal::Open(*toolbox_, {.path = path_}).value();
    log_ = NewestLog(path_);
    ends_.push_back(std::filesystem::file_size(log_));
    for (uint64_t number = 1; number <= kAcknowledged + 10; ++number) {
      EXPECT_TRUE(journal->Write(WriteOf("a", number, 0)).Wait()->empty());
      ends_.push_back(std::filesystem::file_size(log_));
      marks_.push_back(ReadFile(path_ + "/" + CommitMark::kFileName));
    }
    acknowledged_bytes_ = ends_[kAcknowledged];
    CopyTo("image");
    // The later events count as never acknowledged.
    MarkImage(kAcknowledged);
  }

  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  // Gives the image the mark that was there when so many events were acknowledged.
  void MarkImage(uint64_t events) {
    std::ofstream(folder_.path("image") + "/" + CommitMark::kFileName, std::ios::binary) << marks_[events - 1];
  }

  static std::string NewestLog(const std::string& path) {
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".log") newest = std::max(newest, entry.path().string());
    }
    return newest;
  }

  void CopyTo(const std::string& name) {
    std::filesystem::remove_all(folder_.path(name));
    std::filesystem::copy(path_, folder_.path(name), std::filesystem::copy_options::recursive);
    std::filesystem::remove(folder_.path(name) + "/LOCK");
  }

  // A fresh copy of what was there; its log.
  std::string FreshLog() {
    std::filesystem::remove_all(folder_.path("copy"));
    std::filesystem::copy(folder_.path("image"), folder_.path("copy"), std::filesystem::copy_options::recursive);
    return NewestLog(folder_.path("copy"));
  }

  // Opens the copy, checks the acknowledged prefix, and answers how many lines the report has.
  size_t OpenAndCheck(uint64_t& highest) {
    const absl::StatusOr<std::unique_ptr<RocksDbJournal>> opened =
        RocksDbJournal::Open(*toolbox_, {.path = folder_.path("copy")});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return 0;
    RocksDbJournal& journal = **opened;
    const absl::StatusOr<EventBatch> batch = journal.Replay({.persistence_id = "a"}).Wait();
    EXPECT_TRUE(batch.ok()) << batch.status();
    EXPECT_GE(batch->size(), kAcknowledged);
    for (size_t i = 0; i < batch->size(); ++i) EXPECT_EQ((*batch)[i].sequence_nr, i + 1);
    highest = batch->size();
    // It goes on from there.
    EXPECT_TRUE(journal.Write(WriteOf("a", highest + 1, 0)).Wait()->empty());
    for (const std::string& line : journal.open_report().dropped) {
      EXPECT_NE(line.find(".log"), std::string::npos) << line;
      EXPECT_NE(line.find("bytes"), std::string::npos) << line;
    }
    return journal.open_report().dropped.size();
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("journal");
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  std::string log_;
  // Where the records of the log end: what the opening has written, then one event each.
  std::vector<uintmax_t> ends_;
  // The file with the mark, after each event.
  std::vector<std::string> marks_;
  uintmax_t acknowledged_bytes_ = 0;
};

TEST_F(TornLog, SaysNothingIfNothingWasDropped) {
  FreshLog();
  uint64_t highest = 0;
  EXPECT_EQ(OpenAndCheck(highest), 0u);
  EXPECT_EQ(highest, kAcknowledged + 10);
}

TEST_F(TornLog, OpensWhereverTheUnacknowledgedPartIsCut) {
  const uintmax_t size = std::filesystem::file_size(folder_.path("image") + log_.substr(path_.size()));
  ASSERT_GT(size, acknowledged_bytes_ + 100);
  size_t reported = 0;
  size_t cuts = 0;
  for (uintmax_t cut = acknowledged_bytes_; cut < size; cut += 41, ++cuts) {
    std::filesystem::resize_file(FreshLog(), cut);
    uint64_t highest = 0;
    reported += OpenAndCheck(highest);
    EXPECT_LT(highest, kAcknowledged + 10) << cut;
  }
  // All but those that fall between two records, of which there are ten.
  EXPECT_GT(cuts, 20u);
  EXPECT_GE(reported + 10, cuts);
  EXPECT_LT(reported, cuts);  // the first cut is one of them
}

TEST_F(TornLog, OpensWithGarbageBehindTheLog) {
  Random random(5);
  for (const size_t bytes : {1, 7, 8, 40, 5000, 70'000}) {
    {
      std::ofstream log(FreshLog(), std::ios::binary | std::ios::app);
      for (size_t i = 0; i < bytes; ++i) log.put(static_cast<char>(random.Next()));
    }
    uint64_t highest = 0;
    EXPECT_GE(OpenAndCheck(highest), 1u) << bytes;
    EXPECT_EQ(highest, kAcknowledged + 10) << bytes;
  }
}

// RocksDB takes what looks like a record of an older file for the end of the log, without a word.
TEST_F(TornLog, NamesGarbageThatLooksLikeARecordOfAnOlderFile) {
  for (const char type : {5, 6, 7, 8}) {
    {
      std::ofstream log(FreshLog(), std::ios::binary | std::ios::app);
      // Checksum, a length that no block has room for, type, and the number of a file.
      log << std::string(4, 'c') << std::string(2, '\xff') << type << std::string(40, 'x');
    }
    uint64_t highest = 0;
    EXPECT_GE(OpenAndCheck(highest), 1u) << static_cast<int>(type);
    EXPECT_EQ(highest, kAcknowledged + 10);
  }
}

TEST_F(TornLog, OpensWithGarbageInPlaceOfTheUnacknowledgedPart) {
  const std::string log = FreshLog();
  const uintmax_t size = std::filesystem::file_size(log);
  {
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(acknowledged_bytes_));
    for (uintmax_t i = acknowledged_bytes_; i < size; ++i) file.put(static_cast<char>(i * 31));
  }
  uint64_t highest = 0;
  EXPECT_GE(OpenAndCheck(highest), 1u);
  EXPECT_EQ(highest, kAcknowledged);
}

// A damaged log is something else than a torn one: good records follow.
class DamagedLog : public TornLog {
 protected:
  using Contents = std::map<std::string, std::string>;

  static void TurnBit(const std::string& log, uintmax_t at) {
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 4));
    ASSERT_TRUE(file.good());
  }
  Contents ContentsOfCopy() {
    Contents contents;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("copy"))) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("LOG", 0) != 0 && name != "LOCK") contents[name] = ReadFile(entry.path().string());
    }
    return contents;
  }
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> OpenCopy(RocksDbJournalOptions options = {}) {
    options.path = folder_.path("copy");
    warnings_.clear();
    options.on_warning = [this](const std::string& line) { warnings_.push_back(line); };
    return RocksDbJournal::Open(*toolbox_, options);
  }
  static size_t Events(RocksDbJournal& journal) {
    const absl::StatusOr<EventBatch> batch =
        journal.Replay({.persistence_id = "a", .limits = {.max_events = 100'000, .max_bytes = 100'000'000}}).Wait();
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() ? batch->size() : 0;
  }
  // What is said of a log that has one record that is not whole, and then a good one.
  static std::string Damage(const std::string& log, uintmax_t begin, uintmax_t end) {
    return absl::StrCat(log, " is damaged at byte ", begin, " of ", std::filesystem::file_size(log),
                        ", and good records follow, from byte ", end, " on: ");
  }
  void ExpectRefused(const std::string& log, const std::string& where) {
    const Contents before = ContentsOfCopy();
    for (const bool read_only : {false, true}) {
      const absl::Status refused = OpenCopy({.read_only = read_only}).status();
      EXPECT_EQ(ErrorKindOf<JournalErrorKind>(refused), JournalErrorKind::kCorrupt) << refused;
      for (const std::string& word : {log, where, std::string("Nothing was changed"), std::string("from a backup"),
                                      std::string("journal export --skip-corrupt"), std::string("kDropRest")}) {
        EXPECT_NE(std::string(refused.message()).find(word), std::string::npos) << word << " in " << refused;
      }
      EXPECT_TRUE(warnings_.empty());
      EXPECT_TRUE(ContentsOfCopy() == before);
    }
  }

  std::vector<std::string> warnings_;
};

TEST_F(DamagedLog, IsRefusedWhereverTheDamageIsThatGoodRecordsFollow) {
  for (uintmax_t at = 0; at < acknowledged_bytes_; at += 97) {
    SCOPED_TRACE(absl::StrCat("byte ", at));
    const std::string log = FreshLog();
    TurnBit(log, at);
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), at);
    // What the opening has written are several records.
    ExpectRefused(log, end == ends_.begin() ? "good records follow, from byte " : Damage(log, *(end - 1), *end));
  }
}

TEST_F(DamagedLog, IsRefusedIfAPartOfItIsZero) {
  const std::string log = FreshLog();
  {
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(300);
    file << std::string(1000, '\0');
  }
  ASSERT_LT(ends_[0], 300u);
  ExpectRefused(log, Damage(log, *(std::upper_bound(ends_.begin(), ends_.end(), 300) - 1),
                            *std::lower_bound(ends_.begin(), ends_.end(), 1300)));
}

TEST_F(DamagedLog, OpensWithoutTheRestIfItIsAskedTo) {
  const std::string log = FreshLog();
  TurnBit(log, acknowledged_bytes_ / 2);
  {
    const auto looked = OpenCopy({.read_only = true, .on_damaged_log = OnDamagedLog::kSkip});
    ASSERT_TRUE(looked.ok()) << looked.status();
    ASSERT_EQ((*looked)->open_report().damaged.size(), 1u);
    EXPECT_NE((*looked)->open_report().damaged[0].find(log), std::string::npos);
  }
  size_t events = 0;
  {
    const auto opened = OpenCopy({.on_damaged_log = OnDamagedLog::kDropRest});
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->open_report().damaged.size(), 1u);
    ASSERT_GE(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find(log), std::string::npos) << warnings_[0];
    events = Events(**opened);
    EXPECT_GT(events, 0u);
    EXPECT_LT(events, kAcknowledged);
  }
  const auto again = OpenCopy();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Events(**again), events);
}

TEST_F(DamagedLog, IsTornIfNothingFollowsAndThatIsAWarning) {
  const std::string log = FreshLog();
  TurnBit(log, std::filesystem::file_size(log) - 5);
  const auto opened = OpenCopy();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(Events(**opened), kAcknowledged + 9);
  EXPECT_TRUE((*opened)->open_report().damaged.empty());
  ASSERT_GE(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(log), std::string::npos) << warnings_[0];
  EXPECT_NE(warnings_[0].find("dropping"), std::string::npos) << warnings_[0];
}

TEST_F(DamagedLog, IsRefusedIfItIsMissing) {
  const std::string log = FreshLog();
  const std::string content = ReadFile(log);
  std::filesystem::remove(log);
  ExpectRefused(folder_.path("copy"), "log (a file with a number and .log) is missing");
  std::ofstream(log, std::ios::binary) << content;
  EXPECT_TRUE(OpenCopy().ok());
}

// The reader of RocksDB takes a record with such a type for the end of the log, or loops without
// end. It never meets one.
TEST_F(DamagedLog, IsReadWhateverTypeARecordHas) {
  for (int type = 0; type < 256; type += type < 12 ? 1 : 61) {
    SCOPED_TRACE(absl::StrCat("type ", type));
    const auto damage = [&](uintmax_t begin) {
      std::fstream file(FreshLog(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(begin + 6));
      file.put(static_cast<char>(type));
    };
    if (type == 1) continue;
    damage(ends_[4]);
    ExpectRefused(NewestLog(folder_.path("copy")), "good records follow");
    {
      const auto looked = OpenCopy({.read_only = true, .on_damaged_log = OnDamagedLog::kSkip});
      ASSERT_TRUE(looked.ok()) << looked.status();
      EXPECT_EQ(Events(**looked), kAcknowledged + 9);
    }
    {
      const auto opened = OpenCopy({.on_damaged_log = OnDamagedLog::kDropRest});
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ(Events(**opened), 4u);
    }
    // The last one, which nothing follows.
    damage(ends_[kAcknowledged + 9]);
    {
      const auto looked = OpenCopy({.read_only = true, .on_damaged_log = OnDamagedLog::kSkip});
      ASSERT_TRUE(looked.ok()) << looked.status();
      EXPECT_EQ(Events(**looked), kAcknowledged + 9);
    }
    const auto opened = OpenCopy();
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(Events(**opened), kAcknowledged + 9);
  }
}

// RocksDB reads the list of files in the same way, and would take such a record for its end.
TEST_F(DamagedLog, IsNotJudgedByAListOfFilesThatEndsInItsMiddle) {
  FreshLog();
  const std::string current = ReadFile(folder_.path("copy") + "/CURRENT");
  const std::string manifest = folder_.path("copy") + "/" + current.substr(0, current.size() - 1);
  const std::string list = ReadFile(manifest);
  size_t records = 0;
  for (size_t at = 0; at < list.size(); at += ReadLogPiece(list, at, 0)->bytes, ++records) {
    ASSERT_TRUE(ReadLogPiece(list, at, 0).has_value());
    for (const char type : {5, 6, 7, 8}) {
      SCOPED_TRACE(absl::StrCat("byte ", at, ", type ", static_cast<int>(type)));
      FreshLog();
      {
        std::fstream file(manifest, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(at + 6));
        file.put(type);
      }
      const Contents before = ContentsOfCopy();
      for (const bool read_only : {false, true}) {
        const absl::Status refused = OpenCopy({.read_only = read_only}).status();
        EXPECT_EQ(ErrorKindOf<JournalErrorKind>(refused), JournalErrorKind::kCorrupt) << refused;
        EXPECT_TRUE(ContentsOfCopy() == before);
      }
    }
  }
  EXPECT_GT(records, 3u);
}

// A log that is cut between two records looks as one does that was never longer.
TEST_F(DamagedLog, IsRefusedIfItEndsBeforeWhatWasAcknowledged) {
  std::vector<uintmax_t> cuts = {0};
  for (uint64_t events = 0; events < kAcknowledged; ++events) cuts.push_back(ends_[events]);
  for (const uintmax_t cut : cuts) {
    SCOPED_TRACE(absl::StrCat("byte ", cut));
    const std::string log = FreshLog();
    std::filesystem::resize_file(log, cut);
    ExpectRefused(log, absl::StrCat(log, " can be read up to byte ", cut, ", and ", acknowledged_bytes_,
                                    " bytes of it were synced: "));
  }
  // The acknowledged part itself.
  std::filesystem::resize_file(FreshLog(), acknowledged_bytes_);
  const auto opened = OpenCopy();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(Events(**opened), kAcknowledged);
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(DamagedLog, IsNotTornIfTheTornPartWasAcknowledged) {
  const std::string log = FreshLog();
  TurnBit(log, acknowledged_bytes_ - 5);
  std::filesystem::resize_file(log, acknowledged_bytes_);
  ExpectRefused(log, absl::StrCat(log, " can be read up to byte ", ends_[kAcknowledged - 1], ", and ",
                                  acknowledged_bytes_, " bytes of it were synced: "));
}

TEST_F(DamagedLog, OpensWithoutAnAcknowledgedEndIfItIsAskedToAndGoesOn) {
  std::filesystem::resize_file(FreshLog(), ends_[5]);
  {
    const auto looked = OpenCopy({.read_only = true, .on_damaged_log = OnDamagedLog::kSkip});
    ASSERT_TRUE(looked.ok()) << looked.status();
    EXPECT_EQ((*looked)->open_report().damaged.size(), 1u);
    EXPECT_EQ(Events(**looked), 5u);
  }
  {
    const auto opened = OpenCopy({.on_damaged_log = OnDamagedLog::kDropRest});
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->open_report().damaged.size(), 1u);
    EXPECT_EQ(Events(**opened), 5u);
    EXPECT_TRUE((*opened)->Write(WriteOf("a", 6, 0)).Wait()->empty());
  }
  {
    const auto again = OpenCopy();
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Events(**again), 6u);
    EXPECT_TRUE((*again)->Write(WriteOf("a", 7, 0)).Wait()->empty());
  }
  // The mark follows the new logs.
  std::filesystem::resize_file(NewestLog(folder_.path("copy")), 0);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(OpenCopy().status()), JournalErrorKind::kCorrupt);
}

// A crash tears the first record of a new journal. The next opening drops it, and the later log is
// the one that counts.
TEST_F(DamagedLog, CountsNoMoreAfterAnOpeningThatFoundNothingInIt) {
  for (const uintmax_t bytes : {1, 7, 19}) {
    SCOPED_TRACE(bytes);
    std::filesystem::resize_file(FreshLog(), bytes);
    std::filesystem::remove(folder_.path("copy") + "/" + CommitMark::kFileName);
    for (uint64_t events = 0; events < 3; ++events) {
      const auto opened = OpenCopy();
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ(Events(**opened), events);
      EXPECT_EQ(warnings_.empty(), events > 0);
      EXPECT_TRUE((*opened)->Write(WriteOf("a", events + 1, 0)).Wait()->empty());
    }
  }
}

// Older versions wrote no mark, and backups made by RocksDB have none.
TEST_F(DamagedLog, IsOpenedWithoutAMark) {
  const std::string log = FreshLog();
  std::filesystem::remove(folder_.path("copy") + "/" + CommitMark::kFileName);
  {
    const auto opened = OpenCopy();
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(Events(**opened), kAcknowledged + 10);
    EXPECT_EQ(warnings_, std::vector<std::string>());
  }
  // It has one now.
  std::filesystem::resize_file(NewestLog(folder_.path("copy")), 0);
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(OpenCopy().status()), JournalErrorKind::kCorrupt);
}

// A slot that was torn leaves the one before. A file in which nothing can be read counts as none.
TEST_F(DamagedLog, IsJudgedByTheSlotOfTheMarkThatIsWhole) {
  const auto mark_of_copy = [this] { return folder_.path("copy") + "/" + CommitMark::kFileName; };
  for (const uintmax_t slot : {0, 512}) {
    SCOPED_TRACE(slot);
    const std::string log = FreshLog();
    TurnBit(mark_of_copy(), slot + 20);
    std::filesystem::resize_file(log, ends_[kAcknowledged - 2]);
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(OpenCopy().status()), JournalErrorKind::kCorrupt);
    std::filesystem::resize_file(log, ends_[kAcknowledged - 1]);
    // One of them is of the last event, the other of the one before.
    const absl::Status status = OpenCopy().status();
    EXPECT_TRUE(status.ok() || ErrorKindOf<JournalErrorKind>(status) == JournalErrorKind::kCorrupt) << status;
  }
  for (const uintmax_t bytes : {0, 19, 20, 30, 39, 40, 1024}) {
    SCOPED_TRACE(bytes);
    FreshLog();
    std::filesystem::resize_file(mark_of_copy(), 0);
    std::filesystem::resize_file(mark_of_copy(), bytes);
    {
      const auto opened = OpenCopy();
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ(Events(**opened), kAcknowledged + 10);
    }
    std::filesystem::resize_file(NewestLog(folder_.path("copy")), 0);
    EXPECT_EQ(ErrorKindOf<JournalErrorKind>(OpenCopy().status()), JournalErrorKind::kCorrupt);
  }
}

// RocksDB leaves an empty log behind if it is closed, or killed, before the first write.
TEST_F(DamagedLog, IsNotEmptyBecauseItWasCutIfNothingWasWritten) {
  const std::string path = folder_.path("blank");
  const auto open = [&](bool passes) {
    Database::Options options{.path = path, .format = "test"};
    options.check = [passes](rocksdb::DB&) { return passes ? absl::OkStatus() : absl::InternalError("refused"); };
    return Database::Open(std::move(options));
  };
  uint64_t written = 0;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) {
      const absl::Status refused = open(false).status();
      ASSERT_TRUE(absl::IsInternal(refused)) << refused;
    }
    const auto opened = open(true);
    ASSERT_TRUE(opened.ok()) << opened.status();
    std::string value;
    if (written > 0) {
      EXPECT_TRUE((*opened)->db().Get(rocksdb::ReadOptions(), absl::StrCat("key", written), &value).ok());
    }
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put(absl::StrCat("key", ++written), "value").ok());
    ASSERT_TRUE((*opened)->Commit(/*sync=*/true, batch).ok());
  }
}

// A store that does not sync says nothing of what a loss of power takes; closing syncs.
TEST_F(DamagedLog, IsMarkedAsFarAsItWasSynced) {
  const std::string path = folder_.path("unsynced");
  std::string log;
  uintmax_t opened_bytes = 0;
  {
    const auto journal = RocksDbJournal::Open(*toolbox_, {.path = path, .sync = false}).value();
    log = NewestLog(path);
    opened_bytes = std::filesystem::file_size(log);
    for (uint64_t number = 1; number <= 5; ++number) {
      EXPECT_TRUE(journal->Write(WriteOf("a", number, 0)).Wait()->empty());
    }
    const std::vector<LogPosition> mark = CommitMark::Read(*rocksdb::Env::Default(), path);
    ASSERT_EQ(mark.size(), 1u);
    EXPECT_EQ(mark[0].bytes, opened_bytes);
  }
  const std::vector<LogPosition> mark = CommitMark::Read(*rocksdb::Env::Default(), path);
  ASSERT_EQ(mark.size(), 1u);
  EXPECT_EQ(mark[0].bytes, std::filesystem::file_size(log));
  EXPECT_EQ(log, absl::StrCat(path, "/", absl::Dec(mark[0].log, absl::kZeroPad6), ".log"));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Instrumented code takes its time to look for a good record behind the damage. The last step is in the last event.
constexpr uintmax_t kBytesBetweenDamages = 5 * 49999;
#else
constexpr uintmax_t kBytesBetweenDamages = 49999;
#endif

// Events that are longer than the blocks of a log.
TEST_F(DamagedLog, IsReadInBlocks) {
  constexpr uint64_t kEvents = 8;
  std::vector<uintmax_t> ends;
  {
    const auto journal = RocksDbJournal::Open(*toolbox_, {.path = folder_.path("long")}).value();
    const std::string log = NewestLog(folder_.path("long"));
    const std::string mark = folder_.path("long") + "/" + CommitMark::kFileName;
    ends.push_back(std::filesystem::file_size(log));
    for (uint64_t number = 1; number <= kEvents; ++number) {
      std::vector<AtomicWrite> writes = WriteOf("a", number, 0);
      PersistentRepr event = writes[0].events()[0];
      event.payload = std::string(70'000, static_cast<char>('a' + number));
      writes[0] = AtomicWrite::Make(std::move(event)).value();
      // The last event counts as never acknowledged.
      if (number == kEvents) std::filesystem::copy(mark, folder_.path("mark"));
      ASSERT_TRUE(journal->Write(std::move(writes)).Wait()->empty());
      ends.push_back(std::filesystem::file_size(log));
    }
    std::filesystem::remove_all(folder_.path("image"));
    std::filesystem::copy(folder_.path("long"), folder_.path("image"), std::filesystem::copy_options::recursive);
    std::filesystem::copy(folder_.path("mark"), folder_.path("image") + "/" + CommitMark::kFileName,
                          std::filesystem::copy_options::overwrite_existing);
  }
  const uintmax_t last = ends[kEvents - 1];
  for (uintmax_t at = 11; at < ends.back(); at += kBytesBetweenDamages) {
    SCOPED_TRACE(absl::StrCat("byte ", at, " of ", ends.back()));
    const std::string log = FreshLog();
    TurnBit(log, at);
    if (at < ends[0]) {
      ExpectRefused(log, "good records follow, from byte ");
    } else if (at < last) {
      // None begins in the last bytes of a block, which have no room for its head.
      const auto begin_behind = [](uintmax_t end) { return end % 32768 > 32768 - 7 ? (end / 32768 + 1) * 32768 : end; };
      const auto end = std::upper_bound(ends.begin(), ends.end(), at);
      ExpectRefused(log, Damage(log, begin_behind(*(end - 1)), begin_behind(*end)));
    } else {
      // The last event in pieces, of which later ones are good: a crash leaves that.
      const auto opened = OpenCopy();
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ(Events(**opened), kEvents - 1);
      EXPECT_FALSE(warnings_.empty());
    }
  }
}

// A family that is rarely written keeps logs whose events are in tables already.
class OneOfManyLogs : public DamagedLog, public testing::WithParamInterface<int> {
 protected:
  // A journal that has events in tables and in logs. It writes on until `is_enough`, which is asked after each event.
  void FillMany(size_t max_log_bytes, const std::function<bool(uint64_t events)>& is_enough) {
    const std::string path = folder_.path("many");
    const auto open = [&] {
      return RocksDbJournal::Open(*toolbox_,
                                  {.path = path, .write_buffer_bytes = 64 << 10, .max_log_bytes = max_log_bytes})
          .value();
    };
    for (int i = 0; i < GetParam(); ++i) ASSERT_TRUE(open()->Write(WriteOf("a", ++written_, 0)).Wait()->empty());
    {
      const auto journal = open();
      for (uint64_t events = 0; !is_enough(events); ++events) {
        std::vector<AtomicWrite> writes = WriteOf("a", ++written_, 0);
        PersistentRepr event = writes[0].events()[0];
        event.payload = std::string(10'000, 'x');
        writes[0] = AtomicWrite::Make(std::move(event)).value();
        ASSERT_TRUE(journal->Write(std::move(writes)).Wait()->empty());
      }
    }
    std::filesystem::remove_all(folder_.path("image"));
    std::filesystem::copy(path, folder_.path("image"), std::filesystem::copy_options::recursive);
  }

  static std::vector<std::string> LogsIn(const std::string& path) {
    std::vector<std::string> logs;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".log") logs.push_back(entry.path().string());
    }
    std::sort(logs.begin(), logs.end());
    return logs;
  }

  // All entries of the copy, by family and key.
  Contents EntriesOfCopy() {
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), folder_.path("copy"), &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    EXPECT_TRUE(
        rocksdb::DB::OpenForReadOnly(rocksdb::DBOptions(), folder_.path("copy"), families, &handles, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    Contents entries;
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(rocksdb::ReadOptions(), handle));
      for (at->SeekToFirst(); at->Valid(); at->Next()) {
        entries[absl::StrCat(handle->GetName(), "/", at->key().ToString())] = at->value().ToString();
      }
      EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
    return entries;
  }

  // Opens a copy, without a warning, and finds all events there; and refuses it without any one of those logs that have
  // something that no file has. Answers how many those are.
  size_t ExpectThatNoneMayBeMissing() {
    FreshLog();
    const std::vector<std::string> logs = LogsIn(folder_.path("copy"));
    const Contents entries = EntriesOfCopy();
    {
      const auto opened = OpenCopy();
      EXPECT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ(Events(**opened), written_);
      EXPECT_EQ(warnings_, std::vector<std::string>());
    }
    // At least the first of them is known to come before others.
    FreshLog();
    for (size_t i = 1; i < logs.size(); ++i) std::filesystem::remove(logs[i]);
    ExpectRefused(folder_.path("copy"), "the newest write-ahead log");
    size_t needed = 0;
    for (size_t i = 0; i + 1 < logs.size(); ++i) {
      SCOPED_TRACE(logs[i]);
      FreshLog();
      std::filesystem::remove(logs[i]);
      const bool is_needed = EntriesOfCopy() != entries;
      if (is_needed) {
        ++needed;
        ExpectRefused(logs[i + 1],
                      needed == 1 ? "is missing, or its end, before " : "is missing, or its end, between ");
      } else {
        EXPECT_EQ(needed, 0u) << "not needed, behind one that is";
        EXPECT_TRUE(OpenCopy().ok());
        EXPECT_EQ(warnings_, std::vector<std::string>());
      }
    }
    return needed;
  }

  uint64_t written_ = 0;
};

// How often the journal was opened before.
INSTANTIATE_TEST_SUITE_P(Openings, OneOfManyLogs, testing::Values(0, 1, 3));

TEST_P(OneOfManyLogs, IsRefusedIfItIsDamagedOrMissing) {
  FillMany(size_t{256} << 20, [](uint64_t events) { return events == 40; });
  EXPECT_GE(ExpectThatNoneMayBeMissing(), 2u);
  FreshLog();
  const std::vector<std::string> logs = LogsIn(folder_.path("copy"));
  ASSERT_GE(logs.size(), 3u);
  // Cut between two records, too.
  size_t needed = 0;
  for (const std::string& log : logs) {
    SCOPED_TRACE(log);
    FreshLog();
    const Contents entries = EntriesOfCopy();
    std::filesystem::resize_file(log, 0);
    if (needed == 0 && EntriesOfCopy() == entries) continue;
    ++needed;
    ExpectRefused(log, " can be read up to byte 0, and ");
  }
  EXPECT_GE(needed, 3u);
  for (const std::string& log : {logs[0], logs[logs.size() - 2]}) {
    FreshLog();
    std::filesystem::resize_file(log, std::filesystem::file_size(log) - 3);
    ExpectRefused(log,
                  absl::StrCat(" of ", std::filesystem::file_size(log), ", and good records follow, in a later log: "));
  }
}

// RocksDB takes the first of them away when there are too many bytes in them, and writes a file of what is rarely
// written.
TEST_P(OneOfManyLogs, IsNotMissedIfItWasTakenAwayByTheirLimit) {
  std::string first;
  FillMany(size_t{300} << 10, [&](uint64_t events) {
    const std::vector<std::string> logs = LogsIn(folder_.path("many"));
    // What was written when it was opened is in it, and in no file.
    if (events == 0) first = logs.back();
    return events > 1000 || (logs.size() >= 3 && logs[0] > first);
  });
  ASSERT_FALSE(std::filesystem::exists(first));
  ASSERT_GE(LogsIn(folder_.path("image")).size(), 2u);
  EXPECT_GE(ExpectThatNoneMayBeMissing(), 1u);
}

}  // namespace
}  // namespace fraktor
