// SimLog: what happened in a simulation of the stores, line by line, and what was wrong.
//
// Thread safety: any thread may call Note; the others are for the simulation's thread.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_SIM_LOG_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_SIM_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// Equal for equal runs: absl::Status::ToString gives the payloads in any order.
inline std::string StatusText(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", std::string(status.message()));
}

class SimLog {
 public:
  void Note(std::string_view what) { Note({}, what); }
  // About one persistence id.
  void Note(std::string_view id, std::string_view what);
  void Violate(std::string_view id, std::string_view what);

  bool has_violations() const { return !violations_.empty(); }
  const std::vector<std::string>& violations() const { return violations_; }
  // The first violations, the lines about the id of the first one, and so many last lines before
  // it.
  std::string Report(size_t last_lines = 60) const;
  // The first line in which the logs differ, from both.
  std::string FirstDifference(const SimLog& other) const;
  // Equal for equal runs.
  uint64_t digest() const {
    MutexLock lock(mutex_);
    return digest_;
  }

 private:
  struct Line {
    std::string id;
    std::string what;
    std::string ToString() const { return id.empty() ? what : id + ": " + what; }
  };

  mutable Mutex mutex_;
  std::vector<Line> lines_ ABSL_GUARDED_BY(mutex_);
  uint64_t digest_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> violations_;
  // Where the first violation is in the lines.
  std::string violated_id_;
  size_t violated_at_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_SIM_LOG_H_
