#include "fraktor/actor/event/log.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace fraktor {
namespace {

class RecordingSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override { lines.push_back(FormatLogRecord(record)); }
  std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

const absl::Time kNoon = absl::FromUnixSeconds(1'763'294'400);  // 2025-11-16 12:00 UTC

TEST(Log, WritesLevelTimePathTypeAndText) {
  EXPECT_EQ(FormatLogRecord({.level = LogLevel::kWarning,
                             .at = kNoon + absl::Microseconds(5),
                             .path = "pekko://shop/user/cart",
                             .type = "Cart",
                             .text = "restarts"}),
            "W1116 12:00:00.000005 pekko://shop/user/cart Cart: restarts");
  EXPECT_EQ(FormatLogRecord({.level = LogLevel::kError, .at = kNoon, .text = "down"}), "E1116 12:00:00.000000 down");
}

// A text from a peer must not be able to forge a line.
TEST(Log, KeepsATextOnItsLine) {
  const std::string line = FormatLogRecord({.at = kNoon, .text = "a\nE1116 12:00:00 forged\x1b[2J"});
  EXPECT_EQ(line, "I1116 12:00:00.000000 a\\nE1116 12:00:00 forged\\x1b[2J");
}

// A93
TEST(Log, LevelsFilter) {
  RecordingSink sink;
  Logger logger(&sink, LogLevel::kWarning);
  const auto log_all = [&] {
    for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
      logger.Log(level, {.at = kNoon, .text = NameOf(level)});
    }
  };
  log_all();
  EXPECT_EQ(sink.lines, Lines({"W1116 12:00:00.000000 warning", "E1116 12:00:00.000000 error"}));
  sink.lines.clear();
  logger.SetLevel(LogLevel::kDebug);
  EXPECT_EQ(logger.level(), LogLevel::kDebug);
  log_all();
  EXPECT_EQ(sink.lines.size(), 4u);
  sink.lines.clear();
  logger.SetLevel(LogLevel::kOff);
  log_all();
  logger.Log(LogLevel::kOff, {.text = "not a level of a line"});
  EXPECT_TRUE(sink.lines.empty());
}

// A95, for any line: a site stops at its limit, continues after the pause with the number of
// skipped lines, and counts from 1 again. Dead letters have a limit of their own:
// dead_letters_test.cc.
TEST(Log, ASiteThatLogsTooMuchPauses) {
  RecordingSink sink;
  Logger logger(&sink, LogLevel::kInfo, {.lines = 3, .pause = absl::Seconds(10)});
  const auto log = [&](absl::Duration after) { logger.Log(LogLevel::kInfo, {.at = kNoon + after, .text = "hot"}); };
  for (int i = 0; i < 5; ++i) log(absl::ZeroDuration());
  EXPECT_EQ(sink.lines, Lines({"I1116 12:00:00.000000 hot", "I1116 12:00:00.000000 hot",
                               "I1116 12:00:00.000000 hot (no more of this site for 10s)"}));
  logger.Log(LogLevel::kInfo, {.at = kNoon, .text = "another site"});
  EXPECT_EQ(sink.lines.back(), "I1116 12:00:00.000000 another site");
  sink.lines.clear();
  log(absl::Seconds(9));
  EXPECT_TRUE(sink.lines.empty());
  for (int i = 0; i < 4; ++i) log(absl::Seconds(10));
  EXPECT_EQ(sink.lines,
            Lines({"I1116 12:00:10.000000 hot (3 lines of this site were left out)", "I1116 12:00:10.000000 hot",
                   "I1116 12:00:10.000000 hot (no more of this site for 10s)"}));
  sink.lines.clear();
  log(absl::Seconds(-3600));
  EXPECT_EQ(sink.lines.size(), 1u) << "a clock that was set back does not make the pause longer";
}

TEST(Log, WithoutALimitEveryLineIsWritten) {
  RecordingSink sink;
  Logger logger(&sink, LogLevel::kInfo, {.lines = 0});
  for (int i = 0; i < 1000; ++i) logger.Log(LogLevel::kInfo, {.at = kNoon, .text = "hot"});
  EXPECT_EQ(sink.lines.size(), 1000u);
}

// Throws for its first lines.
class FailingSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override {
    if (failures-- > 0) throw std::runtime_error("the disk is full");
    lines.push_back(FormatLogRecord(record));
  }
  int failures = 3;
  std::vector<std::string> lines;
};

TEST(Log, SaysOnStderrThatASinkThrowsAndGoesOn) {
  FailingSink sink;
  Logger logger(&sink);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(logger.Log(LogLevel::kInfo, {.at = kNoon, .text = "one"}));
  EXPECT_NO_THROW(logger.Log(LogLevel::kInfo, {.at = kNoon + absl::Seconds(9), .text = "two"}));
  EXPECT_NO_THROW(logger.Log(LogLevel::kInfo, {.at = kNoon + absl::Seconds(10), .text = "three"}));
  EXPECT_NO_THROW(logger.Log(LogLevel::kInfo, {.at = kNoon + absl::Seconds(10), .text = "four"}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "E1116 12:00:00.000000 a line was not logged: LogSink::Write threw: the disk is full (no more of this site "
            "for 10s)\n"
            "E1116 12:00:10.000000 a line was not logged: LogSink::Write threw: the disk is full (1 lines of this site "
            "were left out) (no more of this site for 10s)\n");
  EXPECT_EQ(sink.lines, Lines({"I1116 12:00:10.000000 four"}));
}

}  // namespace
}  // namespace fraktor
