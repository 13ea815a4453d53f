#include "fraktor/actor/testkit/internal/test_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::testkit_internal {

std::string TestLogSink::Line::Format() const {
  return FormatLogRecord({.level = level, .at = at, .path = path, .type = type, .text = text});
}

void TestLogSink::Write(const LogRecord& record) {
  Line line{record.level, record.at, std::string(record.path), std::string(record.type), std::string(record.text)};
  {
    MutexLock lock(mutex_);
    ++written_;
    lines_.push_back(std::move(line));
    if (lines_.size() > kKept) lines_.pop_front();
  }
  monitor_.NotifyChanged();
}

uint64_t TestLogSink::written() const {
  MutexLock lock(mutex_);
  return written_;
}

std::vector<std::string> TestLogSink::Find(uint64_t first, const LogFilter& filter) const {
  std::vector<std::string> found;
  MutexLock lock(mutex_);
  const uint64_t forgotten = written_ - lines_.size();
  for (size_t i = static_cast<size_t>(first - std::min(first, forgotten)); i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    if (line.level >= filter.level && line.text.find(filter.contains) != std::string::npos &&
        line.path.ends_with(filter.path)) {
      found.push_back(line.Format());
    }
  }
  return found;
}

std::string TestLogSink::Tail(size_t lines) const {
  std::string text;
  MutexLock lock(mutex_);
  for (size_t i = lines_.size() - std::min(lines, lines_.size()); i < lines_.size(); ++i) {
    absl::StrAppend(&text, "\n  ", lines_[i].Format());
  }
  return text;
}

}  // namespace fraktor::inline v0::testkit_internal
