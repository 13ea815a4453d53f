// Logging: where lines of text go, and which.
//
//   class SyslogSink final : public LogSink {
//     void Write(const LogRecord& record) override { syslog(..., record.text); }
//   };
//   Logger logger(&sink, LogLevel::kInfo);
//   logger.Log(LogLevel::kWarning, {.at = now, .path = "pekko://shop/user/cart", .type = "Cart", .text = "..."});
//
// By default they go to stderr, a line each:
//   W1116 08:45:10.123456 pekko://shop/user/cart Cart: restarted after: a handler of Add threw: out of stock
//
// A place in a program that logs too often is limited (LogLimits): after `lines` lines of one site there is a pause, and
// the first line after it says how many were left out.
//
// Control characters in a text are shown as \n, \x1b and so on: no message makes a line that looks like another.
//
// What a sink throws is caught: the line is lost, and stderr gets one that says so, at most one in ten seconds.
//
// Thread safety: any thread may log; a sink is called by many at once.
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

// The place in a program that logs: by default that of the caller.
struct LogSite {
  const char* file = "";
  int line = 0;

  static constexpr LogSite Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// How much one site may log.
struct LogLimits {
  // So many lines, and then none until the pause is over. 0: no limit.
  uint64_t lines = 100;
  absl::Duration pause = absl::Seconds(10);

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// A view that holds during the call.
struct LogRecord {
  LogLevel level = LogLevel::kInfo;
  absl::Time at = absl::UnixEpoch();
  std::string_view path = {};  // Of the actor; empty for the system itself.
  std::string_view type = {};  // Of the actor.
  std::string_view text = {};
};

// One line, without its end.
std::string FormatLogRecord(const LogRecord& record);

class LogSink {
 public:
  virtual ~LogSink() = default;
  // It may send messages.
  virtual void Write(const LogRecord& record) = 0;
};

// Writes each line by one call.
class StderrLogSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override;
};

class Logger {
 public:
  // `sink` must live longer; null: stderr.
  explicit Logger(LogSink* sink, LogLevel level = LogLevel::kInfo, LogLimits limits = {});
  ~Logger();

  bool IsOn(LogLevel level) const { return level >= level_.load(std::memory_order_relaxed) && level != LogLevel::kOff; }
  LogLevel level() const { return level_.load(std::memory_order_relaxed); }
  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  // Does nothing below the level, nor beyond the limits of the site. The time is that of the record.
  void Log(LogLevel level, LogRecord record, LogSite site = LogSite::Here()) const;

 private:
  class Sites;

  void Write(const LogRecord& record) const;

  LogSink* const sink_;
  const LogLimits limits_;
  // How much each site has logged: as many as the program has.
  const std::unique_ptr<Sites> sites_;
  // A value that makes sense by itself.
  std::atomic<LogLevel> level_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_LOG_H_
