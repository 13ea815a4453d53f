#include "fraktor/persistence/testing/simulation/sim_log.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {
namespace {

constexpr size_t kMaxViolations = 10;
constexpr size_t kLinesOfId = 200;

uint64_t HashOf(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = MixBits(hash + static_cast<unsigned char>(c) + 0x9e3779b97f4a7c15);
  return hash;
}

}  // namespace

void SimLog::Note(std::string_view id, std::string_view what) {
  MutexLock lock(mutex_);
  digest_ = HashOf(HashOf(digest_, id), what);
  lines_.push_back({std::string(id), std::string(what)});
}

void SimLog::Violate(std::string_view id, std::string_view what) {
  Note(id, absl::StrCat("VIOLATION: ", std::string(what)));
  MutexLock lock(mutex_);
  if (violations_.empty()) {
    violated_id_ = std::string(id);
    violated_at_ = lines_.size();
  }
  if (violations_.size() < kMaxViolations) {
    violations_.push_back(absl::StrCat(std::string(id), id.empty() ? "" : ": ", std::string(what)));
  }
}

std::string SimLog::Report(size_t last_lines) const {
  MutexLock lock(mutex_);
  std::string report;
  for (const std::string& violation : violations_) absl::StrAppend(&report, "  ", violation, "\n");
  const size_t end = std::min(lines_.size(), violated_at_ + 5);
  const auto print = [&report, this](size_t i) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const Line& line = lines_[i];
    absl::StrAppend(&report, "  ", i, ": ", line.id, line.id.empty() ? "" : ": ", line.what, "\n");
  };
  if (!violated_id_.empty()) {
    absl::StrAppend(&report, "what concerned ", violated_id_, ", and crashes:\n");
    std::string text;
    size_t printed = 0;
    size_t first = 0;
    for (size_t i = end; i > 0 && printed < kLinesOfId; --i) {
      if (lines_[i - 1].id == violated_id_ || lines_[i - 1].what.find("crash") != std::string::npos) ++printed;
      first = i - 1;
    }
    for (size_t i = first; i < end; ++i) {
      if (lines_[i].id == violated_id_ || lines_[i].what.find("crash") != std::string::npos) print(i);
    }
  }
  absl::StrAppend(&report, "the last lines:\n");
  for (size_t i = end > last_lines ? end - last_lines : 0; i < end; ++i) print(i);
  return report;
}

std::string SimLog::FirstDifference(const SimLog& other) const {
  const auto copy = [](const SimLog& log) {
    MutexLock lock(log.mutex_);
    return log.lines_;
  };
  const std::vector<Line> lines = copy(*this);
  const std::vector<Line> others = copy(other);
  const auto text = [](const std::vector<Line>& of, size_t i) { return i < of.size() ? of[i].ToString() : "the end"; };
  for (size_t i = 0; i < std::max(lines.size(), others.size()); ++i) {
    if (text(lines, i) != text(others, i)) {
      return absl::StrCat("line ", i, ": ", text(lines, i), "\nhere is ", text(others, i));
    }
  }
  return "no difference";
}

}  // namespace fraktor::inline v0
