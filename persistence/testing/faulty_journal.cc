#include "fraktor/persistence/testing/faulty_journal.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/testing/fault_dice.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// Puts the rejections of a faulty journal back among the results of the others.
WriteResults Merge(WriteResults stored, WriteResults rejected) {
  size_t next = 0;
  for (absl::Status& result : rejected) {
    if (!result.ok()) continue;
    if (!stored.empty()) result = std::move(stored[next]);
    ++next;
  }
  return rejected;
}

}  // namespace

absl::Status JournalFaults::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("JournalFaults::fail_write", fail_write));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("JournalFaults::lose_answer", lose_answer));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("JournalFaults::reject_write", reject_write));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("JournalFaults::fail_open", fail_open));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("JournalFaults::fail_delete", fail_delete));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("JournalFaults::fail_read", fail_read));
  return CheckDelays("JournalFaults", min_delay, max_delay);
}

FaultyJournal::FaultyJournal(JournalStorage& journal, RuntimeToolbox& toolbox, Executor& executor,
                             const JournalFaults& faults, uint64_t random_stream)
    : journal_(journal), dice_("faulty journal", toolbox, executor, faults, random_stream) {}

FaultyJournal::Counts FaultyJournal::counts() const {
  const auto counts = dice_.counts();
  MutexLock lock(mutex_);
  return {.failed = counts.failed, .rejected = rejected_, .answers_lost = counts.answers_lost};
}

Future<WriterOpened> FaultyJournal::OpenWriter(std::string persistence_id, std::optional<uint64_t> token) {
  const auto fate = dice_.Draw(&JournalFaults::fail_open, true, absl::StrCat("open \"", persistence_id, "\""));
  return dice_.Answer<WriterOpened>(fate, [&] { return journal_.OpenWriter(std::move(persistence_id), token); });
}

Future<WriteResults> FaultyJournal::Write(std::vector<AtomicWrite> writes) {
  WriteResults rejected(writes.size());
  size_t rejections = 0;
  for (size_t i = 0; i < writes.size(); ++i) {
    if (!dice_.Happens(&JournalFaults::reject_write)) continue;
    ++rejections;
    rejected[i] = EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, writes[i].persistence_id(),
                             writes[i].lowest_sequence_nr(), "rejected by the faulty journal");
  }
  const auto fate = dice_.Draw(&JournalFaults::fail_write, true, "write");
  return dice_.Answer<WriteResults>(fate, [&] {
    if (rejections == 0) return journal_.Write(std::move(writes));
    {
      MutexLock lock(mutex_);
      rejected_ += rejections;
    }
    std::vector<AtomicWrite> others;
    for (size_t i = 0; i < writes.size(); ++i) {
      if (rejected[i].ok()) others.push_back(std::move(writes[i]));
    }
    return journal_.Write(std::move(others)).Map([rejected = std::move(rejected)](WriteResults stored) mutable {
      return Merge(std::move(stored), std::move(rejected));
    });
  });
}

Future<EventBatch> FaultyJournal::Replay(ReplayPage page) {
  const auto fate =
      dice_.Draw(&JournalFaults::fail_read, false, absl::StrCat("replay of \"", page.persistence_id, "\""));
  return dice_.Answer<EventBatch>(fate, [&] { return journal_.Replay(std::move(page)); });
}

Future<uint64_t> FaultyJournal::HighestSequenceNr(std::string persistence_id) {
  const auto fate =
      dice_.Draw(&JournalFaults::fail_read, false, absl::StrCat("highest number of \"", persistence_id, "\""));
  return dice_.Answer<uint64_t>(fate, [&] { return journal_.HighestSequenceNr(std::move(persistence_id)); });
}

Future<void> FaultyJournal::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr, uint64_t epoch) {
  const auto fate = dice_.Draw(&JournalFaults::fail_delete, true, absl::StrCat("deletion of \"", persistence_id, "\""));
  return dice_.Answer<void>(fate, [&] { return journal_.DeleteTo(std::move(persistence_id), to_sequence_nr, epoch); });
}

Future<EventBatch> FaultyJournal::EventsByTag(TagPage page) {
  const auto fate = dice_.Draw(&JournalFaults::fail_read, false, absl::StrCat("events of tag \"", page.tag, "\""));
  return dice_.Answer<EventBatch>(fate, [&] { return journal_.EventsByTag(std::move(page)); });
}

Future<IdBatch> FaultyJournal::PersistenceIds(IdPage page) {
  const auto fate = dice_.Draw(&JournalFaults::fail_read, false, "list of ids");
  return dice_.Answer<IdBatch>(fate, [&] { return journal_.PersistenceIds(page); });
}

Future<uint64_t> FaultyJournal::AwaitAdvance(JournalSubject subject, uint64_t after) {
  return journal_.AwaitAdvance(std::move(subject), after);
}

Future<void> FaultyJournal::Close() { return journal_.Close(); }

}  // namespace fraktor::inline v0
