// TestLogSink: keeps the log of a system under test. Tests expect lines, and failures show the last
// ones.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_TESTKIT_INTERNAL_TEST_LOG_H_
#define FRAKTOR_ACTOR_TESTKIT_INTERNAL_TEST_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/testkit/internal/test_monitor.h"
#include "fraktor/actor/testkit/log_filter.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::testkit_internal {

class TestLogSink final : public LogSink {
 public:
  // How many lines are kept.
  static constexpr size_t kKept = 4096;

  explicit TestLogSink(TestMonitor& monitor) : monitor_(monitor) {}

  void Write(const LogRecord& record) override;

  // The number of lines so far.
  uint64_t written() const;
  // The matching lines from number `first` on, as they would be printed.
  std::vector<std::string> Find(uint64_t first, const LogFilter& filter) const;
  // The last lines, one per line, indented; empty if there are none.
  std::string Tail(size_t lines) const;

 private:
  struct Line {
    LogLevel level;
    absl::Time at;
    std::string path;
    std::string type;
    std::string text;

    std::string Format() const;
  };

  TestMonitor& monitor_;
  mutable Mutex mutex_;
  uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Line> lines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0::testkit_internal

#endif  // FRAKTOR_ACTOR_TESTKIT_INTERNAL_TEST_LOG_H_
