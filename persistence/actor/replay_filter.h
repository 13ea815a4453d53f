// ReplayFilter: finds events in a replay that a writer has written after another one had taken its place.
//
//   ReplayFilter filter({.mode = ReplayFilterMode::kRepairByDiscardOld});
//   for (const StoredEvent& event : batch) {
//     const ReplayFilter::Verdict verdict = filter.Judge(event);
//     ...
//
// A journal that fences its writers (see JournalStorage::OpenWriter) has no such events. They come from journals that
// were written to without opening, and from imports.
//
// Numbers in a journal are unique and rise, so a writer has been replaced when an event of another one follows; what it
// writes later is what a zombie has written. Unless its epoch is higher than all before: who has opened the journal since
// is no zombie, whatever his id. Events without a writer are nobody's, and pass.
//
// Thread safety: a value with one owner.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_REPLAY_FILTER_H_
#define FRAKTOR_PERSISTENCE_ACTOR_REPLAY_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/persistent_repr.h"

namespace fraktor::inline v0 {

enum class ReplayFilterMode : uint8_t {
  kRepairByDiscardOld,  // They are left out, and a warning is logged.
  kFail,                // The recovery fails.
  kWarn,                // They pass, and a warning is logged.
  kOff,
};

struct ReplayFilterOptions {
  ReplayFilterMode mode = ReplayFilterMode::kRepairByDiscardOld;
  // So many replaced writers are remembered, the latest.
  size_t max_old_writers = 10;
};

class ReplayFilter {
 public:
  enum class Verdict : uint8_t { kPass, kPassWithWarning, kDiscard, kFail };

  explicit ReplayFilter(const ReplayFilterOptions& options) : options_(options) {}

  Verdict Judge(const StoredEvent& event) {
    // The usual case: the same writer as before.
    if ((event.writer == current_ && event.epoch == epoch_) || options_.mode == ReplayFilterMode::kOff) {
      return Verdict::kPass;
    }
    return JudgeAnother(event);
  }

  // About an event that did not simply pass: what is wrong with it.
  std::string Describe(const StoredEvent& event) const;
  absl::Status ErrorOf(const StoredEvent& event) const;

 private:
  Verdict JudgeAnother(const StoredEvent& event);

  ReplayFilterOptions options_;
  WriterId current_;
  uint64_t epoch_ = 0;                 // the highest so far
  std::vector<WriterId> old_writers_;  // the latest last
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_REPLAY_FILTER_H_
