#include "fraktor/tools/journal/journal_tool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/replay_cursor.h"
#include "fraktor/persistence/rocksdb/rocksdb_journal.h"
#include "fraktor/tools/journal/json_line.h"
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
  journal verify PATH            reads everything, and names each record that is damaged
  journal export PATH            all events as JSON lines, to standard output
  journal import PATH            reads such lines from standard input into a journal, which is made if it is missing;
                                 ids that it has already are refused

PATH is the folder that the journal was opened with. All but import only look, also while a program has it open: they
show what was there when they began.

Options
  --from N, --to N     show: only events with numbers from N, to N
  --max N              show: at most N events; list, stats: at most N ids
  --full               show: whole payloads; otherwise the first 64 bytes of what is shown in hex
  --id ID              stats, verify, export: only this id; may be given several times
  --skip-corrupt       export: leave out what is damaged, and say so, instead of stopping
  --progress WHEN      a line that says how far it is: auto (if standard error is a terminal), always, never
  --help               this text

Exit codes: 0 all is well; 1 something failed or is damaged; 2 called wrongly.
)";

constexpr std::string_view kExportFormat = "fraktor-journal-export";
constexpr uint64_t kExportVersion = 1;
constexpr size_t kShownBytes = 64;
constexpr size_t kEventsPerWrite = 1000;
// A journal that is damaged all over is not listed event by event.
constexpr uint64_t kMaxDamagedPerId = 1000;

struct Arguments {
  std::string command;
  std::string path;
  std::string show_id;
  uint64_t from = 1;
  uint64_t to = std::numeric_limits<uint64_t>::max();
  uint64_t max = std::numeric_limits<uint64_t>::max();
  bool full = false;
  bool skip_corrupt = false;
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
    FRAKTOR_ASSIGN_OR_RETURN(toolbox_, StdToolbox::Make({.name = "journal"}));
    const bool imports = arguments_.command == "import";
    FRAKTOR_ASSIGN_OR_RETURN(
        journal_, RocksDbJournal::Open(*toolbox_,
                                       {.path = arguments_.path, .create_if_missing = imports, .read_only = !imports}));
    for (const std::string& line : journal_->open_report().dropped) streams_.err << "journal: " << line << "\n";
    Progress progress(*toolbox_, streams_.err, arguments_.command,
                      arguments_.progress == "always" || (arguments_.progress == "auto" && streams_.is_terminal));
    progress_ = &progress;
    if (arguments_.command == "list") return List();
    if (arguments_.command == "stats") return Stats();
    if (arguments_.command == "show") return Show();
    if (arguments_.command == "verify") return Verify();
    if (arguments_.command == "export") return Export();
    return Import();
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

  // Calls `use` with all ids that are wanted, until it says false.
  template <class Fn>
  absl::Status ForEachId(Fn use) {
    if (!arguments_.ids.empty()) {
      for (const std::string& id : arguments_.ids) {
        FRAKTOR_ASSIGN_OR_RETURN(const bool goes_on, use(id));
        if (!goes_on) return absl::OkStatus();
      }
      return absl::OkStatus();
    }
    for (IdPage page;;) {
      FRAKTOR_ASSIGN_OR_RETURN(const IdBatch batch, journal_->PersistenceIds(page).Wait());
      for (const std::string& id : batch.ids) {
        FRAKTOR_ASSIGN_OR_RETURN(const bool goes_on, use(id));
        if (!goes_on) return absl::OkStatus();
      }
      if (batch.at_end) return absl::OkStatus();
      page.from_offset = batch.resume_at;
    }
  }

  // Calls `use` with every event in the range. Damaged ones go to `damaged`, which says whether to go on behind them.
  template <class Fn, class Damaged>
  absl::Status ForEachEvent(ReplayRange range, Fn use, Damaged damaged) {
    for (ReplayCursor cursor(range); !cursor.done();) {
      const absl::StatusOr<EventBatch> batch = journal_->Replay(cursor.NextPage({})).Wait();
      if (!batch.ok()) {
        if (!damaged(batch.status())) return batch.status();
        const std::optional<int64_t> number = ErrorDetailNumberOf<JournalErrorKind>(batch.status(), "nr");
        if (!number.has_value()) return absl::OkStatus();  // the id as a whole
        ReplayRange rest = cursor.rest();
        rest.from_sequence_nr = static_cast<uint64_t>(*number) + 1;
        cursor = ReplayCursor(rest);
        continue;
      }
      cursor.Advance(*batch);
      for (const StoredEvent& event : *batch) FRAKTOR_RETURN_IF_ERROR(use(event));
      progress_->Add(0, batch->size(), batch->byte_size());
    }
    return absl::OkStatus();
  }

  static bool StopAtDamage(const absl::Status&) { return false; }

  absl::StatusOr<bool> List() {
    uint64_t left = arguments_.max;
    FRAKTOR_RETURN_IF_ERROR(ForEachId([&](const std::string& id) -> absl::StatusOr<bool> {
      if (left-- == 0) return false;
      streams_.out << absl::CHexEscape(id) << "\n";
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
      FRAKTOR_RETURN_IF_ERROR(ForEachEvent(
          {.persistence_id = id},
          [&](const StoredEvent& event) {
            if (totals.events++ == 0) totals.first = event.sequence_nr;
            totals.last = event.sequence_nr;
            totals.bytes += event.payload.size();
            return absl::OkStatus();
          },
          &StopAtDamage));
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
                                      totals.first, totals.last, totals.highest, absl::CHexEscape(totals.id));
    }
    streams_.out << absl::StrFormat("%10d  %12s  of %d ids\n", sum.events, Size(sum.bytes), all.size());
    return true;
  }

  absl::StatusOr<bool> Show() {
    uint64_t shown = 0;
    FRAKTOR_RETURN_IF_ERROR(ForEachEvent(
        {.persistence_id = arguments_.show_id,
         .from_sequence_nr = arguments_.from,
         .to_sequence_nr = arguments_.to,
         .max_events = arguments_.max},
        [&](const StoredEvent& event) {
          ++shown;
          ShowEvent(event);
          return absl::OkStatus();
        },
        &StopAtDamage));
    if (shown > 0) return true;
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t highest, journal_->HighestSequenceNr(arguments_.show_id).Wait());
    streams_.err << "journal: \"" << absl::CHexEscape(arguments_.show_id) << "\" has no such events"
                 << (highest == 0 ? "; journal list shows the ids\n"
                                  : absl::StrCat("; its highest number is ", highest, "\n"));
    return true;
  }

  void ShowEvent(const StoredEvent& event) {
    std::string line = absl::StrFormat("%d  %s  %s", event.sequence_nr, TimeText(event.timestamp_ns),
                                       event.manifest.empty() ? "-" : std::string(event.manifest));
    if (event.manifest_version != 0) absl::StrAppend(&line, " v", event.manifest_version);
    absl::StrAppend(&line, "  epoch ", event.epoch);
    if (!event.writer.is_none()) absl::StrAppend(&line, "  writer ", event.writer.ToString());
    for (const std::string_view tag : event.tags()) absl::StrAppend(&line, "  #", absl::CHexEscape(ToAbsl(tag)));
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
    uint64_t damaged = 0;
    uint64_t events = 0;
    uint64_t ids = 0;
    FRAKTOR_RETURN_IF_ERROR(ForEachId([&](const std::string& id) -> absl::StatusOr<bool> {
      uint64_t damaged_here = 0;
      uint64_t last = 0;
      FRAKTOR_RETURN_IF_ERROR(ForEachEvent(
          {.persistence_id = id},
          [&](const StoredEvent& event) {
            ++events;
            last = event.sequence_nr;
            return absl::OkStatus();
          },
          [&](const absl::Status& status) {
            streams_.out << std::string(status.message()) << "\n";
            return ++damaged_here < kMaxDamagedPerId;
          }));
      damaged += damaged_here;
      ++ids;
      progress_->Add(1, 0, 0);
      return true;
    }));
    streams_.out << absl::StrCat(damaged == 0 ? "all is well: " : absl::StrCat(damaged, " records are damaged; "),
                                 events, " events of ", ids, " ids are good\n");
    return damaged == 0;
  }

  absl::StatusOr<bool> Export() {
    bool is_whole = true;
    streams_.out << JsonLineWriter().Text("format", kExportFormat).Number("version", kExportVersion).Finish() << "\n";
    FRAKTOR_RETURN_IF_ERROR(ForEachId([&](const std::string& id) -> absl::StatusOr<bool> {
      const auto damaged = [&](const absl::Status& status) {
        if (!arguments_.skip_corrupt) return false;
        is_whole = false;
        streams_.err << "journal: left out: " << std::string(status.message()) << "\n";
        return true;
      };
      const absl::StatusOr<uint64_t> highest = journal_->HighestSequenceNr(id).Wait();
      if (!highest.ok()) {
        if (!damaged(highest.status())) return highest.status();
        return true;
      }
      streams_.out << JsonLineWriter().Text("id", id).Number("highest", *highest).Finish() << "\n";
      FRAKTOR_RETURN_IF_ERROR(ForEachEvent(
          {.persistence_id = id},
          [&](const StoredEvent& event) {
            streams_.out << Line(event) << "\n";
            return streams_.out.good() ? absl::OkStatus() : absl::DataLossError("standard output cannot be written");
          },
          damaged));
      progress_->Add(1, 0, 0);
      return true;
    }));
    streams_.out.flush();
    return is_whole;
  }

  static std::string Line(const StoredEvent& event) {
    JsonLineWriter writer;
    writer.Text("id", event.persistence_id).Number("nr", event.sequence_nr).Number("epoch", event.epoch);
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

  absl::StatusOr<bool> Import() {
    uint64_t number = 0;
    for (std::string text; std::getline(streams_.in, text);) {
      ++number;
      if (text.empty()) continue;
      FRAKTOR_RETURN_IF_ERROR(Annotate(ImportLine(text, number), absl::StrCat("line ", number)));
    }
    if (number == 0) return absl::InvalidArgumentError("standard input is empty; give it what journal export wrote");
    FRAKTOR_RETURN_IF_ERROR(FinishId());
    FRAKTOR_RETURN_IF_ERROR(journal_->Close().Wait());
    streams_.out << absl::StrCat(imported_events_, " events of ", imported_ids_, " ids\n");
    return true;
  }

  absl::Status ImportLine(const std::string& text, uint64_t number) {
    FRAKTOR_ASSIGN_OR_RETURN(const JsonLine line, JsonLine::Parse(text));
    if (number == 1) {
      if (line.Text("format") != kExportFormat) {
        return absl::InvalidArgumentError("not an export of a journal: it begins with {\"format\":…}");
      }
      if (line.Number("version").value_or(0) > kExportVersion) {
        return absl::FailedPreconditionError(absl::StrCat("an export of version ", line.Number("version").value_or(0),
                                                          "; this program knows versions up to ", kExportVersion,
                                                          ". Import it with the newer program that wrote it"));
      }
      return absl::OkStatus();
    }
    const std::optional<std::string> id = line.Text("id");
    if (!id.has_value()) return absl::InvalidArgumentError("no \"id\"");
    if (line.Number("highest").has_value()) return BeginId(*id, *line.Number("highest"));
    if (*id != current_.id)
      return absl::InvalidArgumentError("an event of an id that was not announced by a line with \"highest\"");
    return ImportEvent(line);
  }

  absl::Status BeginId(const std::string& id, uint64_t highest) {
    FRAKTOR_RETURN_IF_ERROR(FinishId());
    FRAKTOR_ASSIGN_OR_RETURN(const uint64_t present, journal_->HighestSequenceNr(id).Wait());
    if (present > 0) {
      return absl::AlreadyExistsError(absl::StrCat("\"", id, "\" is there already, up to ", present,
                                                   "; import into a journal that does not have it"));
    }
    current_ = {.id = id, .highest = highest};
    epoch_ = 0;
    ++imported_ids_;
    progress_->Add(1, 0, 0);
    return absl::OkStatus();
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
    event.sequence_nr = *number;
    event.payload = *payload;
    event.writer = *writer;
    event.epoch = line.Number("epoch").value_or(0);
    event.manifest = line.Text("manifest").value_or("");
    event.manifest_version = static_cast<uint32_t>(line.Number("version").value_or(0));
    event.metadata = line.Text("metadata").value_or("");
    event.tags = line.Texts("tags").value_or(std::vector<std::string>());
    current_.last = event.sequence_nr;
    if (event.epoch > epoch_) {
      FRAKTOR_RETURN_IF_ERROR(FlushWrites());
      FRAKTOR_RETURN_IF_ERROR(journal_->OpenWriter(current_.id, event.epoch).Wait().status());
      epoch_ = event.epoch;
    }
    ++imported_events_;
    progress_->Add(0, 1, event.ByteSize());
    FRAKTOR_ASSIGN_OR_RETURN(AtomicWrite write, AtomicWrite::Make(std::move(event)));
    writes_.push_back(std::move(write));
    return writes_.size() >= kEventsPerWrite ? FlushWrites() : absl::OkStatus();
  }

  absl::Status FlushWrites() {
    if (writes_.empty()) return absl::OkStatus();
    FRAKTOR_ASSIGN_OR_RETURN(const WriteResults results, journal_->Write(std::exchange(writes_, {})).Wait());
    for (const absl::Status& result : results) FRAKTOR_RETURN_IF_ERROR(result);
    return absl::OkStatus();
  }

  // An id whose events were all deleted goes on behind its highest number. It gets there by an event that is deleted.
  absl::Status FinishId() {
    FRAKTOR_RETURN_IF_ERROR(FlushWrites());
    if (current_.highest <= current_.last) return absl::OkStatus();
    FRAKTOR_ASSIGN_OR_RETURN(AtomicWrite write,
                             AtomicWrite::Make(PersistentRepr{
                                 .persistence_id = current_.id, .sequence_nr = current_.highest, .epoch = epoch_}));
    writes_.push_back(std::move(write));
    FRAKTOR_RETURN_IF_ERROR(FlushWrites());
    return journal_->DeleteTo(current_.id, current_.highest).Wait();
  }

  const Arguments arguments_;
  ToolStreams streams_;
  const EventTexts& texts_;
  std::unique_ptr<StdToolbox> toolbox_;
  std::unique_ptr<RocksDbJournal> journal_;
  Progress* progress_ = nullptr;

  // Of an import.
  Totals current_;
  uint64_t epoch_ = 0;
  std::vector<AtomicWrite> writes_;
  uint64_t imported_events_ = 0;
  uint64_t imported_ids_ = 0;
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
