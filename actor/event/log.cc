#include "fraktor/actor/event/log.h"

#include <cxxabi.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

LogSink& DefaultSink() {
  static auto& sink = *new StderrLogSink();
  return sink;
}

// How often stderr gets a line about a sink that throws.
constexpr LogLimits kFailureLimits{.lines = 1, .pause = absl::Seconds(10)};

// Escapes control characters, so that a text of a user stays on its line.
std::string Shown(std::string_view text) { return absl::CHexEscape(ToAbsl(text)); }

bool IsPlain(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

std::string_view NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "unknown";
}

absl::Status LogLimits::Validate() const {
  if (pause >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("LogLimits.pause is ", absl::FormatDuration(pause), "; it must not be negative"));
}

std::string FormatLogRecord(const LogRecord& record) {
  constexpr std::string_view kLetters = "DIWE-";
  const size_t letter = static_cast<size_t>(record.level);
  std::string line = absl::StrCat(ToAbsl(kLetters.substr(letter < kLetters.size() ? letter : 4, 1)),
                                  absl::FormatTime("%m%d %H:%M:%E6S ", record.at, absl::UTCTimeZone()));
  if (!record.path.empty()) absl::StrAppend(&line, ToAbsl(record.path), " ");
  if (!record.type.empty()) absl::StrAppend(&line, ToAbsl(record.type));
  if (!record.path.empty() || !record.type.empty()) absl::StrAppend(&line, ": ");
  if (IsPlain(record.text)) {
    absl::StrAppend(&line, ToAbsl(record.text));
  } else {
    absl::StrAppend(&line, Shown(record.text));
  }
  return line;
}

void StderrLogSink::Write(const LogRecord& record) {
  const std::string line = absl::StrCat(FormatLogRecord(record), "\n");
  for (size_t written = 0; written < line.size();) {
    const ssize_t n = write(STDERR_FILENO, line.data() + written, line.size() - written);
    if (n <= 0) return;  // there is no other place to report it
    written += static_cast<size_t>(n);
  }
}

class Logger::Sites {
 public:
  // Returns whether the site may log a line now. Sets `note` to a text that the line must end with.
  bool Admit(const LogSite& site, absl::Time now, const LogLimits& limits, std::string& note) {
    MutexLock lock(mutex_);
    Count& count = counts_[{site.file, site.line}];
    if (count.logged == limits.lines) {
      if (now < count.resume && now >= count.paused) {
        ++count.skipped;
        return false;
      }
      if (count.skipped != 0) note = absl::StrCat(" (", count.skipped, " lines of this site were left out)");
      count = Count();
    }
    if (++count.logged == limits.lines) {
      count.paused = now;
      count.resume = now + limits.pause;
      absl::StrAppend(&note, " (no more of this site for ", absl::FormatDuration(limits.pause), ")");
    }
    return true;
  }

 private:
  struct Count {
    uint64_t logged = 0;
    uint64_t skipped = 0;
    // If the clock is set back meanwhile, the pause is over.
    absl::Time paused = absl::InfinitePast();
    absl::Time resume = absl::InfinitePast();
  };

  Mutex mutex_;
  // The pointer identifies the file: names of files are literals of the program.
  absl::flat_hash_map<std::pair<const char*, int>, Count> counts_ ABSL_GUARDED_BY(mutex_);
};

Logger::Logger(LogSink* sink, LogLevel level, LogLimits limits)
    : sink_(sink == nullptr ? &DefaultSink() : sink),
      limits_(limits),
      sites_(std::make_unique<Sites>()),
      level_(level) {}

Logger::~Logger() = default;

void Logger::Log(LogLevel level, LogRecord record, LogSite site) const {
  if (!IsOn(level)) return;
  record.level = level;
  std::string note;
  if (limits_.lines != 0 && !sites_->Admit(site, record.at, limits_, note)) return;
  if (note.empty()) {
    Write(record);
    return;
  }
  const std::string text = absl::StrCat(ToAbsl(record.text), note);
  record.text = text;
  Write(record);
}

void Logger::Write(const LogRecord& record) const {
  std::string what;
  try {
    sink_->Write(record);
    return;
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being cancelled; that must go on
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "something that is no std::exception";
  }
  std::string note;
  if (!sites_->Admit(LogSite::Here(), record.at, kFailureLimits, note)) return;
  const std::string text = absl::StrCat("a line was not logged: LogSink::Write threw: ", what, note);
  DefaultSink().Write({.level = LogLevel::kError, .at = record.at, .text = text});
}

}  // namespace fraktor::inline v0
