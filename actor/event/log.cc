#include "fraktor/actor/event/log.h"

#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

LogSink& DefaultSink() {
  static auto& sink = *new StderrLogSink();
  return sink;
}

// Texts of users may say anything; they stay on their line.
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
    if (n <= 0) return;  // There is no other place to complain.
    written += static_cast<size_t>(n);
  }
}

Logger::Logger(LogSink* sink, LogLevel level) : sink_(sink == nullptr ? &DefaultSink() : sink), level_(level) {}

void Logger::Log(LogLevel level, LogRecord record) const {
  if (!IsOn(level)) return;
  record.level = level;
  sink_->Write(record);
}

}  // namespace fraktor::inline v0
