// ReplayFilter: finds events in a replay that cannot be right.
//
//   ReplayFilter filter({.mode = ReplayFilterMode::kRepairByDiscardOld});
//   filter.StartAfter(snapshot.metadata.sequence_nr);
//   for (const StoredEvent& event : batch) {
//     const ReplayFilter::Verdict verdict = filter.Judge(event);
//     ...
//
// Replaced writers. A writer is replaced when an event of another writer follows. Events that the
// replaced one writes later are those of a zombie, unless their epoch is higher than all before:
// that writer has opened the journal since, under the same id. Events without a writer pass. A
// journal that fences its writers (see JournalStorage::OpenWriter) has no such events. They come
// from journals that were written to without opening, and from imports.
//
// Numbers. They rise from event to event, with gaps (see JournalStorage::Write). An event that
// comes twice is a fault of the storage, and can be left out. An event that comes after one with a
// higher number is a fault too, which nobody can repair: the later event is applied already.
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
  // Such events are left out, and a warning is logged. One that is out of order fails the recovery.
  kRepairByDiscardOld,
  kFail,  // The recovery fails.
  kWarn,  // Such events pass, and a warning is logged.
  kOff,
};

struct ReplayFilterOptions {
  ReplayFilterMode mode = ReplayFilterMode::kRepairByDiscardOld;
  // How many replaced writers are remembered: the latest.
  size_t max_old_writers = 10;
};

class ReplayFilter {
 public:
  enum class Verdict : uint8_t { kPass, kPassWithWarning, kDiscard, kFail };

  explicit ReplayFilter(const ReplayFilterOptions& options) : options_(options) {}

  // The replay begins after this number.
  void StartAfter(uint64_t sequence_nr) { last_sequence_nr_ = sequence_nr; }

  Verdict Judge(const StoredEvent& event) {
    // The usual case: the next number, by the same writer as before.
    if (event.sequence_nr == last_sequence_nr_ + 1 && event.writer == current_ && event.epoch == epoch_) {
      last_sequence_nr_ = event.sequence_nr;
      return Verdict::kPass;
    }
    return JudgeAnother(event);
  }

  // The number of the last event of the replay, or the one that it begins after.
  uint64_t last_sequence_nr() const { return last_sequence_nr_; }

  // About the event that was judged last, if it did not simply pass: what is wrong with it.
  std::string Describe(const StoredEvent& event) const;
  absl::Status ErrorOf(const StoredEvent& event) const;

 private:
  enum class Fault : uint8_t { kReplacedWriter, kRepeated, kOutOfOrder };
  struct Gap {
    uint64_t first;
    uint64_t last;
  };

  Verdict JudgeAnother(const StoredEvent& event);
  bool IsOfReplacedWriter(const StoredEvent& event);
  // Whether the number was in the replay. Not if it is in a gap, or if there were too many gaps to
  // remember.
  bool WasSeen(uint64_t sequence_nr) const;
  Verdict VerdictOf(Fault fault);
  std::string WhatIsWrong(const StoredEvent& event) const;

  ReplayFilterOptions options_;
  uint64_t last_sequence_nr_ = 0;
  std::vector<Gap> gaps_;
  bool has_more_gaps_ = false;
  WriterId current_;
  uint64_t epoch_ = 0;                 // the highest so far
  std::vector<WriterId> old_writers_;  // the latest last
  Fault fault_ = Fault::kReplacedWriter;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_REPLAY_FILTER_H_
