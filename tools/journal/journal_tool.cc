#include "fraktor/tools/journal/journal_tool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/replay_cursor.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/tools/journal/id_text.h"
#include "fraktor/tools/journal/journal_files.h"
#include "fraktor/tools/journal/json_line.h"
#include "fraktor/tools/journal/probed_files.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kHelp = R"(Looks into a journal on RocksDB, checks it, and takes it out and in.

  journal list PATH              the persistence ids, one to a line, in the order of their first use
  journal stats PATH             how many events and bytes each id has, and all together; the largest first
  journal show PATH ID           the events of an id
  journal verify PATH            reads everything, and names each file, and each record, that is damaged, and each log
                                 whose end cannot be read: a crash leaves that, and then nothing acknowledged is lost,
                                 but it may be damage too
  journal export PATH            all events as JSON lines, to standard output
  journal import PATH            reads such lines from standard input into a journal, which is made if it is missing;
                                 ids that it has already are refused, and so is an export that was cut

PATH is the folder that the journal was opened with. All but import only look, also while a program has it open: they
show what was there when they began. An ID may be given as list prints it: \x00 is a byte, \\ a backslash.

Options
  --from N, --to N     show: only events with numbers from N, to N
  --max N              show: at most N events; list, stats: at most N ids
  --full               show: whole payloads; otherwise the first 64 bytes of what is shown in hex
  --id ID              stats, verify, export: only this id; may be given several times
  --skip-corrupt       export: leave out what is damaged, and name it, there too, instead of stopping; the exit code is
                       1 then
  --allow-gaps         import: also an export that says that events were left out
  --progress WHEN      a line that says how far it is: auto (if standard error is a terminal), always, never
  --help               this text

Exit codes: 0 all is well; 1 something failed or is damaged, or verify has met the end of a log that cannot be read;
2 called wrongly.
)";

constexpr std::string_view kExportFormat = "fraktor-journal-export";
// Version 1 had no line at its end. Version 3 has lines that say what was left out: {"id":…,"gap":4,"to":6,"why":…} in
// the place of events, {"lost":…} for what cannot be counted. Exports that leave nothing out are of version 2.
// "offset" in the lines of ids and events came later, within these versions. Older programs pass
// over it, and their exports do not have it.
constexpr uint64_t kExportVersion = 2;
constexpr uint64_t kExportVersionWithGaps = 3;
constexpr size_t kShownBytes = 64;
constexpr size_t kEventsPerWrite = 1000;
// The count of openings, above the lowest 40 bits, goes on behind it.
constexpr uint64_t kMaxOffset = (uint64_t{1} << 62) - 1;
// A journal that is damaged all over is not listed event by event.
constexpr uint64_t kMaxDamagedPerId = 1000;
// More than there are in a block.
constexpr int kMaxEventsPerBlock = 512;

struct Arguments {
  std::string command;
  std::string path;
  std::string show_id;
  uint64_t from = 1;
  uint64_t to = std::numeric_limits<uint64_t>::max();
  uint64_t max = std::numeric_limits<uint64_t>::max();
  bool full = false;
  bool skip_corrupt = false;
  bool allow_gaps = false;
  std::vector<std::string> ids;
  std::string progress = "auto";
};

absl::StatusOr<Arguments> ParseArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  std::vector<std::string> plain;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.rfind("--", 0) != 0) {
      plain.push_back(word);
      continue;
    }
    if (word == "--full") {
      arguments.full = true;
      continue;
    }
    if (word == "--skip-corrupt") {
      arguments.skip_corrupt = true;
      continue;
    }
    if (word == "--allow-gaps") {
      arguments.allow_gaps = true;
      continue;
    }
    const bool is_number = word == "--from" || word == "--to" || word == "--max";
    if (!is_number && word != "--id" && word != "--progress") {
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", word, "; see journal --help"));
    }
    if (++i == words.size()) return absl::InvalidArgumentError(absl::StrCat(word, " needs a value"));
    const std::string& value = words[i];
    if (is_number) {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) {
        return absl::InvalidArgumentError(absl::StrCat(word, " ", value, ": not a whole number"));
      }
      (word == "--from" ? arguments.from : word == "--to" ? arguments.to : arguments.max) = number;
    } else if (word == "--id") {
      arguments.ids.push_back(value);
    } else if (value != "auto" && value != "always" && value != "never") {
      return absl::InvalidArgumentError(absl::StrCat("--progress ", value, ": it is auto, always or never"));
    } else {
      arguments.progress = value;
    }
  }
  static constexpr std::string_view kCommands[] = {"list", "stats", "show", "verify", "export", "import"};
  if (plain.empty()) return absl::InvalidArgumentError("no command; see journal --help");
  arguments.command = plain[0];
  if (std::find(std::begin(kCommands), std::end(kCommands), arguments.command) == std::end(kCommands)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown command ", arguments.command, "; see journal --help"));
  }
  const size_t wanted = arguments.command == "show" ? 3 : 2;
  if (plain.size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("journal ", arguments.command, " takes ",
                                                   wanted == 3 ? "PATH and ID" : "PATH", "; see journal --help"));
  }
  if (arguments.from > arguments.to) {
    return absl::InvalidArgumentError(absl::StrCat("--from ", arguments.from, " is above --to ", arguments.to,
                                                   ": there are no such events; turn them around"));
  }
  arguments.path = plain[1];
  if (wanted == 3) arguments.show_id = plain[2];
  return arguments;
}

// "12.3 MiB".
std::string Size(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string TimeText(int64_t nanoseconds) {
  return absl::FormatTime(absl::RFC3339_full, absl::FromUnixNanos(nanoseconds), absl::UTCTimeZone());
}

// A line that is written over and over.
class Progress {
 public:
  Progress(StdToolbox& toolbox, std::ostream& err, std::string_view what, bool shows)
      : toolbox_(toolbox), err_(err), what_(what), shows_(shows), next_(toolbox.Now()) {}
  ~Progress() {
    if (!shows_) return;
    Show();
    err_ << "\n" << std::flush;
  }
  void Add(uint64_t ids, uint64_t events, uint64_t bytes) {
    ids_ += ids;
    events_ += events;
    bytes_ += bytes;
    if (!shows_ || toolbox_.Now() < next_) return;
    next_ = toolbox_.Now() + absl::Milliseconds(500);
    Show();
  }

 private:
  void Show() {
    err_ << absl::StrCat("\r", what_, ": ", ids_, " ids, ", events_, " events, ", Size(bytes_), "   ") << std::flush;
  }

  StdToolbox& toolbox_;
  std::ostream& err_;
  const std::string what_;
  const bool shows_;
  Instant next_;
  uint64_t ids_ = 0;
  uint64_t events_ = 0;
  uint64_t bytes_ = 0;
};

class JournalTool {
 public:
  JournalTool(Arguments arguments, ToolStreams streams, const EventTexts& texts)
      : arguments_(std::move(arguments)), streams_(streams), texts_(texts) {}

  // Whether everything was well.
  absl::StatusOr<bool> Run() {
    FRAKTOR_RETURN_IF_ERROR(CheckFolder());
    probed_.emplace(arguments_.path);  // before there are threads
    FRAKTOR_ASSIGN_OR_RETURN(toolbox_, StdToolbox::Make({.name = "journal"}));
    if (arguments_.command == "import") return ImportOrUndo();
    absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(
        *toolbox_, {.path = arguments_.path,
                    .create_if_missing = false,
                    .read_only = true,
                    // An export is whole unless it is asked to be something else.
                    .on_damaged_log = arguments_.command == "export" && !arguments_.skip_corrupt ? OnDamagedLog::kRefuse
                                                                                                 : OnDamagedLog::kSkip,
                    .env = &probed_->env()});
    if (!journal.ok()) {
      // The description of a damaged database may be lost.
      if (ErrorKindOf<JournalErrorKind>(journal.status()) == JournalErrorKind::kCorrupt) return journal.status();
      // Perhaps because it is something else, which RocksDB says in other words.
      const absl::StatusOr<JournalFiles*> files = Files();
      if (files.ok()) FRAKTOR_RETURN_IF_ERROR((*files)->CheckIsJournal());
      return journal.status();
    }
    journal_ = *std::move(journal);
    return RunWithJournal();
  }

 private:
  struct Totals {
    std::string id = {};
    uint64_t events = 0;
    uint64_t bytes = 0;
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t highest = 0;
  };
  // Events that cannot be read.
  struct Damage {
    std::string text = {};
    // One record, rather than the block of a file.
    bool is_record = false;
    // The first of them. None: the id as a whole.
    std::optional<uint64_t> first = {};
    // Where the id can be read again. None: it cannot.
    std::optional<uint64_t> next = {};
  };

  absl::StatusOr<bool> RunWithJournal() {
    const std::vector<std::string>& damaged = journal_->open_report().damaged;
    if (arguments_.command != "verify") {
      for (const std::string& line : journal_->open_report().dropped) streams_.err << "journal: " << line << "\n";
      for (const std::string& line : damaged) streams_.err << "journal: " << line << "\n";
    }
    FRAKTOR_ASSIGN_OR_RETURN(const bool is_well, RunCommand());
    return is_well && damaged.empty();
  }

  absl::StatusOr<bool> RunCommand() {
    Progress progress(*toolbox_, streams_.err, arguments_.command,
                      arguments_.progress == "always" || (arguments_.progress == "auto" && streams_.is_terminal));
    progress_ = &progress;
    FRAKTOR_RETURN_IF_ERROR(CheckIds());
    if (arguments_.command == "list") return List();
    if (arguments_.command == "stats") return Stats();
    if (arguments_.command == "show") return Show();
    if (arguments_.command == "verify") return Verify();
    if (arguments_.command == "export") return Export();
    return Import();
  }

  absl::Status CheckFolder() const {
    std::error_code error;
    const std::filesystem::path path(arguments_.path);
    if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
    if (std::filesystem::exists(path, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat(arguments_.path, ": this is a file; name the folder that a journal was opened with"));
    }
    if (arguments_.command != "import") {
      return absl::NotFoundError(absl::StrCat(arguments_.path,
                                              ": there is no database, and no such folder; name the "
                                              "folder that a journal was opened with"));
    }
    const std::filesystem::path parent = std::filesystem::absolute(path, error).lexically_normal().parent_path();
    if (std::filesystem::is_directory(parent, error)) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(arguments_.path, ": there is no folder ", parent.string(), " to make it in; make that one first"));
  }

  // The ids that were named must be there, or else a slip of the pen looks like an id without events.
  absl::Status CheckIds() {
    for (std::string& id : arguments_.ids) FRAKTOR_RETURN_IF_ERROR(CheckId(id));
    return arguments_.command == "show" ? CheckId(arguments_.show_id) : absl::OkStatus();
  }
  // Also one that was copied from what list prints, which becomes the id itself.
  absl::Status CheckId(std::string& id) {
    if (id.find('\\') != std::string::npos) {
      std::optional<std::string> parsed = ParseIdText(id);
      if (parsed.has_value()) {
        FRAKTOR_ASSIGN_OR_RETURN(const bool is_there, Knows(*parsed));
        if (is_there) {
          id = *std::move(parsed);
          return absl::OkStatus();
        }
      }
    }
    FRAKTOR_ASSIGN_OR_RETURN(const bool is_there, Knows(id));
    if (is_there) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(arguments_.path, ": there is no id \"", IdText(id), "\"; journal list shows the ids"));
  }
  absl::StatusOr<bool> Knows(const std::string& id) {
    const absl::StatusOr<uint64_t> highest = journal_->HighestSequenceNr(id).Wait();
    if (!highest.ok() || *highest > 0) return true;
    // It may have been opened and never written to.
    FRAKTOR_ASSIGN_OR_RETURN(const JournalFiles* const files, Files());
    return files->Knows(id);
  }

  // Opened when they are needed: that reads the log once more.
  absl::StatusOr<JournalFiles*> Files() {
    if (files_ == nullptr) {
      FRAKTOR_ASSIGN_OR_RETURN(files_, JournalFiles::Open(arguments_.path, probed_->env()));
    }
    return files_.get();
  }

  // Calls `use` with all ids that are wanted, until it says false. Stops if the list of ids is damaged.
  template <class Fn>
  absl::Status ForEachId(Fn use) {
    return ForEachId(use, nullptr);
  }
  // Goes on with those that are not in what can be read of the list, after `damaged(const std::string&)`.
  template <class Fn, class Damaged>
  absl::Status ForEachId(Fn use, Damaged damaged) {
    if (!arguments_.ids.empty()) return UseIds(arguments_.ids, use).status();
    // An export wants the offset of each id, and a page says where its last one is.
    const size_t max_ids = arguments_.command == "export" ? 1 : IdPage().max_ids;
    for (IdPage page{.max_ids = max_ids};;) {
      const absl::StatusOr<IdBatch> batch = journal_->PersistenceIds(page).Wait();
      if (!batch.ok()) {
        if constexpr (std::is_null_pointer_v<Damaged>) {
          return batch.status();
        } else {
          damaged(absl::StrCat("the list of ids from here on; the others come in alphabetical order: ",
                               std::string(batch.status().message())));
          id_offset_ = 0;
          return UseIds(IdsBehind(page), use).status();
        }
      }
      id_offset_ = max_ids == 1 && !batch->ids.empty() ? batch->resume_at - 1 : 0;
      FRAKTOR_ASSIGN_OR_RETURN(const bool goes_on, UseIds(batch->ids, use));
      if (!goes_on || batch->at_end) return absl::OkStatus();
      page.from_offset = batch->resume_at;
    }
  }
  template <class Fn>
  static absl::StatusOr<bool> UseIds(const std::vector<std::string>& ids, Fn& use) {
    for (const std::string& id : ids) {
      FRAKTOR_ASSIGN_OR_RETURN(const bool goes_on, use(id));
      if (!goes_on) return false;
    }
    return true;
  }

  // All ids but those in the list before `end`, which cannot be read.
  std::vector<std::string> IdsBehind(const IdPage& end) {
    std::set<std::string> before;
    for (IdPage page; page.from_offset < end.from_offset;) {
      const absl::StatusOr<IdBatch> batch = journal_->PersistenceIds(page).Wait();
      if (!batch.ok()) break;
      before.insert(batch->ids.begin(), batch->ids.end());
      if (batch->at_end) break;
      page.from_offset = batch->resume_at;
    }
    const absl::StatusOr<JournalFiles*> files = Files();
    std::vector<std::string> ids = files.ok() ? (*files)->Ids() : std::vector<std::string>();
    ids.erase(std::remove_if(ids.begin(), ids.end(), [&](const std::string& id) { return before.count(id) > 0; }),
              ids.end());
    return ids;
  }

  // Calls `use` with every event in the range. Stops at damage.
  template <class Fn>
  absl::Status ForEachEvent(ReplayRange range, Fn use) {
    return ForEachEvent(range, use, nullptr);
  }
  // Goes on behind damage, after `damaged(const Damage&)`.
  template <class Fn, class Damaged>
  absl::Status ForEachEvent(ReplayRange range, Fn use, Damaged damaged) {
    for (ReplayCursor cursor(range); !cursor.done();) {
      const absl::StatusOr<EventBatch> batch = journal_->Replay(cursor.NextPage({})).Wait();
      if (!batch.ok()) {
        if constexpr (std::is_null_pointer_v<Damaged>) {
          return batch.status();
        } else {
          FRAKTOR_ASSIGN_OR_RETURN(const Damage damage, Measure(range.persistence_id, batch.status()));
          damaged(damage);
          if (!damage.next.has_value()) return absl::OkStatus();
          ReplayRange rest = cursor.rest();
          rest.from_sequence_nr = *damage.next;
          cursor = ReplayCursor(rest);
          continue;
        }
      }
      cursor.Advance(*batch);
      for (const StoredEvent& event : *batch) FRAKTOR_RETURN_IF_ERROR(use(event));
      progress_->Add(0, batch->size(), batch->byte_size());
    }
    return absl::OkStatus();
  }

  // How far the damage goes that a replay has met.
  absl::StatusOr<Damage> Measure(const std::string& id, const absl::Status& status) {
    constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
    Damage damage{.text = std::string(status.message())};
    const std::optional<int64_t> detail = ErrorDetailNumberOf<JournalErrorKind>(status, "nr");
    if (!detail.has_value()) return damage;  // the id as a whole
    const auto number = static_cast<uint64_t>(*detail);
    damage.first = number;
    FRAKTOR_ASSIGN_OR_RETURN(const JournalFiles* const files, Files());
    damage.is_record = files->HasRecord(id, number);
    if (number == kLast) return damage;
    damage.next = number + 1;
    if (damage.is_record) return damage;
    // A block of a file: all that it has is lost, and nobody knows what that is.
    const auto reads = [&](uint64_t from) {
      const absl::StatusOr<EventBatch> batch =
          journal_->Replay({.persistence_id = id, .from_sequence_nr = from, .limits = {.max_events = 1}}).Wait();
      if (batch.ok()) return true;
      const std::optional<int64_t> at = ErrorDetailNumberOf<JournalErrorKind>(batch.status(), "nr");
      return at.has_value() && files->HasRecord(id, static_cast<uint64_t>(*at));
    };
    uint64_t bad = number;
    for (int i = 0; i < kMaxEventsPerBlock && bad < kLast - 1 && !reads(bad + 1); ++i) ++bad;
    uint64_t good = bad + 1;
    if (!reads(good)) {
      // The block ends with others' events, or there is a gap in the numbers.
      if (!reads(kLast)) {
        damage.next = std::nullopt;
        absl::StrAppend(&damage.text, ". No event from ", number, " on can be read");
        return damage;
      }
      for (bad = good, good = kLast; good - bad > 1;) {
        const uint64_t middle = bad + (good - bad) / 2;
        (reads(middle) ? good : bad) = middle;
      }
    }
    damage.next = good;
    absl::StrAppend(&damage.text, ". No event from ", number, " to ", good - 1, " can be read");
    return damage;
  }

  absl::StatusOr<bool> List() {
    uint64_t left = arguments_.max;
    FRAKTOR_RETURN_IF_ERROR(ForEachId([&](const std::string& id) -> absl::StatusOr<bool> {
      if (left-- == 0) return false;
      streams_.out << IdText(id) << "\n";
      progress_->Add(1, 0, 0);
      return true;
    }));
    return true;
  }

  absl::StatusOr<bool> Stats() {
    std::vector<Totals> all;
    Totals sum;
    FRAKTOR_RETURN_IF_ERROR(ForEachId([&](const std::string& id) -> absl::StatusOr<bool> {
      Totals totals{.id = id};
      FRAKTOR_ASSIGN_OR_RETURN(totals.highest, journal_->HighestSequenceNr(id).Wait());
      FRAKTOR_RETURN_IF_ERROR(ForEachEvent({.persistence_id = id}, [&](const StoredEvent& event) {
        if (totals.events++ == 0) totals.first = event.sequence_nr;
        totals.last = event.sequence_nr;
        totals.bytes += event.payload.size();
        return absl::OkStatus();
      }));
      sum.events += totals.events;
      sum.bytes += totals.bytes;
      progress_->Add(1, 0, 0);
      all.push_back(std::move(totals));
      return true;
    }));
    std::stable_sort(all.begin(), all.end(), [](const Totals& a, const Totals& b) { return a.bytes > b.bytes; });
    streams_.out << "    events       payload     first      last   highest  id\n";
    for (size_t i = 0; i < all.size() && i < arguments_.max; ++i) {
      const Totals& totals = all[i];
      streams_.out << absl::StrFormat("%10d  %12s  %8d  %8d  %8d  %s\n", totals.events, Size(totals.bytes),
                                      totals.first, totals.last, totals.highest, IdText(totals.id));
    }
    streams_.out << absl::StrFormat("%10d  %12s  of %d ids\n", sum.events, Size(sum.bytes), all.size());
    return true;
  }

  absl::StatusOr<bool> Show() {
    uint64_t shown = 0;
    FRAKTOR_RETURN_IF_ERROR(ForEachEvent({.persistence_id = arguments_.show_id,
                                          .from_sequence_nr = arguments_.from,
                                          .to_sequence_nr = arguments_.to,
                                          .max_events = arguments_.max},
                                         [&](const StoredEvent& event) {
                                           ++shown;
                                           ShowEvent(event);
                                           return absl::OkStatus();
                                         }));
    if (shown > 0) return true;
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t highest, journal_->HighestSequenceNr(arguments_.show_id).Wait());
    streams_.err << "journal: \"" << IdText(arguments_.show_id) << "\" has no such events"
                 << "; its highest number is " << highest << "\n";
    return true;
  }

  void ShowEvent(const StoredEvent& event) {
    std::string line = absl::StrFormat("%d  %s  %s", event.sequence_nr, TimeText(event.timestamp_ns),
                                       event.manifest.empty() ? "-" : std::string(event.manifest));
    if (event.manifest_version != 0) absl::StrAppend(&line, " v", event.manifest_version);
    absl::StrAppend(&line, "  epoch ", event.epoch);
    if (!event.writer.is_none()) absl::StrAppend(&line, "  writer ", event.writer.ToString());
    for (const std::string_view tag : event.tags()) absl::StrAppend(&line, "  #", IdText(tag));
    if (!event.metadata.empty()) absl::StrAppend(&line, "  metadata ", Hex(event.metadata));
    const std::optional<std::string> text = texts_.Show(event.manifest, event.manifest_version, event.payload);
    absl::StrAppend(&line, "  ", text.has_value() ? *text : Hex(event.payload));
    streams_.out << line << "\n";
  }

  std::string Hex(std::string_view bytes) const {
    const size_t shown = arguments_.full ? bytes.size() : std::min(bytes.size(), kShownBytes);
    std::string hex = absl::BytesToHexString(ToAbsl(bytes.substr(0, shown)));
    if (shown < bytes.size()) absl::StrAppend(&hex, "… (", bytes.size(), " bytes; --full shows all)");
    return hex;
  }

  absl::StatusOr<bool> Verify() {
    uint64_t files_damaged = 0;
    uint64_t records_damaged = 0;
    uint64_t ranges_damaged = 0;
    uint64_t events = 0;
    uint64_t ids = 0;
    const std::vector<std::string>& logs_damaged = journal_->open_report().damaged;
    for (const std::string& text : logs_damaged) {
      streams_.out << text
                   << ". Restore the whole folder from a backup; `journal export --skip-corrupt` takes out what can "
                      "still be read\n";
    }
    const std::vector<std::string>& ends_torn = journal_->open_report().dropped;
    for (const std::string& text : ends_torn) streams_.out << text << "\n";
    if (arguments_.ids.empty()) {
      FRAKTOR_ASSIGN_OR_RETURN(const JournalFiles* const files, Files());
      files_damaged = files->Verify([this](const std::string& text) { streams_.out << text << "\n"; });
    }
    const auto verify_id = [&](const std::string& id) -> absl::StatusOr<bool> {
      uint64_t damaged_here = 0;
      FRAKTOR_RETURN_IF_ERROR(ForEachEvent(
          {.persistence_id = id},
          [&](const StoredEvent&) {
            ++events;
            return absl::OkStatus();
          },
          [&](const Damage& damage) {
            ++(damage.is_record ? records_damaged : ranges_damaged);
            if (++damaged_here <= kMaxDamagedPerId) streams_.out << damage.text << "\n";
          }));
      if (damaged_here > kMaxDamagedPerId) {
        streams_.out << "… and " << damaged_here - kMaxDamagedPerId << " more of \"" << IdText(id) << "\"\n";
      }
      // What its next writer begins with.
      const absl::Status highest = journal_->HighestSequenceNr(id).Wait().status();
      if (!highest.ok() && damaged_here == 0) {
        ++ranges_damaged;
        streams_.out << "\"" << IdText(id) << "\": " << std::string(highest.message()) << "\n";
      }
      ++ids;
      progress_->Add(1, 0, 0);
      return true;
    };
    FRAKTOR_RETURN_IF_ERROR(ForEachId(verify_id, [&](const std::string& text) {
      ++ranges_damaged;
      streams_.out << text << "\n";
    }));
    std::vector<std::string> damages;
    if (!logs_damaged.empty()) {
      damages.push_back("the log is damaged");
    } else if (!ends_torn.empty()) {
      damages.push_back("the end of a log cannot be read");
    }
    if (files_damaged > 0) damages.push_back(absl::StrCat(files_damaged, " files are damaged"));
    if (records_damaged > 0) damages.push_back(absl::StrCat(records_damaged, " records are damaged"));
    if (ranges_damaged > 0) damages.push_back(absl::StrCat(ranges_damaged, " ranges cannot be read"));
    streams_.out << (damages.empty() ? "all is well: " : absl::StrJoin(damages, ", ") + "; ") << events << " events of "
                 << ids << " ids are good\n";
    return damages.empty();
  }

  absl::StatusOr<bool> Export() {
    bool is_whole = true;
    uint64_t events = 0;
    uint64_t ids = 0;
    const auto write = [&](const std::string& line) {
      streams_.out << line << "\n";
      return streams_.out.good() ? absl::OkStatus() : absl::DataLossError("standard output cannot be written");
    };
    const auto leave_out = [&](const std::string& text) {
      is_whole = false;
      streams_.err << "journal: left out: " << text << "\n";
    };
    const auto lose = [&](const std::string& text) {
      leave_out(text);
      return write(JsonLineWriter().Text("lost", text).Finish());
    };
    const uint64_t version = arguments_.skip_corrupt ? kExportVersionWithGaps : kExportVersion;
    FRAKTOR_RETURN_IF_ERROR(write(JsonLineWriter().Text("format", kExportFormat).Number("version", version).Finish()));
    // What a damaged log had is not known: each number that is missing may have been there.
    const std::vector<std::string>& damaged_logs = journal_->open_report().damaged;
    for (const std::string& text : damaged_logs) FRAKTOR_RETURN_IF_ERROR(lose(text));
    const auto write_id = [&](const std::string& id) -> absl::StatusOr<bool> {
      const absl::StatusOr<uint64_t> highest = journal_->HighestSequenceNr(id).Wait();
      if (!highest.ok()) {
        if (!arguments_.skip_corrupt) return highest.status();
        FRAKTOR_RETURN_IF_ERROR(
            lose(absl::StrCat("the highest number of \"", IdText(id), "\", in whose place is that of its last ",
                              "event: ", std::string(highest.status().message()))));
      }
      ++ids;
      JsonLineWriter line;
      line.Text("id", id).Number("highest", highest.value_or(0));
      if (id_offset_ > 0) line.Number("offset", id_offset_);
      // So that whoever imports it does not take an actor without its first events for a whole one.
      const uint64_t deleted = journal_->DeletedTo(id).Wait().value_or(0);
      if (deleted > 0) line.Number("deleted", deleted);
      FRAKTOR_RETURN_IF_ERROR(write(line.Finish()));
      uint64_t last = deleted;
      const auto write_gap = [&](std::optional<uint64_t> from, std::optional<uint64_t> to, const std::string& why) {
        leave_out(why);
        JsonLineWriter gap;
        gap.Text("id", id).Number("gap", from.value_or(1));
        if (to.has_value()) gap.Number("to", *to);
        return write(gap.Text("why", why).Finish());
      };
      const auto write_missing = [&](uint64_t next) -> absl::Status {
        if (damaged_logs.empty() || next <= last + 1) return absl::OkStatus();
        return write_gap(last + 1, next - 1,
                         absl::StrCat("events ", last + 1, " to ", next - 1, " of \"", IdText(id),
                                      "\" are not there; they may have been in the damaged log"));
      };
      const auto write_event = [&](const StoredEvent& event) -> absl::Status {
        FRAKTOR_RETURN_IF_ERROR(write_missing(event.sequence_nr));
        last = event.sequence_nr;
        ++events;
        return write(Line(event));
      };
      const ReplayRange all{.persistence_id = id};
      if (arguments_.skip_corrupt) {
        absl::Status written;
        FRAKTOR_RETURN_IF_ERROR(ForEachEvent(all, write_event, [&](const Damage& damage) {
          std::optional<uint64_t> to;
          if (damage.next.has_value()) to = *damage.next - 1;
          if (written.ok()) written = write_gap(damage.first, to, damage.text);
          last = std::max(last, to.value_or(highest.value_or(0)));
        }));
        FRAKTOR_RETURN_IF_ERROR(written);
        FRAKTOR_RETURN_IF_ERROR(write_missing(highest.value_or(0) + 1));
      } else {
        FRAKTOR_RETURN_IF_ERROR(ForEachEvent(all, write_event));
      }
      progress_->Add(1, 0, 0);
      return true;
    };
    absl::Status lost;
    const auto lose_ids = [&](const std::string& text) {
      if (lost.ok()) lost = lose(text);
    };
    FRAKTOR_RETURN_IF_ERROR(arguments_.skip_corrupt ? ForEachId(write_id, lose_ids) : ForEachId(write_id));
    FRAKTOR_RETURN_IF_ERROR(lost);
    FRAKTOR_RETURN_IF_ERROR(
        write(JsonLineWriter().Text("end", kExportFormat).Number("events", events).Number("ids", ids).Finish()));
    streams_.out.flush();
    if (!streams_.out.good()) return absl::DataLossError("standard output cannot be written");
    return is_whole;
  }

  static std::string Line(const StoredEvent& event) {
    JsonLineWriter writer;
    writer.Text("id", event.persistence_id).Number("nr", event.sequence_nr).Number("epoch", event.epoch);
    writer.Number("offset", event.offset);
    writer.Text("time", TimeText(event.timestamp_ns));
    if (!event.writer.is_none()) writer.Text("writer", event.writer.ToString());
    writer.Text("manifest", event.manifest);
    if (event.manifest_version != 0) writer.Number("version", event.manifest_version);
    std::vector<std::string> tags;
    for (const std::string_view tag : event.tags()) tags.emplace_back(tag);
    if (!tags.empty()) writer.Texts("tags", tags);
    if (!event.metadata.empty()) writer.Bytes("metadata", event.metadata);
    return writer.Bytes("payload", event.payload).Finish();
  }

  // An import that fails leaves no new journal behind: one would look as if it had everything.
  absl::StatusOr<bool> ImportOrUndo() {
    std::error_code error;
    const std::filesystem::path path(arguments_.path);
    std::set<std::filesystem::path> present;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) present.insert(entry.path());
    const bool has_folder = std::filesystem::exists(path, error);
    if (!present.empty()) {
      // Before it is opened for writing, which would add to the database of something else.
      const absl::StatusOr<JournalFiles*> files = Files();
      if (files.ok()) FRAKTOR_RETURN_IF_ERROR((*files)->CheckIsJournal());
      files_.reset();
    }
    const absl::StatusOr<bool> imported = OpenAndImport();
    const bool is_new = journal_ != nullptr && journal_->open_report().open_count == 1;
    journal_.reset();
    if (imported.ok()) return imported;
    if (!is_new) {
      if (written_events_ == 0) return imported;
      return Annotate(imported.status(), absl::StrCat("after ", written_events_, " events, which are in ",
                                                      arguments_.path, " now; import the whole into another folder"));
    }
    std::vector<std::filesystem::path> made;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (present.count(entry.path()) == 0) made.push_back(entry.path());
    }
    for (const std::filesystem::path& file : made) std::filesystem::remove_all(file, error);
    if (!has_folder) std::filesystem::remove(path, error);
    return imported;
  }

  absl::StatusOr<bool> OpenAndImport() {
    FRAKTOR_ASSIGN_OR_RETURN(journal_,
                             RocksDbJournal::Open(*toolbox_, {.path = arguments_.path,
                                                              // Said from open_report(), with the name of this program.
                                                              .on_warning = [](const std::string&) {},
                                                              .env = &probed_->env()}));
    return RunWithJournal();
  }

  absl::StatusOr<bool> Import() {
    uint64_t number = 0;
    for (std::string text; std::getline(streams_.in, text);) {
      ++number;
      if (text.empty()) continue;
      FRAKTOR_RETURN_IF_ERROR(Annotate(ImportLine(text), absl::StrCat("line ", number)));
    }
    if (number == 0) return absl::InvalidArgumentError("standard input is empty; give it what journal export wrote");
    if (version_ == 0) return absl::InvalidArgumentError("standard input has only empty lines");
    if (!has_end_ && version_ > 1) {
      return absl::DataLossError(absl::StrCat("line ", number,
                                              ": the export ends here, without the line with its counts: it was cut. "
                                              "Take it out again with journal export"));
    }
    if (!has_end_ && current_.highest > current_.last) {
      return absl::DataLossError(
          absl::StrCat("line ", number, ": the export ends here, without the events of \"", IdText(current_.id),
                       "\" up to ", current_.highest, ": it was cut",
                       current_.events == 0 ? ", or they were deleted, which an export of version 1 does not tell" : "",
                       ". Take it out again with journal export"));
    }
    if (!has_end_) {
      streams_.err << "journal: warning: an export of version 1 does not say where it ends: if it was cut behind the "
                      "events of an id, further ids are missing. Compare with journal stats of where it came from\n";
    }
    FRAKTOR_RETURN_IF_ERROR(FinishId());
    FRAKTOR_RETURN_IF_ERROR(journal_->Close().Wait());
    streams_.out << absl::StrCat(imported_events_, " events of ", imported_ids_, " ids",
                                 gaps_ > 0 ? absl::StrCat(", with ", gaps_, " gaps") : "", "\n");
    return true;
  }

  absl::Status ImportLine(const std::string& text) {
    FRAKTOR_ASSIGN_OR_RETURN(const JsonLine line, JsonLine::Parse(text));
    if (version_ == 0) {
      if (line.Text("format") != kExportFormat || line.Number("version").value_or(0) == 0) {
        return absl::InvalidArgumentError("not an export of a journal: it begins with {\"format\":…}");
      }
      version_ = *line.Number("version");
      if (version_ > kExportVersionWithGaps) {
        return absl::FailedPreconditionError(
            absl::StrCat("an export of version ", version_, "; this program knows versions up to ",
                         kExportVersionWithGaps, ". Import it with the newer program that wrote it"));
      }
      return absl::OkStatus();
    }
    if (has_end_) return absl::InvalidArgumentError("something behind the end of the export; import one at a time");
    if (line.Text("end").has_value()) return CheckEnd(line);
    if (line.Text("lost").has_value()) return ImportGap(*line.Text("lost"));
    const std::optional<std::string> id = line.Text("id");
    if (!id.has_value()) return absl::InvalidArgumentError("no \"id\"");
    if (line.Number("highest").has_value()) {
      return BeginId(*id, *line.Number("highest"), line.Number("deleted").value_or(0),
                     line.Number("offset").value_or(0));
    }
    if (*id != current_.id)
      return absl::InvalidArgumentError("an event of an id that was not announced by a line with \"highest\"");
    if (line.Number("gap").has_value()) return ImportGap(line.Text("why").value_or(GapText(line)));
    return ImportEvent(line);
  }

  std::string GapText(const JsonLine& line) const {
    const std::optional<uint64_t> to = line.Number("to");
    return absl::StrCat("events of \"", IdText(current_.id), "\" from ", *line.Number("gap"),
                        to.has_value() ? absl::StrCat(" to ", *to) : " on");
  }

  // Something that was left out of the export.
  absl::Status ImportGap(const std::string& text) {
    if (!arguments_.allow_gaps) {
      return absl::FailedPreconditionError(
          absl::StrCat("this was left out of the export: ", text,
                       ". An actor would come back with a wrong state, unless a snapshot covers it. Import an export "
                       "that is whole, or take what there is with --allow-gaps"));
    }
    ++gaps_;
    streams_.err << "journal: warning: left out of the export: " << text << "\n";
    return absl::OkStatus();
  }

  absl::Status CheckEnd(const JsonLine& line) {
    const std::optional<uint64_t> events = line.Number("events");
    const std::optional<uint64_t> ids = line.Number("ids");
    if (!events.has_value() || !ids.has_value()) return absl::InvalidArgumentError("no \"events\" or no \"ids\"");
    has_end_ = true;
    if (*events == imported_events_ && *ids == imported_ids_) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("the export says that it has ", *events, " events of ", *ids, " ids; ",
                                            imported_events_, " events of ", imported_ids_,
                                            " ids were read. Take it out again with journal export"));
  }

  absl::Status BeginId(const std::string& id, uint64_t highest, uint64_t deleted, uint64_t offset) {
    FRAKTOR_RETURN_IF_ERROR(FinishId());
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t present, journal_->HighestSequenceNr(id).Wait());
    if (present > 0) {
      return absl::AlreadyExistsError(absl::StrCat("\"", IdText(id), "\" is there already, up to ", present,
                                                   "; import into a journal that does not have it"));
    }
    current_ = {.id = id, .highest = highest};
    deleted_ = deleted;
    epoch_ = 0;
    ++imported_ids_;
    progress_->Add(1, 0, 0);
    if (offset == 0 || !KeepsOffsets()) return absl::OkStatus();
    FRAKTOR_RETURN_IF_ERROR(CheckOffset(offset));
    return journal_->ImportId(id, offset).Wait();
  }

  // Offsets of a journal that has events already are taken.
  bool KeepsOffsets() const { return journal_->open_report().open_count == 1; }
  static absl::Status CheckOffset(uint64_t offset) {
    if (offset <= kMaxOffset) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("\"offset\" is ", offset, "; it must be at most ", kMaxOffset));
  }
  void WarnOfNewOffset(const PersistentRepr& event) {
    if (event.tags.empty() || std::exchange(has_warned_of_offsets_, true)) return;
    streams_.err << "journal: warning: "
                 << (KeepsOffsets() ? "the export does not have the offsets of all events"
                                    : absl::StrCat(arguments_.path, " was not made by this import"))
                 << ", so events get new offsets, id by id: queries by tag find events of several ids in another "
                    "order, and positions that they have stored are not valid. Begin such queries anew\n";
  }

  absl::Status ImportEvent(const JsonLine& line) {
    PersistentRepr event;
    event.persistence_id = current_.id;
    const std::optional<uint64_t> number = line.Number("nr");
    const std::optional<std::string> payload = line.Text("payload");
    const std::optional<WriterId> writer = WriterId::Parse(line.Text("writer").value_or(""));
    std::string error;
    if (!number.has_value()) return absl::InvalidArgumentError("no \"nr\"");
    if (!payload.has_value()) return absl::InvalidArgumentError("no \"payload\" or \"payload_base64\"");
    if (!writer.has_value()) return absl::InvalidArgumentError("\"writer\" is not 32 hexadecimal digits");
    if (!absl::ParseTime(absl::RFC3339_full, line.Text("time").value_or(""), &event.timestamp, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("\"time\": ", error));
    }
    if (current_.events > 0 && *number <= current_.last) {
      return absl::InvalidArgumentError(absl::StrCat("event ", *number, " of \"", IdText(current_.id),
                                                     "\" is given twice or not in order: event ", current_.last,
                                                     " came before"));
    }
    if (*number <= deleted_) {
      return absl::InvalidArgumentError(absl::StrCat("event ", *number, " of \"", IdText(current_.id),
                                                     "\" is one of those up to ", deleted_, " that are deleted"));
    }
    if (current_.highest > 0 && *number > current_.highest) {
      return absl::InvalidArgumentError(absl::StrCat("event ", *number, " of \"", IdText(current_.id),
                                                     "\" is above its highest number, ", current_.highest));
    }
    event.sequence_nr = *number;
    event.payload = *payload;
    event.writer = *writer;
    event.epoch = line.Number("epoch").value_or(0);
    event.manifest = line.Text("manifest").value_or("");
    event.manifest_version = static_cast<uint32_t>(line.Number("version").value_or(0));
    event.metadata = line.Text("metadata").value_or("");
    event.tags = line.Texts("tags").value_or(std::vector<std::string>());
    const uint64_t offset = KeepsOffsets() ? line.Number("offset").value_or(0) : 0;
    FRAKTOR_RETURN_IF_ERROR(CheckOffset(offset));
    if (offset == 0) WarnOfNewOffset(event);
    current_.last = event.sequence_nr;
    ++current_.events;
    if (event.epoch > epoch_) {
      FRAKTOR_RETURN_IF_ERROR(FlushWrites());
      FRAKTOR_RETURN_IF_ERROR(journal_->OpenWriter(current_.id, event.epoch).Wait().status());
      epoch_ = event.epoch;
    }
    ++imported_events_;
    progress_->Add(0, 1, event.ByteSize());
    FRAKTOR_ASSIGN_OR_RETURN(AtomicWrite write, AtomicWrite::Make(std::move(event)));
    writes_.push_back(std::move(write));
    offsets_.push_back(offset);
    return writes_.size() >= kEventsPerWrite ? FlushWrites() : absl::OkStatus();
  }

  absl::Status FlushWrites() {
    if (writes_.empty()) return absl::OkStatus();
    const size_t count = writes_.size();
    FRAKTOR_ASSIGN_OR_RETURN(const WriteResults results,
                             journal_->ImportEvents(std::exchange(writes_, {}), std::exchange(offsets_, {})).Wait());
    for (const absl::Status& result : results) FRAKTOR_RETURN_IF_ERROR(result);
    written_events_ += count;
    return absl::OkStatus();
  }

  // An id whose events were all deleted goes on behind its highest number. It gets there by an event that is deleted,
  // with all before it: one that has events cannot get there so.
  absl::Status FinishId() {
    FRAKTOR_RETURN_IF_ERROR(FlushWrites());
    if (!current_.id.empty() && current_.highest == 0 && current_.events == 0) {
      // It was opened, and nothing was ever written: neither is there anything to write here.
      return journal_->OpenWriter(current_.id, std::nullopt).Wait().status();
    }
    if (current_.events > 0 && deleted_ > 0) {
      FRAKTOR_RETURN_IF_ERROR(journal_->DeleteTo(current_.id, deleted_, epoch_).Wait());
    }
    if (current_.highest <= current_.last) return absl::OkStatus();
    if (current_.events > 0) {
      streams_.err << absl::StrCat("journal: warning: \"", IdText(current_.id), "\" had events up to ",
                                   current_.highest, "; the export has them up to ", current_.last,
                                   ", and the next one gets the number behind that\n");
      return absl::OkStatus();
    }
    FRAKTOR_ASSIGN_OR_RETURN(AtomicWrite write,
                             AtomicWrite::Make(PersistentRepr{
                                 .persistence_id = current_.id, .sequence_nr = current_.highest, .epoch = epoch_}));
    writes_.push_back(std::move(write));
    offsets_.push_back(0);
    FRAKTOR_RETURN_IF_ERROR(FlushWrites());
    return journal_->DeleteTo(current_.id, current_.highest, epoch_).Wait();
  }

  Arguments arguments_;
  ToolStreams streams_;
  const EventTexts& texts_;
  std::optional<ProbedFiles> probed_;
  std::unique_ptr<StdToolbox> toolbox_;
  std::unique_ptr<RocksDbJournal> journal_;
  std::unique_ptr<JournalFiles> files_;
  Progress* progress_ = nullptr;
  // The offset, in the list of ids, of the id that is being exported; 0 if it is not known.
  uint64_t id_offset_ = 0;

  // Of an import.
  uint64_t version_ = 0;  // 0: it has not begun
  bool has_end_ = false;
  Totals current_;
  uint64_t epoch_ = 0;
  // Of the current id: all up to this number were deleted where it came from.
  uint64_t deleted_ = 0;
  std::vector<AtomicWrite> writes_;
  std::vector<uint64_t> offsets_;  // of writes_
  bool has_warned_of_offsets_ = false;
  uint64_t imported_events_ = 0;
  uint64_t imported_ids_ = 0;
  uint64_t gaps_ = 0;
  uint64_t written_events_ = 0;
};

}  // namespace

EventTexts::EventTexts() {
  const auto add_built_in = [this]<class T>(const T*, auto show) {
    const std::string_view manifest = Codec<T>::kManifest;
    Register(std::string(manifest), [manifest, show](uint32_t version, std::string_view payload) {
      const absl::StatusOr<T> value =
          CodecRegistry::BuiltIn().DecodeAs<T>({manifest, version, payload}, {.max_bytes = payload.size()});
      return value.ok() ? std::optional<std::string>(show(*value)) : std::nullopt;
    });
  };
  const auto number = [](auto value) { return absl::StrCat(value); };
  add_built_in(static_cast<const bool*>(nullptr), [](bool value) { return std::string(value ? "true" : "false"); });
  add_built_in(static_cast<const int32_t*>(nullptr), number);
  add_built_in(static_cast<const uint32_t*>(nullptr), number);
  add_built_in(static_cast<const int64_t*>(nullptr), number);
  add_built_in(static_cast<const uint64_t*>(nullptr), number);
  add_built_in(static_cast<const float*>(nullptr), number);
  add_built_in(static_cast<const double*>(nullptr), number);
  add_built_in(static_cast<const std::string*>(nullptr), [](const std::string& value) { return value; });
}

int RunJournalTool(const std::vector<std::string>& words, ToolStreams streams, const EventTexts& texts) {
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      streams.out << kHelp;
      return 0;
    }
  }
  absl::StatusOr<Arguments> arguments = ParseArguments(words);
  if (!arguments.ok()) {
    streams.err << "journal: " << std::string(arguments.status().message()) << "\n";
    return 2;
  }
  const absl::StatusOr<bool> is_well = JournalTool(*std::move(arguments), streams, texts).Run();
  if (is_well.ok()) return *is_well ? 0 : 1;
  streams.err << "journal: " << std::string(is_well.status().message()) << "\n";
  return 1;
}

}  // namespace fraktor::inline v0
