#include "fraktor/persistence/testing/faulty_journal.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/testing/late_answer.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
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

FaultyJournal::FaultyJournal(JournalStorage& journal, RuntimeToolbox& toolbox, Executor& executor,
                             const JournalFaults& faults, uint64_t random_stream)
    : journal_(journal),
      toolbox_(toolbox),
      executor_(executor),
      faults_(faults),
      random_(toolbox.MakeRandom(random_stream)) {}

void FaultyJournal::SetFaults(const JournalFaults& faults) {
  MutexLock lock(mutex_);
  faults_ = faults;
}

FaultyJournal::Counts FaultyJournal::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

FaultyJournal::Fate FaultyJournal::Draw(double JournalFaults::*failure, bool stores, std::string_view what) {
  MutexLock lock(mutex_);
  Fate fate;
  // As many draws for each request, so that one fault does not change the others.
  const bool fails = random_.Bernoulli(faults_.*failure);
  const bool loses = random_.Bernoulli(faults_.lose_answer);
  fate.delay = random_.UniformDuration(faults_.min_delay, faults_.max_delay);
  if (stores && faults_.disk_full) {
    fate.failure = MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                             absl::StrCat(ToAbsl(what), ": the disk is full, says the faulty journal"));
  } else if (fails) {
    fate.failure = MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo,
                             absl::StrCat(ToAbsl(what), ": the faulty journal fails"));
  } else if (stores && loses) {
    fate.lost_answer = MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo,
                                 absl::StrCat(ToAbsl(what), ": the faulty journal has lost the answer"));
  }
  if (!fate.failure.ok()) ++counts_.failed;
  if (!fate.lost_answer.ok()) ++counts_.answers_lost;
  return fate;
}

template <class T>
Future<T> FaultyJournal::Late(Future<T> answer, const Fate& fate) {
  if constexpr (std::is_void_v<T>) {
    return testing_internal::AnswerLateStatus(&toolbox_, std::move(answer), fate.delay, fate.lost_answer)
        .Start(executor_);
  } else {
    return testing_internal::AnswerLate<T>(&toolbox_, std::move(answer), fate.delay, fate.lost_answer).Start(executor_);
  }
}

Future<WriterOpened> FaultyJournal::OpenWriter(std::string persistence_id, std::optional<uint64_t> token) {
  const Fate fate = Draw(&JournalFaults::fail_open, true, absl::StrCat("open \"", persistence_id, "\""));
  if (!fate.failure.ok()) return Late(MakeReadyFuture<WriterOpened>(fate.failure), fate);
  return Late(journal_.OpenWriter(std::move(persistence_id), token), fate);
}

Future<WriteResults> FaultyJournal::Write(std::vector<AtomicWrite> writes) {
  WriteResults rejected(writes.size());
  size_t rejections = 0;
  {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < writes.size(); ++i) {
      if (!random_.Bernoulli(faults_.reject_write)) continue;
      ++rejections;
      rejected[i] =
          EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, writes[i].persistence_id(),
                     writes[i].lowest_sequence_nr(), "rejected by the faulty journal");
    }
  }
  const Fate fate = Draw(&JournalFaults::fail_write, true, "write");
  if (!fate.failure.ok()) return Late(MakeReadyFuture<WriteResults>(fate.failure), fate);
  if (rejections == 0) return Late(journal_.Write(std::move(writes)), fate);
  {
    MutexLock lock(mutex_);
    counts_.rejected += rejections;
  }
  std::vector<AtomicWrite> others;
  for (size_t i = 0; i < writes.size(); ++i) {
    if (rejected[i].ok()) others.push_back(std::move(writes[i]));
  }
  return Late(journal_.Write(std::move(others)).Map([rejected = std::move(rejected)](WriteResults stored) mutable {
    return Merge(std::move(stored), std::move(rejected));
  }),
              fate);
}

Future<EventBatch> FaultyJournal::Replay(ReplayPage page) {
  const Fate fate = Draw(&JournalFaults::fail_read, false, absl::StrCat("replay of \"", page.persistence_id, "\""));
  if (!fate.failure.ok()) return Late(MakeReadyFuture<EventBatch>(fate.failure), fate);
  return Late(journal_.Replay(std::move(page)), fate);
}

Future<uint64_t> FaultyJournal::HighestSequenceNr(std::string persistence_id) {
  const Fate fate = Draw(&JournalFaults::fail_read, false, absl::StrCat("highest number of \"", persistence_id, "\""));
  if (!fate.failure.ok()) return Late(MakeReadyFuture<uint64_t>(fate.failure), fate);
  return Late(journal_.HighestSequenceNr(std::move(persistence_id)), fate);
}

Future<void> FaultyJournal::DeleteTo(std::string persistence_id, uint64_t to_sequence_nr) {
  const Fate fate = Draw(&JournalFaults::fail_delete, true, absl::StrCat("deletion of \"", persistence_id, "\""));
  if (!fate.failure.ok()) return Late(MakeReadyFuture<void>(fate.failure), fate);
  return Late(journal_.DeleteTo(std::move(persistence_id), to_sequence_nr), fate);
}

Future<EventBatch> FaultyJournal::EventsByTag(TagPage page) {
  const Fate fate = Draw(&JournalFaults::fail_read, false, absl::StrCat("events of tag \"", page.tag, "\""));
  if (!fate.failure.ok()) return Late(MakeReadyFuture<EventBatch>(fate.failure), fate);
  return Late(journal_.EventsByTag(std::move(page)), fate);
}

Future<IdBatch> FaultyJournal::PersistenceIds(IdPage page) {
  const Fate fate = Draw(&JournalFaults::fail_read, false, "list of ids");
  if (!fate.failure.ok()) return Late(MakeReadyFuture<IdBatch>(fate.failure), fate);
  return Late(journal_.PersistenceIds(page), fate);
}

Future<uint64_t> FaultyJournal::AwaitAdvance(JournalSubject subject, uint64_t after) {
  return journal_.AwaitAdvance(std::move(subject), after);
}

Future<void> FaultyJournal::Close() { return journal_.Close(); }

}  // namespace fraktor::inline v0
