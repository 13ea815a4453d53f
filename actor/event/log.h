// Logger and LogSink: log lines with a level, and where they go.
//
//   class ListSink final : public LogSink {
//    public:
//     void Write(const LogRecord& record) override { lines.push_back(FormatLogRecord(record)); }
//     std::vector<std::string> lines;
//   };
//
// Set ActorSystemOptions::log_sink, or use a Logger of your own:
//
//   Logger logger(&sink, LogLevel::kInfo);
//   logger.Log(LogLevel::kWarning, {.at = now, .path = "pekko://shop/user/cart", .type = "Cart", .text = "is empty"});
//
// By default lines go to stderr:
//   W1116 08:45:10.123456 pekko://shop/user/cart Cart: restarted after: a handler of Add threw: out of stock
//
// LogLimits limits each place in a program that logs: after `lines` lines of one site there is a
// pause, and the first line after it says how many lines were left out.
//
// Control characters in a text are shown as \n, \x1b and so on, so that no text can forge a line.
//
// If a sink throws, the logger catches it: the line is lost, and stderr gets a line that says so,
// at most one in ten seconds.
//
// Thread safety: any thread may log. Several threads call a sink at once.
#ifndef FRAKTOR_ACTOR_EVENT_LOG_H_
#define FRAKTOR_ACTOR_EVENT_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
std::string_view NameOf(LogLevel level);

// The place in a program that logs; by default the place of the call.
struct LogSite {
  const char* file = "";
  int line = 0;

  static constexpr LogSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// The limits of one site.
struct LogLimits {
  // The number of lines before a pause. 0: no limit.
  uint64_t lines = 100;
  absl::Duration pause = absl::Seconds(10);

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

// A view that is valid during the call.
struct LogRecord {
  LogLevel level = LogLevel::kInfo;
  absl::Time at = absl::UnixEpoch();
  std::string_view path = {};  // path of the actor; empty for the system itself
  std::string_view type = {};  // type of the actor
  std::string_view text = {};
};

// Returns the record as one line, without a line end.
std::string FormatLogRecord(const LogRecord& record);

class LogSink {
 public:
  virtual ~LogSink() = default;
  // May send messages.
  virtual void Write(const LogRecord& record) = 0;
};

// Writes each line with one call.
class StderrLogSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override;
};

class Logger {
 public:
  // `sink` must outlive the logger. Null: stderr.
  explicit Logger(LogSink* sink, LogLevel level = LogLevel::kInfo, LogLimits limits = {});
  ~Logger();

  bool IsOn(LogLevel level) const { return level >= level_.load(std::memory_order_relaxed) && level != LogLevel::kOff; }
  LogLevel level() const { return level_.load(std::memory_order_relaxed); }
  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  // Does nothing below the level or beyond the limits of the site. The record has the time.
  void Log(LogLevel level, LogRecord record, LogSite site = LogSite::Here()) const;

 private:
  class Sites;

  void Write(const LogRecord& record) const;

  LogSink* const sink_;
  const LogLimits limits_;
  // The counts of each site; as many entries as the program has sites.
  const std::unique_ptr<Sites> sites_;
  // An independent value; it pairs with nothing.
  std::atomic<LogLevel> level_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_LOG_H_
