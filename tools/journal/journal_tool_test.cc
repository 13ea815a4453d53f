#include "fraktor/tools/journal/journal_tool.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

#include "fraktor/actor/serialization/codec.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/persistence/rocksdb/rocksdb_snapshot_store.h"
#include "fraktor/tools/journal/id_text.h"
#include "fraktor/tools/journal/json_line.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

TEST(JsonLine, IsReadBack) {
  const std::vector<std::string> texts = {"",
                                          "plain",
                                          "\"quotes\" and \\",
                                          std::string("zero\0\n\x1f\x7f", 8),
                                          "Grüße, 世界 🙂",
                                          "\xff\xfe",
                                          "\xc3",
                                          "\xed\xa0\x80",
                                          std::string(1, '\x80')};
  for (const std::string& text : texts) {
    const std::string line = JsonLineWriter().Text("t", text).Number("n", UINT64_MAX).Bytes("b", text).Finish();
    const absl::StatusOr<JsonLine> read = JsonLine::Parse(line);
    ASSERT_TRUE(read.ok()) << line << ": " << read.status();
    EXPECT_EQ(read->Text("t"), text) << line;
    EXPECT_EQ(read->Text("b"), text) << line;
    EXPECT_EQ(read->Number("n"), UINT64_MAX) << line;
  }
  const std::string all = JsonLineWriter().Texts("all", texts).Texts("none", {}).Texts("two", {"a", "b\""}).Finish();
  const absl::StatusOr<JsonLine> read = JsonLine::Parse(all);
  ASSERT_TRUE(read.ok()) << all << ": " << read.status();
  EXPECT_EQ(read->Texts("all"), texts);
  EXPECT_EQ(read->Texts("none"), std::vector<std::string>());
  EXPECT_EQ(read->Texts("two"), (std::vector<std::string>{"a", "b\""}));
  EXPECT_FALSE(read->Text("none").has_value());
  EXPECT_FALSE(read->Number("missing").has_value());
}

TEST(JsonLine, ReadsWhatOthersWrite) {
  const absl::StatusOr<JsonLine> line =
      JsonLine::Parse(R"( { "a" : "x\u00e9\ud83d\ude42\n\/" , "n" : 12 , "l" : [ "p" , "q" ] } )");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->Text("a"), "xé🙂\n/");
  EXPECT_EQ(line->Number("n"), 12u);
  EXPECT_EQ(line->Texts("l"), (std::vector<std::string>{"p", "q"}));
  EXPECT_TRUE(JsonLine::Parse("{}").ok());
}

TEST(JsonLine, SaysWhereItIsWrong) {
  for (const std::string_view wrong :
       {"", "x", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1}}", "{\"a\":-1}", "{\"a\":99999999999999999999}",
        "{\"a_base64\":\"_\"}", "{\"a_base64\":[\"_\"]}", "{\"a\":\"x}", "{\"a\":\"\\q\"}", "{\"a\":\"\\u12\"}",
        "{\"a\":[1]}", "{\"a\":[\"x\"}", "{\"a\":true}"}) {
    const absl::Status status = JsonLine::Parse(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_EQ(std::string(status.message()).rfind("column ", 0), 0u) << status;
  }
}

class JournalToolTest : public testing::Test {
 protected:
  JournalToolTest() : folder_(testing::TempDir() + "/tool.XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/journal";
  }
  ~JournalToolTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RocksDbJournal> Open(const std::string& path) {
    return RocksDbJournal::Open(*toolbox_, {.path = path}).value();
  }

  static void Write(RocksDbJournal& journal, const PersistentRepr& event) {
    std::vector<AtomicWrite> writes;
    writes.push_back(AtomicWrite::Make(event).value());
    const absl::StatusOr<WriteResults> results = journal.Write(std::move(writes)).Wait();
    ASSERT_TRUE(results.ok() && results->empty()) << results.status();
  }

  void Fill() {
    const auto journal = Open(path_);
    for (uint64_t number = 1; number <= 3; ++number) {
      Write(*journal, {.persistence_id = "account-1",
                       .sequence_nr = number,
                       .timestamp = absl::FromUnixNanos(1'700'000'000'123'456'789),
                       .manifest = "deposited",
                       .payload = absl::StrCat("amount ", number)});
    }
    ASSERT_TRUE(journal->OpenWriter("account-2", std::nullopt).Wait().ok());
    ASSERT_TRUE(journal->OpenWriter("account-2", std::nullopt).Wait().ok());
    Write(*journal, {.persistence_id = "account-2",
                     .sequence_nr = 7,
                     .writer = {1, 2},
                     .epoch = 2,
                     .manifest = "opened",
                     .manifest_version = 3,
                     .payload = std::string(200, '\xab'),
                     .tags = {"red", "\xff"},
                     .metadata = std::string("m\0", 2)});
    // All of its events are deleted.
    for (uint64_t number = 1; number <= 5; ++number) {
      Write(*journal, {.persistence_id = std::string("gone\0", 5), .sequence_nr = number});
    }
    ASSERT_TRUE(journal->DeleteTo(std::string("gone\0", 5), 5, kNoEpoch).Wait().ok());
  }

  // Three events, in a log. Answers where each of them ends there.
  std::vector<uint64_t> FillLog() {
    std::vector<uint64_t> ends;
    const auto journal = Open(path_);
    for (uint64_t number = 1; number <= 3; ++number) {
      Write(*journal, {.persistence_id = "account-1", .sequence_nr = number, .payload = std::string(500, 'x')});
      ends.push_back(std::filesystem::file_size(Log()));
    }
    return ends;
  }
  std::string Log() {
    std::string log;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == ".log") log = entry.path().string();
    }
    return log;
  }

  // One bit of an event's record is turned around.
  void Damage(const std::string& id, uint64_t sequence_nr) {
    std::vector<std::string> names;
    ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), path_, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::DBOptions(), path_, families, &handles, &db).ok());
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      std::string record;
      if (handle->GetName() == "events" &&
          db->Get(rocksdb::ReadOptions(), handle, EventKey(id, sequence_nr), &record).ok()) {
        record[15] = static_cast<char>(record[15] ^ 4);
        EXPECT_TRUE(db->Put(rocksdb::WriteOptions(), handle, EventKey(id, sequence_nr), record).ok());
      }
    }
    for (rocksdb::ColumnFamilyHandle* const handle : handles) EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    delete db;
  }

  // So many events that they fill several blocks of a file, and a neighbour behind them.
  void FillFiles() {
    {
      const auto journal = Open(path_);
      for (uint64_t number = 1; number <= 200; ++number) {
        Write(*journal, {.persistence_id = "account-1",
                         .sequence_nr = number,
                         .manifest = "deposited",
                         .payload = std::string(100, 'x')});
      }
      Write(*journal, {.persistence_id = "account-2", .sequence_nr = 1, .manifest = "opened", .tags = {"red"}});
    }
    // What is in the log becomes files.
    Open(path_);
  }
  std::vector<std::string> Files(const std::string& path) {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".sst") files.push_back(entry.path().string());
    }
    return files;
  }
  // Turns 40 bytes around.
  static void DamageFile(const std::string& file, uint64_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    char bytes[40] = {};
    stream.seekg(static_cast<std::streamoff>(offset));
    stream.read(bytes, sizeof(bytes));
    for (char& byte : bytes) byte = static_cast<char>(~byte);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.write(bytes, sizeof(bytes));
    ASSERT_TRUE(stream.good()) << file;
  }
  // Turns around the bit at the end of the table properties that says that they have an index of hashes.
  static void TurnPropertiesIntoAHashIndex(const std::string& file) {
    std::stringstream content;
    content << std::ifstream(file, std::ios::binary).rdbuf();
    std::string bytes = content.str();
    // One restart point, at 0; and no other property has such a name.
    const size_t end = bytes.find(std::string("\0\0\0\0\1\0\0\0", 8), bytes.rfind("value.size"));
    ASSERT_NE(end, std::string::npos) << file;
    bytes[end + 7] = static_cast<char>(0x80);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  std::string LargestFile(const std::string& path) {
    std::string largest;
    for (const std::string& file : Files(path)) {
      if (largest.empty() || std::filesystem::file_size(file) > std::filesystem::file_size(largest)) largest = file;
    }
    return largest;
  }
  static std::string FirstLines(const std::string& text, int lines) {
    size_t end = 0;
    for (; lines > 0; --lines) end = text.find('\n', end) + 1;
    return text.substr(0, end);
  }

  int Run(std::vector<std::string> arguments, const std::string& input = "", bool is_terminal = false) {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunJournalTool(arguments, {.in = in, .out = out, .err = err, .is_terminal = is_terminal}, texts_);
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  bool Out(std::string_view text) const { return out_.find(text) != std::string::npos; }
  bool Err(std::string_view text) const { return err_.find(text) != std::string::npos; }

  std::string folder_;
  std::string path_;
  std::unique_ptr<StdToolbox> toolbox_ = StdToolbox::Make({}).value();
  EventTexts texts_;
  std::string out_;
  std::string err_;
};

TEST_F(JournalToolTest, ListsIds) {
  Fill();
  EXPECT_EQ(Run({"list", path_}), 0) << err_;
  EXPECT_EQ(out_, "account-1\naccount-2\ngone\\x00\n");
  EXPECT_EQ(Run({"list", path_, "--max", "1"}), 0);
  EXPECT_EQ(out_, "account-1\n");
}

TEST(IdText, IsReadBackAndShowsWhatCanBeShown) {
  EXPECT_EQ(IdText("Grüße, 世界 🙂 \"'"), "Grüße, 世界 🙂 \"'");
  EXPECT_EQ(IdText("a\\b"), "a\\\\b");
  // A control character, half a character, one in too many bytes, half of a pair.
  EXPECT_EQ(IdText("\n\x7f\xc2\x85"), "\\x0a\\x7f\\xc2\\x85");
  EXPECT_EQ(IdText("\xc3"), "\\xc3");
  EXPECT_EQ(IdText("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(IdText("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(IdText("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");
  EXPECT_EQ(IdText("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  for (const std::string& id : {all, std::string("Grüße"), std::string("\0a", 2), std::string("\\x41")}) {
    EXPECT_EQ(ParseIdText(IdText(id)), id);
  }
  EXPECT_EQ(ParseIdText("\\x4A\\n\\t\\r\\\"\\'"), "J\n\t\r\"'");
  for (const std::string_view wrong : {"\\", "\\x", "\\x4", "\\xzz", "\\q"}) {
    EXPECT_EQ(ParseIdText(wrong), std::nullopt) << wrong;
  }
}

TEST_F(JournalToolTest, TakesIdsAsItPrintsThem) {
  const std::vector<std::string> ids = {"Grüße", std::string("gone\0", 5), "C:\\new", "\xff"};
  {
    const auto journal = Open(path_);
    for (const std::string& id : ids) Write(*journal, {.persistence_id = id, .sequence_nr = 1, .manifest = "m"});
  }
  EXPECT_EQ(Run({"list", path_}), 0) << err_;
  const std::string listed = out_;
  EXPECT_EQ(listed, "Grüße\ngone\\x00\nC:\\\\new\n\\xff\n");
  std::istringstream lines(listed);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(Run({"show", path_, line}), 0) << err_;
    EXPECT_TRUE(Out("1  ")) << line;
    EXPECT_EQ(Run({"stats", path_, "--id", line}), 0) << err_;
    EXPECT_TRUE(Out(line + "\n")) << out_;
  }
  // And as they are.
  EXPECT_EQ(Run({"show", path_, "C:\\new"}), 0) << err_;
  EXPECT_TRUE(Out("1  ")) << out_;
}

TEST_F(JournalToolTest, ShowsEventsInHexOrAsTheirDecoderSays) {
  Fill();
  EXPECT_EQ(Run({"show", path_, "account-1"}), 0) << err_;
  EXPECT_TRUE(Out("1  2023-11-14T22:13:20.123456789+00:00  deposited  epoch 0  616d6f756e742031\n")) << out_;
  EXPECT_TRUE(Out("3  ")) << out_;
  texts_.Register("deposited", [](uint32_t, std::string_view payload) -> std::optional<std::string> {
    return absl::StrCat("Deposited{", std::string(payload), "}");
  });
  EXPECT_EQ(Run({"show", path_, "account-1", "--from", "2", "--to", "2"}), 0);
  EXPECT_TRUE(Out("Deposited{amount 2}\n")) << out_;
  EXPECT_FALSE(Out("amount 1")) << out_;
  EXPECT_EQ(Run({"show", path_, "account-1", "--max", "1"}), 0);
  EXPECT_FALSE(Out("amount 2")) << out_;
  EXPECT_EQ(Run({"show", path_, "account-2"}), 0);
  EXPECT_TRUE(Out("opened v3  epoch 2  writer 00000000000000010000000000000002  #red  #\\xff  metadata 6d00  abab"))
      << out_;
  EXPECT_TRUE(Out("200 bytes; --full shows all")) << out_;
  EXPECT_EQ(Run({"show", path_, "account-2", "--full"}), 0);
  EXPECT_FALSE(Out("--full")) << out_;
  EXPECT_EQ(Run({"show", path_, "account-1", "--from", "9"}), 0);
  EXPECT_TRUE(Err("\"account-1\" has no such events; its highest number is 3")) << err_;
}

TEST_F(JournalToolTest, SaysThatThereIsNoSuchId) {
  Fill();
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"show", path_, "nobody"},
                                             {"verify", path_, "--id", "nobody"},
                                             {"export", path_, "--id", "account-1", "--id", "nobody"},
                                             {"stats", path_, "--id", "nobody"}}) {
    EXPECT_EQ(Run(call), 1) << call[0];
    EXPECT_EQ(out_, "") << call[0];
    EXPECT_TRUE(Err("there is no id \"nobody\"")) << call[0] << ": " << err_;
  }
  // One that has been opened and never written to is there.
  ASSERT_TRUE(Open(path_)->OpenWriter("idle", std::nullopt).Wait().ok());
  EXPECT_EQ(Run({"verify", path_, "--id", "idle"}), 0) << err_;
}

struct Deposited {
  std::string text = {};
};

}  // namespace

template <>
struct Codec<Deposited> {
  static constexpr std::string_view kManifest = "deposited";
  static void Encode(const Deposited& event, Encoder& out) { out.Raw(event.text); }
  static Deposited Decode(Decoder& in) {
    // The one of them that it cannot read.
    if (in.rest() == "amount 3") in.Fail("not in this test");
    return {std::string(in.Raw(in.rest().size()))};
  }
};

namespace {

TEST_F(JournalToolTest, ShowsEventsThatHaveACodecAsText) {
  Fill();
  texts_.Add<Deposited>([](const Deposited& event) { return absl::StrCat("a deposit, ", event.text); });
  EXPECT_EQ(Run({"show", path_, "account-1"}), 0) << err_;
  EXPECT_TRUE(Out("a deposit, amount 1\n")) << out_;
  EXPECT_TRUE(Out("a deposit, amount 2\n")) << out_;
  EXPECT_TRUE(Out("616d6f756e742033\n")) << out_;
}

TEST(EventTexts, KnowNumbersAndTexts) {
  const EventTexts texts;
  EXPECT_EQ(texts.Show("fraktor.int64", 0, "\x03"), "-2");
  EXPECT_EQ(texts.Show("fraktor.uint32", 0, "\x03"), "3");
  EXPECT_EQ(texts.Show("fraktor.bool", 0, "\x01"), "true");
  EXPECT_EQ(texts.Show("fraktor.string", 0, "text"), "text");
  EXPECT_EQ(texts.Show("fraktor.int64", 0, "no number"), std::nullopt);
  EXPECT_EQ(texts.Show("others", 0, "text"), std::nullopt);
}

TEST_F(JournalToolTest, CountsEventsAndBytes) {
  Fill();
  EXPECT_EQ(Run({"stats", path_}), 0) << err_;
  EXPECT_LT(out_.find("account-2"), out_.find("account-1")) << out_;  // the largest first
  EXPECT_TRUE(Out("         3          24 B         1         3         3  account-1")) << out_;
  EXPECT_TRUE(Out("         0           0 B         0         0         5  gone")) << out_;
  EXPECT_TRUE(Out("         4         224 B  of 3 ids")) << out_;
  EXPECT_EQ(Run({"stats", path_, "--id", "account-1"}), 0);
  EXPECT_TRUE(Out("of 1 ids")) << out_;
}

TEST_F(JournalToolTest, FindsWhatIsDamaged) {
  Fill();
  EXPECT_EQ(Run({"verify", path_}), 0) << err_;
  EXPECT_EQ(out_, "all is well: 4 events of 3 ids are good\n");
  {
    // While a program has it open.
    const auto journal = Open(path_);
    Write(*journal, {.persistence_id = "late", .sequence_nr = 1});
    EXPECT_EQ(Run({"verify", path_}), 0) << err_;
    EXPECT_EQ(out_, "all is well: 5 events of 4 ids are good\n");
  }
  Damage("account-1", 2);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out("event 2 of \"account-1\": its record")) << out_;
  EXPECT_TRUE(Out("1 records are damaged; 4 events of 4 ids are good")) << out_;
}

TEST_F(JournalToolTest, FindsDamageAnywhereInAFile) {
  FillFiles();
  ASSERT_EQ(Run({"verify", path_}), 0) << out_ << err_;
  const std::vector<std::string> files = Files(path_);
  ASSERT_GE(files.size(), 4u);  // one for each column family
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).filename().string();
    const uint64_t size = std::filesystem::file_size(file);
    for (uint64_t tenth = 0; tenth < 10; ++tenth) {
      const std::string copy = absl::StrCat(folder_, "/", name, tenth);
      std::filesystem::copy(path_, copy);
      DamageFile(absl::StrCat(copy, "/", name), (size - 40) * tenth / 9);
      EXPECT_EQ(Run({"verify", copy}), 1) << name << " of " << size << " bytes, " << tenth << " tenths: " << out_;
      EXPECT_TRUE(Out(name) || Err(name)) << name << ", " << tenth << " tenths: " << out_ << err_;
    }
  }
}

// What RocksDB parses before it looks at the checksum: it aborts at this if it is built with assertions.
TEST_F(JournalToolTest, SurvivesDamageAtWhichRocksDbAborts) {
  FillFiles();
  const std::string events = LargestFile(path_);
  TurnPropertiesIntoAHashIndex(events);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(absl::StrCat(events, ", which has event 1 of \"account-1\""))) << out_ << err_;
  EXPECT_TRUE(Out("1 files are damaged")) << out_;
  // What is in other files can be read.
  EXPECT_EQ(Run({"list", path_}), 0) << err_;
  EXPECT_TRUE(Out("account-2")) << out_;
  for (const std::string& file : Files(path_)) {
    if (file != events) TurnPropertiesIntoAHashIndex(file);
  }
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(path_) || Err(path_)) << out_ << err_;
}

TEST_F(JournalToolTest, SaysWhatIsInADamagedFile) {
  FillFiles();
  const std::string file = LargestFile(path_);
  DamageFile(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(absl::StrCat(file, ", which has event 1 of \"account-1\" to event 1 of \"account-2\": Corruption")))
      << out_;
  EXPECT_TRUE(Out("1 files are damaged, 1 ranges cannot be read; ")) << out_;
  EXPECT_TRUE(Out("of 2 ids are good\n")) << out_;
}

TEST_F(JournalToolTest, NamesALogThatIsDamagedBeforeItsEnd) {
  {
    const auto journal = Open(path_);
    for (uint64_t number = 1; number <= 300; ++number) {
      Write(*journal, {.persistence_id = "account-1", .sequence_nr = number, .payload = std::string(500, 'x')});
    }
    ASSERT_TRUE(journal->OpenWriter("idle", std::nullopt).Wait().ok());
  }
  std::string log;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().extension() == ".log") log = entry.path().string();
  }
  ASSERT_GT(std::filesystem::file_size(log), 150'000u);
  DamageFile(log, 50'000);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(log + " is damaged at byte ")) << out_;
  EXPECT_TRUE(Out("journal export --skip-corrupt")) << out_;
  EXPECT_TRUE(Out("the log is damaged; ")) << out_;
  EXPECT_FALSE(Out("all is well")) << out_;
  for (const std::string_view command : {"list", "stats"}) {
    EXPECT_EQ(Run({std::string(command), path_}), 1);
    EXPECT_TRUE(Out("account-1")) << out_;
    EXPECT_TRUE(Err(" is damaged at byte ")) << err_;
  }
  // Of an id without events only the files know, and what they have of it is behind the damage.
  EXPECT_EQ(Run({"stats", path_, "--id", "idle"}), 1);
  EXPECT_TRUE(Out("of 1 ids")) << out_ << err_;
  EXPECT_FALSE(Err("there is no id")) << err_;
  EXPECT_EQ(Run({"export", path_}), 1);
  EXPECT_EQ(out_, "");
  EXPECT_TRUE(Err(log + " is damaged at byte ")) << err_;
  EXPECT_EQ(Run({"export", path_, "--skip-corrupt"}), 1);
  const std::string exported = out_;
  EXPECT_TRUE(Out("{\"lost\":\"" + log)) << out_;
  EXPECT_TRUE(Out("{\"id\":\"account-1\",\"gap\":")) << out_;
  EXPECT_TRUE(Out("\"nr\":1,")) << out_;
  EXPECT_TRUE(Out("\"nr\":300,")) << out_;
  EXPECT_EQ(Run({"import", folder_ + "/copy"}, exported), 1);
  EXPECT_TRUE(Err("line 2: this was left out of the export: " + log)) << err_;
  EXPECT_EQ(Run({"import", folder_ + "/copy", "--allow-gaps"}, exported), 0) << err_;
  EXPECT_EQ(Run({"verify", folder_ + "/copy"}), 0) << out_;
  // A log that is not there.
  std::filesystem::remove(log);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(".log) is missing")) << out_;
}

// It may be the torn end that a crash leaves, or not. Without the mark nobody can tell.
TEST_F(JournalToolTest, DoesNotSayThatAllIsWellIfTheEndOfALogCannotBeRead) {
  FillLog();
  const std::string log = Log();
  std::filesystem::remove(path_ + "/COMMIT-MARK");
  DamageFile(log, std::filesystem::file_size(log) - 100);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_EQ(out_.rfind(log + ": the last ", 0), 0u) << out_;
  EXPECT_TRUE(Out(" bytes cannot be read")) << out_;
  EXPECT_TRUE(Out("events that were acknowledged may be among them")) << out_;
  EXPECT_TRUE(Out("\nthe end of a log cannot be read; 2 events of 1 ids are good\n")) << out_;
  EXPECT_FALSE(Out("all is well")) << out_;
  EXPECT_EQ(err_, "");
  // Whoever only looks at what is there gets it, and hears of it.
  EXPECT_EQ(Run({"list", path_}), 0);
  EXPECT_TRUE(Err(" bytes cannot be read")) << err_;
  EXPECT_FALSE(Err("ignoring")) << err_;
}

// The events that were acknowledged last are gone, and the rest looks whole.
TEST_F(JournalToolTest, DoesNotSayThatAllIsWellIfALogWasCutBetweenTwoRecords) {
  const std::vector<uint64_t> ends = FillLog();
  const std::string log = Log();
  for (const uint64_t end : {ends[1], ends[0], uint64_t{0}}) {
    SCOPED_TRACE(end);
    std::filesystem::resize_file(log, end);
    EXPECT_EQ(Run({"verify", path_}), 1);
    const std::string lost =
        absl::StrCat(log, " can be read up to byte ", end, ", and ", ends[2], " bytes of it were synced");
    EXPECT_TRUE(Out(lost)) << out_;
    EXPECT_TRUE(Out("the log is damaged; ")) << out_;
    EXPECT_FALSE(Out("all is well")) << out_;
    // Nothing is said to be whole that is not.
    EXPECT_EQ(Run({"export", path_}), 1);
    EXPECT_EQ(out_, "");
    EXPECT_TRUE(Err(lost)) << err_;
  }
}

// RocksDB loops without end at a record that looks as if the file had been used again.
TEST_F(JournalToolTest, EndsWhereverALogLooksUsedAgain) {
  const std::vector<uint64_t> ends = FillLog();
  const std::string log = Log();
  std::filesystem::copy(log, folder_ + "/log");
  for (const char type : {5, 6, 7, 8}) {
    for (const bool is_behind : {false, true}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(type) << (is_behind ? " behind the log" : " in the log"));
      std::filesystem::copy(folder_ + "/log", log, std::filesystem::copy_options::overwrite_existing);
      {
        std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(is_behind ? ends[2] : ends[0]) + 6);
        file.put(type);
        if (is_behind) file << std::string(1000, 'x');
      }
      for (const std::string_view command : {"list", "stats"}) {
        EXPECT_EQ(Run({std::string(command), path_}), is_behind ? 0 : 1);
        EXPECT_TRUE(Out("account-1")) << out_;
      }
      EXPECT_EQ(Run({"verify", path_}), 1);
      EXPECT_TRUE(Out(is_behind ? "the end of a log cannot be read; 3 events" : "the log is damaged; 2 events"))
          << out_;
      EXPECT_EQ(Run({"export", path_, "--skip-corrupt"}), is_behind ? 0 : 1);
      EXPECT_TRUE(Out("\"nr\":1,")) << out_;
      EXPECT_EQ(Out("\"nr\":2,"), is_behind) << out_;
      EXPECT_TRUE(Out("\"nr\":3,")) << out_;
    }
  }
}

TEST_F(JournalToolTest, NamesAMissingFileAsItWasNamed) {
  FillFiles();
  const std::string file = LargestFile(path_);
  std::filesystem::remove(file);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(file) || Err(file)) << out_ << err_;
  EXPECT_FALSE(Out(".ldb") || Err(".ldb")) << out_ << err_;
  EXPECT_EQ(Run({"show", path_, "account-1"}), 1);
  EXPECT_TRUE(Err(file)) << err_;
  EXPECT_FALSE(Err(".ldb")) << err_;
}

// Advice that leads somewhere.
TEST_F(JournalToolTest, DoesNotSendInCirclesWhoeverHasADamagedFile) {
  FillFiles();
  const std::string file = LargestFile(path_);
  std::string manifest;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().rfind("MANIFEST", 0) == 0) manifest = entry.path().filename().string();
  }
  const std::string image = folder_ + "/image";
  std::filesystem::copy(path_, image);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_TRUE(Out(file)) << out_ << err_;
  EXPECT_TRUE(Out("Restore it from a backup")) << out_;
  EXPECT_FALSE(Out("journal verify") || Err("journal verify")) << out_ << err_;
  EXPECT_EQ(Run({"export", path_, "--skip-corrupt"}), 1);
  EXPECT_TRUE(Out("\"end\"")) << out_ << err_;
  for (const std::string& name : {std::string("CURRENT"), manifest}) {
    std::filesystem::remove_all(path_);
    std::filesystem::copy(image, path_);
    std::filesystem::resize_file(path_ + "/" + name, 3);
    for (const std::vector<std::string>& call :
         {std::vector<std::string>{"verify", path_}, {"export", path_, "--skip-corrupt"}}) {
      EXPECT_EQ(Run(call), 1);
      EXPECT_TRUE(Err("restore the whole folder from a backup")) << err_;
      EXPECT_FALSE(Err("journal verify") || Err("skip-corrupt")) << err_;
    }
    std::filesystem::remove(path_ + "/" + name);
    EXPECT_EQ(Run({"verify", path_}), 1);
    EXPECT_TRUE(Err("missing")) << err_;
    EXPECT_TRUE(Err("from a backup")) << err_;
  }
}

TEST_F(JournalToolTest, TakesOutWhatIsAroundADamagedBlock) {
  FillFiles();
  const std::string file = LargestFile(path_);
  for (const bool at_end : {false, true}) {
    const std::string copy = absl::StrCat(folder_, "/damaged", at_end);
    std::filesystem::copy(path_, copy);
    const std::string damaged = absl::StrCat(copy, "/", std::filesystem::path(file).filename().string());
    // The last of its blocks of events has the last of account-1, and account-2.
    uint64_t offset = std::filesystem::file_size(file) / 2;
    if (at_end) {
      std::ifstream stream(file, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
      offset = bytes.rfind(std::string(100, 'x')) + 30;
    }
    DamageFile(damaged, offset);
    ASSERT_EQ(Run({"verify", copy}), 1);
    const std::string verified = out_;
    EXPECT_EQ(Run({"export", copy}), 1);
    EXPECT_FALSE(Out("\"end\"")) << out_;
    EXPECT_EQ(Run({"export", copy, "--skip-corrupt"}), 1);
    EXPECT_TRUE(Err("left out: event ")) << err_;
    EXPECT_TRUE(Out("{\"id\":\"account-1\",\"nr\":1,")) << at_end << out_;
    EXPECT_EQ(Out("{\"id\":\"account-1\",\"nr\":200,"), !at_end);
    EXPECT_EQ(Out("{\"id\":\"account-2\",\"nr\":1,"), !at_end);
    // As many as verify calls good.
    const size_t at = out_.rfind("{\"end\"");
    ASSERT_NE(at, std::string::npos) << out_;
    const uint64_t events = JsonLine::Parse(out_.substr(at, out_.size() - at - 1))->Number("events").value();
    EXPECT_GT(events, 100u);
    EXPECT_LT(events, 200u);
    EXPECT_NE(verified.find(absl::StrCat("; ", events, " events of 2 ids are good")), std::string::npos) << verified;
    const std::string exported = out_;
    EXPECT_EQ(Run({"import", absl::StrCat(copy, ".copy"), "--allow-gaps"}, exported), 0) << err_;
    EXPECT_EQ(out_, absl::StrCat(events, " events of 2 ids, with ", at_end ? 4 : 1, " gaps\n"));
    EXPECT_EQ(Run({"stats", absl::StrCat(copy, ".copy")}), 0) << err_;
    EXPECT_TRUE(Out("  of 2 ids\n")) << out_;
    EXPECT_TRUE(Out(absl::StrCat(events, "  "))) << out_;
  }
}

TEST_F(JournalToolTest, TakesOutEverythingIfOnlyTheListOfIdsIsDamaged) {
  FillFiles();
  int lists = 0;
  for (const std::string& file : Files(path_)) {
    const std::string name = std::filesystem::path(file).filename().string();
    const std::string copy = absl::StrCat(folder_, "/", name);
    std::filesystem::copy(path_, copy);
    DamageFile(absl::StrCat(copy, "/", name), 0);
    EXPECT_EQ(Run({"verify", copy}), 1);
    if (!Out("which has the list of ids")) continue;
    ++lists;
    EXPECT_TRUE(Out("201 events of 2 ids are good")) << out_;
    EXPECT_EQ(Run({"export", copy, "--skip-corrupt"}), 1);
    EXPECT_TRUE(Err("left out: the list of ids")) << err_;
    EXPECT_TRUE(Out("\"events\":201,\"ids\":2}\n")) << out_;
  }
  EXPECT_GE(lists, 1);
}

// An actor must not come back without its first events and without the snapshot that covers them.
TEST_F(JournalToolTest, TakesAlongWhatIsDeleted) {
  {
    const auto journal = Open(path_);
    for (uint64_t number = 1; number <= 5; ++number) {
      Write(*journal, {.persistence_id = "account-1", .sequence_nr = number, .manifest = "deposited"});
    }
    ASSERT_TRUE(journal->DeleteTo("account-1", 3, kNoEpoch).Wait().ok());
  }
  EXPECT_EQ(Run({"export", path_}), 0) << err_;
  const std::string exported = out_;
  EXPECT_TRUE(Out("{\"id\":\"account-1\",\"highest\":5,\"offset\":1099511627777,\"deleted\":3}\n")) << out_;
  const std::string copy = folder_ + "/copy";
  EXPECT_EQ(Run({"import", copy}, exported), 0) << err_;
  EXPECT_EQ(out_, "2 events of 1 ids\n");
  {
    const auto journal = Open(copy);
    EXPECT_EQ(journal->DeletedTo("account-1").Wait().value(), 3u);
    EXPECT_EQ(journal->OpenWriter("account-1", std::nullopt).Wait()->deleted_to, 3u);
    EXPECT_EQ(journal->Replay({.persistence_id = "account-1"}).Wait()->size(), 2u);
  }
  std::string wrong = exported;
  wrong.replace(wrong.find("\"deleted\":3"), 11, "\"deleted\":4");
  EXPECT_EQ(Run({"import", folder_ + "/wrong"}, wrong), 1);
  EXPECT_TRUE(Err("event 4 of \"account-1\" is one of those up to 4 that are deleted")) << err_;
}

TEST_F(JournalToolTest, TakesAJournalOutAndIn) {
  Fill();
  EXPECT_EQ(Run({"export", path_}), 0) << err_;
  const std::string exported = out_;
  EXPECT_TRUE(Out("{\"format\":\"fraktor-journal-export\",\"version\":2}\n")) << out_;
  EXPECT_TRUE(Out("\n{\"end\":\"fraktor-journal-export\",\"events\":4,\"ids\":3}\n")) << out_;
  EXPECT_TRUE(
      Out("{\"id\":\"account-1\",\"nr\":1,\"epoch\":0,\"offset\":1099511627778,\"time\":\"2023-11-14T22:13:20."
          "123456789+00:00\","
          "\"manifest\":\"deposited\",\"payload_base64\":\"YW1vdW50IDE=\"}\n"))
      << out_;
  const std::string copy = folder_ + "/copy";
  EXPECT_EQ(Run({"import", copy}, exported), 0) << err_;
  EXPECT_EQ(out_, "4 events of 3 ids\n");
  // The same comes out again.
  EXPECT_EQ(Run({"export", copy}), 0) << err_;
  EXPECT_EQ(out_, exported);
  // And it goes on where the first one would.
  const auto journal = Open(copy);
  EXPECT_EQ(journal->HighestSequenceNr(std::string("gone\0", 5)).Wait().value(), 5u);
  EXPECT_EQ(journal->Replay({.persistence_id = std::string("gone\0", 5)}).Wait()->size(), 0u);
  EXPECT_EQ(journal->OpenWriter("account-2", std::nullopt).Wait()->epoch, 3u);
  EXPECT_EQ(journal->EventsByTag({.tag = "\xff"}).Wait()->size(), 1u);
}

// PER-20: queries by tag, and those whose positions are stored, go on in the copy where they were.
TEST_F(JournalToolTest, KeepsTheOrderOfEventsOfSeveralIdsAndTheirOffsets) {
  const auto write = [](RocksDbJournal& journal, const std::string& id, uint64_t number) {
    Write(journal, {.persistence_id = id, .sequence_nr = number, .tags = {"red"}});
  };
  using Found = std::pair<std::string, uint64_t>;
  const auto red = [](RocksDbJournal& journal, uint64_t from_offset = 0) {
    const EventBatch events = journal.EventsByTag({.tag = "red", .from_offset = from_offset}).Wait().value();
    std::vector<Found> found;
    for (const StoredEvent& event : events) {
      found.emplace_back(absl::StrCat(std::string(event.persistence_id), "/", event.sequence_nr), event.offset);
    }
    return found;
  };
  std::vector<Found> all;
  uint64_t ids_end = 0;
  for (int opening = 0; opening < 3; ++opening) {
    const auto journal = Open(path_);
    write(*journal, "b", 2 * opening + 1);
    write(*journal, "a", 2 * opening + 1);
    write(*journal, "b", 2 * opening + 2);
    write(*journal, "a", 2 * opening + 2);
    ASSERT_TRUE(journal->OpenWriter(absl::StrCat("empty-", opening), std::nullopt).Wait().ok());
    all = red(*journal);
    ids_end = journal->PersistenceIds({}).Wait()->resume_at;
  }
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(Run({"export", path_}), 0) << err_;
  const std::string exported = out_;
  const std::string copy = folder_ + "/copy";
  EXPECT_EQ(Run({"import", copy}, exported), 0) << err_;
  EXPECT_EQ(err_.find("warning"), std::string::npos) << err_;
  EXPECT_EQ(Run({"export", copy}), 0) << err_;
  EXPECT_EQ(out_, exported);
  for (int opening = 0; opening < 2; ++opening) {
    const auto journal = Open(copy);
    EXPECT_EQ(red(*journal), all);
    EXPECT_EQ(red(*journal, all[5].second), std::vector<Found>(all.begin() + 5, all.end()));
    const IdBatch ids = journal->PersistenceIds({}).Wait().value();
    EXPECT_EQ(ids.ids, (std::vector<std::string>{"b", "a", "empty-0", "empty-1", "empty-2"}));
    EXPECT_EQ(ids.resume_at, ids_end);
    // New events come behind all of them.
    write(*journal, "a", 7 + opening);
    const std::vector<Found> more = red(*journal);
    ASSERT_EQ(more.size(), all.size() + 1);
    EXPECT_GT(more.back().second, all.back().second);
    all = more;
  }
}

TEST_F(JournalToolTest, SaysThatEventsGetNewOffsets) {
  Fill();
  EXPECT_EQ(Run({"export", path_}), 0) << err_;
  std::string exported = out_;
  // A journal that is there gives its own.
  const std::string other = folder_ + "/other";
  {
    const auto journal = Open(other);
    Write(*journal, {.persistence_id = "mine", .sequence_nr = 1});
  }
  EXPECT_EQ(Run({"import", other}, exported), 0) << err_;
  EXPECT_TRUE(Err("was not made by this import, so events get new offsets, id by id")) << err_;
  // An export of former days has none.
  for (size_t at = 0; (at = exported.find(",\"offset\":", at)) != std::string::npos;) {
    exported.erase(at, exported.find_first_of(",}", at + 1) - at);
  }
  EXPECT_EQ(Run({"import", folder_ + "/copy"}, exported), 0) << err_;
  EXPECT_TRUE(Err("the export does not have the offsets of all events, so events get new offsets")) << err_;
  EXPECT_EQ(Open(folder_ + "/copy")->EventsByTag({.tag = "red"}).Wait()->size(), 1u);
}

TEST_F(JournalToolTest, TakesAlongIdsThatHaveNeverHadEvents) {
  {
    const auto journal = Open(path_);
    ASSERT_TRUE(journal->OpenWriter("first", std::nullopt).Wait().ok());
    Write(*journal, {.persistence_id = "second", .sequence_nr = 1});
    ASSERT_TRUE(journal->OpenWriter("third", std::nullopt).Wait().ok());
  }
  EXPECT_EQ(Run({"export", path_}), 0) << err_;
  const std::string exported = out_;
  EXPECT_TRUE(Out("{\"id\":\"first\",\"highest\":0,\"offset\":1099511627777}\n")) << out_;
  const std::string copy = folder_ + "/copy";
  EXPECT_EQ(Run({"import", copy}, exported), 0) << err_;
  EXPECT_EQ(out_, "1 events of 3 ids\n");
  EXPECT_EQ(Run({"export", copy}), 0) << err_;
  EXPECT_EQ(out_, exported);
}

TEST_F(JournalToolTest, TakesOutWhatIsNotDamagedIfItIsAskedTo) {
  Fill();
  Damage("account-1", 2);
  EXPECT_EQ(Run({"export", path_}), 1);
  EXPECT_TRUE(Err("event 2 of \"account-1\"")) << err_;
  EXPECT_EQ(Run({"export", path_, "--skip-corrupt"}), 1);
  EXPECT_TRUE(Err("left out: event 2 of \"account-1\"")) << err_;
  EXPECT_TRUE(Out("\"nr\":3")) << out_;
  EXPECT_TRUE(Out("account-2")) << out_;
  const std::string exported = out_;
  // It says what is missing, and is not taken for whole.
  EXPECT_TRUE(Out("{\"id\":\"account-1\",\"gap\":2,\"to\":2,\"why\":\"event 2 of ")) << out_;
  EXPECT_EQ(Run({"import", folder_ + "/copy"}, exported), 1);
  EXPECT_TRUE(Err("line 4: this was left out of the export: event 2 of \"account-1\"")) << err_;
  EXPECT_TRUE(Err("--allow-gaps")) << err_;
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/copy"));
  EXPECT_EQ(Run({"import", folder_ + "/copy", "--allow-gaps"}, exported), 0) << err_;
  EXPECT_EQ(out_, "3 events of 3 ids, with 1 gaps\n");
  EXPECT_TRUE(Err("warning: left out of the export: event 2 of \"account-1\"")) << err_;
  EXPECT_EQ(Run({"export", path_, "--id", "account-2"}), 0);
  EXPECT_FALSE(Out("account-1")) << out_;
}

TEST_F(JournalToolTest, RefusesToImportWhatItCannotRead) {
  const std::string head = "{\"format\":\"fraktor-journal-export\",\"version\":1}\n";
  const std::string copy = folder_ + "/copy";
  const auto refuses = [&](const std::string& input, std::string_view why) {
    EXPECT_EQ(Run({"import", copy}, input), 1) << input;
    EXPECT_TRUE(Err(why)) << err_;
  };
  refuses("", "standard input is empty");
  refuses("\n\n", "standard input has only empty lines");
  refuses("\n{\"id\":\"a\",\"highest\":1}\n", "line 2: not an export of a journal");
  refuses("{\"format\":\"fraktor-journal-export\"}\n", "line 1: not an export of a journal");
  refuses("{\"id\":\"a\"}\n", "line 1: not an export of a journal");
  refuses("{\"format\":\"fraktor-journal-export\",\"version\":4}\n", "version 4");
  refuses(head + "nonsense\n", "line 2: column 1");
  refuses(head + "{\"id\":\"a\",\"nr\":1}\n", "line 2: an event of an id that was not announced");
  refuses(head + "{\"id\":\"a\",\"highest\":1}\n{\"id\":\"a\",\"nr\":1,\"payload\":\"x\"}\n", "line 3: \"time\"");
  refuses(head + "{\"id\":\"a\",\"highest\":1}\n{\"id\":\"a\",\"nr\":1,\"payload_base64\":\"_\"}\n",
          "line 3: column 35: \"payload_base64\" is not base64");
  Fill();
  EXPECT_EQ(Run({"export", path_}), 0);
  const std::string exported = out_;
  EXPECT_EQ(Run({"import", path_}, exported), 1);
  EXPECT_TRUE(Err("line 2: \"account-1\" is there already, up to 3")) << err_;
}

TEST_F(JournalToolTest, RefusesAnExportThatWasCut) {
  Fill();
  ASSERT_EQ(Run({"export", path_}), 0);
  const std::string exported = out_;
  const std::string copy = folder_ + "/copy";
  for (int lines = 1; lines <= 8; ++lines) {
    EXPECT_EQ(Run({"import", copy}, FirstLines(exported, lines)), 1) << lines;
    EXPECT_TRUE(
        Err(absl::StrCat("line ", lines, ": the export ends here, without the line with its counts: it was cut")))
        << err_;
    EXPECT_EQ(out_, "");
    EXPECT_FALSE(std::filesystem::exists(copy)) << lines;
  }
  const auto drop = [&](int line) {
    return FirstLines(exported, line - 1) + exported.substr(FirstLines(exported, line).size());
  };
  EXPECT_EQ(Run({"import", copy}, drop(4)), 1);
  EXPECT_TRUE(Err("line 8: the export says that it has 4 events of 3 ids; 3 events of 3 ids were read")) << err_;
  EXPECT_EQ(Run({"import", copy}, drop(8)), 1);
  EXPECT_TRUE(Err("line 8: the export says that it has 4 events of 3 ids; 4 events of 2 ids were read")) << err_;
  EXPECT_EQ(Run({"import", copy}, exported + "{}\n"), 1);
  EXPECT_TRUE(Err("line 10: something behind the end of the export")) << err_;
  // A folder that was there stays, as empty as it was.
  std::filesystem::create_directory(copy);
  EXPECT_EQ(Run({"import", copy}, drop(4)), 1);
  EXPECT_TRUE(std::filesystem::is_empty(copy));
  // And what is in it.
  std::ofstream(copy + "/notes") << "text";
  EXPECT_EQ(Run({"import", copy}, "nonsense\n"), 1);
  EXPECT_TRUE(std::filesystem::remove(copy + "/notes"));
  EXPECT_TRUE(std::filesystem::is_empty(copy));
  EXPECT_EQ(Run({"import", copy}, exported), 0) << err_;
  // So does a journal.
  const std::string more = "{\"format\":\"fraktor-journal-export\",\"version\":2}\n{\"id\":\"more\",\"highest\":1}\n";
  EXPECT_EQ(Run({"import", copy}, more), 1);
  EXPECT_EQ(Run({"export", copy}), 0);
  EXPECT_EQ(out_, exported);
}

TEST_F(JournalToolTest, RefusesAnEventThatIsGivenTwice) {
  Fill();
  ASSERT_EQ(Run({"export", path_}), 0);
  const std::string exported = out_;
  EXPECT_EQ(
      Run({"import", folder_ + "/copy"}, FirstLines(exported, 3) + exported.substr(FirstLines(exported, 2).size())), 1);
  EXPECT_TRUE(Err("line 4: event 1 of \"account-1\" is given twice or not in order: event 1 came before")) << err_;
  EXPECT_EQ(Run({"import", folder_ + "/copy"},
                FirstLines(exported, 2) + "{\"id\":\"account-1\",\"nr\":9,\"time\":\"2023-11-14T22:13:20+00:00\","
                                          "\"payload\":\"\"}\n"),
            1);
  EXPECT_TRUE(Err("line 3: event 9 of \"account-1\" is above its highest number, 3")) << err_;
}

TEST_F(JournalToolTest, DeletesNothingThatItImports) {
  Fill();
  Damage("account-1", 3);
  EXPECT_EQ(Run({"export", path_, "--skip-corrupt"}), 1);
  const std::string exported = out_;
  const std::string copy = folder_ + "/copy";
  EXPECT_EQ(Run({"import", copy, "--allow-gaps"}, exported), 0) << err_;
  EXPECT_TRUE(Err("\"account-1\" had events up to 3; the export has them up to 2")) << err_;
  EXPECT_EQ(Run({"stats", copy}), 0);
  EXPECT_TRUE(Out("         2          16 B         1         2         2  account-1")) << out_;
}

TEST_F(JournalToolTest, ReadsOldExportsIfTheyAreNotCut) {
  Fill();
  ASSERT_EQ(Run({"export", path_}), 0);
  // Version 1 had no end.
  std::string old = FirstLines(out_, 7);
  old.replace(old.find("\"version\":2"), 11, "\"version\":1");
  const std::string copy = folder_ + "/copy";
  for (const int lines : {2, 3, 4, 6}) {
    EXPECT_EQ(Run({"import", copy}, FirstLines(old, lines)), 1) << lines;
    EXPECT_TRUE(Err(absl::StrCat("line ", lines, ": the export ends here"))) << err_;
  }
  EXPECT_EQ(Run({"import", copy}, old), 0) << err_;
  EXPECT_EQ(out_, "4 events of 2 ids\n");
  EXPECT_TRUE(Err("an export of version 1 does not say where it ends")) << err_;
}

TEST_F(JournalToolTest, SaysWhatIsThereInsteadOfAJournal) {
  const std::string snapshots = folder_ + "/snapshots";
  ASSERT_TRUE(RocksDbSnapshotStore::Open(*toolbox_, {.path = snapshots}).ok());
  for (const std::string_view command : {"list", "import"}) {
    EXPECT_EQ(Run({std::string(command), snapshots}), 1);
    EXPECT_TRUE(Err("this is a fraktor-snapshots, not a fraktor-journal; name another folder")) << err_;
  }
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "text";
  for (const std::string_view command : {"list", "import"}) {
    EXPECT_EQ(Run({std::string(command), file}), 1);
    EXPECT_TRUE(Err("this is a file; name the folder")) << err_;
  }
  const std::string other = folder_ + "/other";
  std::filesystem::create_directory(other);
  std::ofstream(other + "/notes.txt") << "text";
  EXPECT_EQ(Run({"list", other}), 1);
  EXPECT_TRUE(
      Err("something else in it (notes.txt), and no fraktor-journal; name the folder that a store was opened with"))
      << err_;
  EXPECT_EQ(Run({"import", other}), 1);
  EXPECT_TRUE(Err("name one that is empty or not there yet")) << err_;
  EXPECT_EQ(Run({"list", folder_ + "/none"}), 1);
  EXPECT_TRUE(Err("there is no database, and no such folder; name the folder")) << err_;
  EXPECT_EQ(Run({"import", folder_ + "/none/journal"}), 1);
  EXPECT_TRUE(Err("/none to make it in; make that one first")) << err_;
}

TEST_F(JournalToolTest, ShowsProgress) {
  Fill();
  EXPECT_EQ(Run({"verify", path_, "--progress", "always"}), 0);
  EXPECT_TRUE(Err("\rverify: 3 ids, 4 events, ")) << err_;
  EXPECT_EQ(Run({"verify", path_}, "", true), 0);
  EXPECT_TRUE(Err("\rverify: 3 ids")) << err_;
  EXPECT_EQ(Run({"verify", path_}), 0);
  EXPECT_EQ(err_, "");
  EXPECT_EQ(Run({"verify", path_, "--progress", "never"}, "", true), 0);
  EXPECT_EQ(err_, "");
}

TEST_F(JournalToolTest, SaysWhatIsWrongWithACall) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},
                                             {"dance", path_},
                                             {"list"},
                                             {"list", path_, "more"},
                                             {"show", path_},
                                             {"list", path_, "--loud"},
                                             {"list", path_, "--max"},
                                             {"list", path_, "--max", "many"},
                                             {"list", path_, "--progress", "soon"},
                                             {"show", path_, "account-1", "--from", "50", "--to", "3"}}) {
    EXPECT_EQ(Run(wrong), 2);
    EXPECT_EQ(err_.rfind("journal: ", 0), 0u) << err_;
  }
  EXPECT_EQ(Run({"list", path_}), 1);
  EXPECT_TRUE(Err("there is no database")) << err_;
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(Run({"--help"}), 0);
  for (const std::string_view word : {"list", "stats", "show", "verify", "export", "import", "--skip-corrupt",
                                      "--allow-gaps", "--full", "--from", "--to", "--max", "--id", "--progress"}) {
    EXPECT_TRUE(Out(word)) << word;
  }
}

}  // namespace
}  // namespace fraktor
