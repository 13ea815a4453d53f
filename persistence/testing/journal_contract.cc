#include "fraktor/persistence/testing/journal_contract.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/replay_cursor.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

using Numbers = std::vector<uint64_t>;
using Texts = std::vector<std::string>;

testing::AssertionResult IsKind(const absl::Status& status, JournalErrorKind kind) {
  if (ErrorKindOf<JournalErrorKind>(status) == kind) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected " << JournalErrorKindName(kind) << ", got " << status;
}

// `count` atomic writes, answered with no result or with one for each that is OK: both say so.
testing::AssertionResult AllAreStored(const absl::StatusOr<WriteResults>& results, size_t count = 1) {
  absl::Status status = results.status();
  if (status.ok()) status = CheckWriteResults(*results, count);
  for (size_t i = 0; status.ok() && i < results->size(); ++i) status = (*results)[i];
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status;
}

Numbers From(uint64_t from, uint64_t to) {
  Numbers numbers;
  for (uint64_t number = from; number <= to; ++number) numbers.push_back(number);
  return numbers;
}

}  // namespace

std::string JournalContractName(const testing::TestParamInfo<JournalContractParameter>& info) {
  return info.param.name;
}

PersistentRepr JournalContract::Event(const std::string& id, uint64_t sequence_nr, uint64_t epoch) const {
  PersistentRepr event;
  event.persistence_id = id;
  event.sequence_nr = sequence_nr;
  event.epoch = epoch;
  event.writer = {7, epoch + 1};
  event.timestamp = absl::FromUnixNanos(1'700'000'000'000'000'000 + static_cast<int64_t>(sequence_nr));
  event.manifest = "event";
  event.payload = absl::StrCat(id, "/", sequence_nr);
  return event;
}

std::vector<AtomicWrite> JournalContract::Writes(const std::string& id, uint64_t from, uint64_t to,
                                                 uint64_t epoch) const {
  std::vector<AtomicWrite> writes;
  for (uint64_t number = from; number <= to; ++number) {
    writes.push_back(AtomicWrite::Make(Event(id, number, epoch)).value());
  }
  return writes;
}

absl::Status JournalContract::Write(const PersistentRepr& event) {
  AtomicWrite::Events events;
  events.push_back(event);
  return WriteTogether(std::move(events));
}

absl::Status JournalContract::WriteTogether(AtomicWrite::Events events) {
  absl::StatusOr<AtomicWrite> write = AtomicWrite::Make(std::move(events));
  if (!write.ok()) return write.status();
  std::vector<AtomicWrite> writes;
  writes.push_back(*std::move(write));
  const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
  if (!results.ok()) return results.status();
  const absl::Status counted = CheckWriteResults(*results, 1);
  if (!counted.ok()) return counted;
  return results->empty() ? absl::OkStatus() : results->front();
}

void JournalContract::Fill(const std::string& id, uint64_t from, uint64_t to, uint64_t epoch) {
  const absl::StatusOr<WriteResults> results = Await(storage().Write(Writes(id, from, to, epoch)));
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_TRUE(CheckWriteResults(*results, to - from + 1).ok());
  for (const absl::Status& result : *results) ASSERT_TRUE(result.ok()) << result;
}

std::vector<uint64_t> JournalContract::Replay(const std::string& id, uint64_t from, uint64_t to, uint64_t max,
                                              PageLimits limits) {
  Numbers numbers;
  ReplayCursor cursor({.persistence_id = id, .from_sequence_nr = from, .to_sequence_nr = to, .max_events = max});
  while (!cursor.done()) {
    const ReplayPage page = cursor.NextPage(limits);
    const absl::StatusOr<EventBatch> batch = Await(storage().Replay(page));
    if (!batch.ok()) {
      ADD_FAILURE() << batch.status();
      return numbers;
    }
    EXPECT_LE(batch->size(), page.limits.max_events);
    for (const StoredEvent& event : *batch) {
      EXPECT_EQ(event.persistence_id, id);
      EXPECT_EQ(event.payload, absl::StrCat(id, "/", event.sequence_nr));
      numbers.push_back(event.sequence_nr);
    }
    cursor.Advance(*batch);
  }
  return numbers;
}

std::vector<PersistentRepr> JournalContract::ReplayEvents(const std::string& id) {
  std::vector<PersistentRepr> events;
  const absl::StatusOr<EventBatch> batch = Await(storage().Replay({.persistence_id = id}));
  EXPECT_TRUE(batch.ok()) << batch.status();
  if (batch.ok()) {
    for (const StoredEvent& event : *batch) events.push_back(event.ToRepr());
  }
  return events;
}

uint64_t JournalContract::Highest(const std::string& id) {
  const absl::StatusOr<uint64_t> highest = Await(storage().HighestSequenceNr(id));
  EXPECT_TRUE(highest.ok()) << highest.status();
  return highest.value_or(kMax);
}

absl::Status JournalContract::DeleteTo(const std::string& id, uint64_t to, uint64_t epoch) {
  return Await(storage().DeleteTo(id, to, epoch));
}

std::vector<std::string> JournalContract::Tagged(const std::string& tag, uint64_t from_offset, PageLimits limits) {
  Texts found;
  uint64_t last = 0;
  for (TagPage page{.tag = tag, .from_offset = from_offset, .limits = limits};;) {
    const absl::StatusOr<EventBatch> batch = Await(storage().EventsByTag(page));
    if (!batch.ok()) {
      ADD_FAILURE() << batch.status();
      return found;
    }
    EXPECT_LE(batch->size(), limits.max_events);
    for (const StoredEvent& event : *batch) {
      EXPECT_GT(event.offset, last);
      last = event.offset;
      found.push_back(absl::StrCat(std::string(event.persistence_id), "/", event.sequence_nr));
    }
    if (batch->at_end()) return found;
    EXPECT_GT(batch->resume_at(), page.from_offset);
    page.from_offset = batch->resume_at();
  }
}

std::vector<std::string> JournalContract::Ids(size_t page_size) {
  Texts found;
  for (IdPage page{.max_ids = page_size};;) {
    const absl::StatusOr<IdBatch> batch = Await(storage().PersistenceIds(page));
    if (!batch.ok()) {
      ADD_FAILURE() << batch.status();
      return found;
    }
    EXPECT_LE(batch->ids.size(), page_size);
    found.insert(found.end(), batch->ids.begin(), batch->ids.end());
    if (batch->at_end) return found;
    EXPECT_GT(batch->resume_at, page.from_offset);
    page.from_offset = batch->resume_at;
  }
}

std::vector<std::string> JournalContract::ManyIds(size_t limit) const {
  Texts ids;
  for (size_t i = 0; i < std::min(GetParam().many_ids, limit); ++i) ids.push_back(absl::StrCat("many-", i));
  return ids;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(JournalContract);

// P1: results are in the order of the writes; the journal actor makes its answers of them.
TEST_P(JournalContract, AnswersOncePerAtomicWriteInOrder) {
  std::vector<AtomicWrite> writes = Writes("a", 1, 3);
  writes.push_back(AtomicWrite::Make(Event("b", 1, 9)).value());
  writes.push_back(AtomicWrite::Make(Event("a", 4)).value());
  const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 5u);
  for (const size_t i : {0, 1, 2, 4}) EXPECT_TRUE((*results)[i].ok()) << (*results)[i];
  EXPECT_TRUE(IsKind((*results)[3], JournalErrorKind::kNotOpen));
  EXPECT_EQ(Replay("a"), From(1, 4));
}

// PER-3, P2 to P10, P27
TEST_P(JournalContract, HonoursTheBoundsOfAReplay) {
  Fill("a", 1, 5);
  EXPECT_EQ(Replay("a", 1, kMax), From(1, 5));     // P2
  EXPECT_EQ(Replay("a", 3, kMax), From(3, 5));     // P3
  EXPECT_EQ(Replay("a", 1, 3), From(1, 3));        // P4
  EXPECT_EQ(Replay("a", 1, kMax, 3), From(1, 3));  // P5
  EXPECT_EQ(Replay("a", 2, 3), From(2, 3));        // P6
  EXPECT_EQ(Replay("a", 2, 5, 2), From(2, 3));     // P7
  EXPECT_EQ(Replay("a", 2, 2), Numbers{2});        // P8
  EXPECT_EQ(Replay("a", 2, 4, 1), Numbers{2});     // P9
  EXPECT_EQ(Replay("a", 1, kMax, 0), Numbers());   // P10
  EXPECT_EQ(Replay("a", 1, 0), Numbers());         // P27
  EXPECT_EQ(Replay("a", 0, 2), From(1, 2));
  EXPECT_EQ(Replay("a", 6, kMax), Numbers());
  EXPECT_EQ(Replay("a", 4, 3), Numbers());
  EXPECT_EQ(Replay("a", kMax, kMax), Numbers());
  EXPECT_EQ(Highest("a"), 5u);
}

// PER-3
TEST_P(JournalContract, GivesNoMoreThanAPageAtATime) {
  Fill("a", 1, 25);
  for (const size_t size : {1, 2, 5, 24, 25, 26}) {
    EXPECT_EQ(Replay("a", 1, kMax, kMax, {.max_events = size}), From(1, 25)) << size;
  }
  // Bytes count as well, but one event always fits.
  const absl::StatusOr<EventBatch> small =
      Await(storage().Replay({.persistence_id = "a", .limits = {.max_events = 100, .max_bytes = 1}}));
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->size(), 1u);
  EXPECT_FALSE(small->at_end());
  EXPECT_EQ(small->resume_at(), 2u);
  EXPECT_EQ(Replay("a", 1, kMax, kMax, {.max_events = 100, .max_bytes = 1}), From(1, 25));
  const absl::StatusOr<EventBatch> all = Await(storage().Replay({.persistence_id = "a"}));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->at_end());
}

// PER-3, P12
TEST_P(JournalContract, KnowsNothingOfAnUnknownId) {
  Fill("a", 1, 2);
  EXPECT_EQ(Replay("b"), Numbers());
  EXPECT_EQ(Highest("b"), 0u);
  EXPECT_TRUE(DeleteTo("b", 10).ok());
  EXPECT_EQ(Highest("b"), 0u);
  EXPECT_EQ(Ids(), Texts{"a"});
}

// PER-3, P13, P14, P16, P18, P22
TEST_P(JournalContract, DeletesUpToAndIncluding) {
  Fill("a", 1, 5);
  ASSERT_TRUE(DeleteTo("a", 3).ok());
  EXPECT_EQ(Replay("a"), From(4, 5));        // P13
  EXPECT_EQ(Highest("a"), 5u);               // P14
  EXPECT_EQ(Replay("a", 3), From(4, 5));     // P16
  EXPECT_EQ(Replay("a", 4), From(4, 5));     // P18
  EXPECT_EQ(Replay("a", 1, 4), Numbers{4});  // P22
  EXPECT_EQ(Replay("a", 1, kMax, 1), Numbers{4});
  // Again, and less than before: nothing comes back.
  ASSERT_TRUE(DeleteTo("a", 3).ok());
  ASSERT_TRUE(DeleteTo("a", 1).ok());
  ASSERT_TRUE(DeleteTo("a", 0).ok());
  EXPECT_EQ(Replay("a"), From(4, 5));
}

// PER-3, P15
TEST_P(JournalContract, KeepsTheHighestNumberWhenAllIsDeleted) {
  Fill("a", 1, 5);
  ASSERT_TRUE(DeleteTo("a", kMax).ok());
  EXPECT_EQ(Replay("a"), Numbers());
  EXPECT_EQ(Highest("a"), 5u);
  if (GetParam().survives_reopen) {
    ASSERT_TRUE(Reopen().ok());
    EXPECT_EQ(Highest("a"), 5u);
    EXPECT_EQ(Replay("a"), Numbers());
  }
  // It goes on after it, and what is new is there.
  EXPECT_TRUE(IsKind(Write(Event("a", 5)), JournalErrorKind::kSequenceMismatch));
  Fill("a", 6, 7);
  EXPECT_EQ(Replay("a"), From(6, 7));
  EXPECT_EQ(Ids(), Texts{"a"});
}

// PER-3: also for a look that comes while the deletion is under way.
TEST_P(JournalContract, KnowsTheHighestNumberWhileAllIsBeingDeleted) {
  size_t wrong = 0;
  for (int round = 0; round < 200; ++round) {
    const std::string id = absl::StrCat("id-", round);
    Fill(id, 1, 3);
    Future<void> deletion = storage().DeleteTo(id, kMax, kNoEpoch);
    std::vector<Future<uint64_t>> looks;
    for (int i = 0; i < 30; ++i) looks.push_back(storage().HighestSequenceNr(id));
    for (Future<uint64_t>& look : looks) wrong += Await(std::move(look)).value_or(0) == 3 ? 0 : 1;
    ASSERT_TRUE(Await(std::move(deletion)).ok());
  }
  EXPECT_EQ(wrong, 0u);
}

// PER-3, PER-19: so that a recovery knows what it lacks.
TEST_P(JournalContract, TellsWhoOpensItUpToWhereEventsAreDeleted) {
  uint64_t epoch = kNoEpoch;  // of the id that was opened last
  const auto deleted_to = [&](const std::string& id) {
    const absl::StatusOr<WriterOpened> opened = Await(storage().OpenWriter(id, std::nullopt));
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return kMax;
    epoch = opened->epoch;
    return opened->deleted_to;
  };
  Fill("a", 1, 5);
  Fill("b", 1, 5);
  EXPECT_EQ(deleted_to("new"), 0u);
  EXPECT_EQ(deleted_to("a"), 0u);
  ASSERT_TRUE(DeleteTo("a", 3, epoch).ok());
  EXPECT_EQ(deleted_to("a"), 3u);
  ASSERT_TRUE(DeleteTo("a", 2, epoch).ok());
  EXPECT_EQ(deleted_to("a"), 3u);
  // Not more than there ever were.
  ASSERT_TRUE(DeleteTo("b", kMax).ok());
  EXPECT_EQ(deleted_to("b"), 5u);
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(deleted_to("a"), 3u);
  EXPECT_EQ(deleted_to("b"), 5u);
}

// A store may have read the next page before it is asked for. Events that the owner deletes between
// two pages are not in the second one; queries go on behind them.
TEST_P(JournalContract, ShowsInTheNextPageWhatTheOwnerHasChangedSinceTheLast) {
  const auto page = [this](uint64_t from) {
    const absl::StatusOr<EventBatch> events = Await(storage().Replay(
        {.persistence_id = "a", .from_sequence_nr = from, .to_sequence_nr = 100, .limits = {.max_events = 10}}));
    EXPECT_TRUE(events.ok()) << events.status();
    Numbers numbers;
    if (events.ok()) {
      for (const StoredEvent& event : *events) numbers.push_back(event.sequence_nr);
    }
    return numbers;
  };
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  Fill("a", 1, 38, 1);
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  EXPECT_EQ(page(1), From(1, 10));
  EXPECT_EQ(page(11), From(11, 20));
  ASSERT_TRUE(DeleteTo("a", 25, 2).ok());
  EXPECT_EQ(page(21), From(26, 35));
  Fill("a", 39, 40, 2);
  EXPECT_EQ(page(36), From(36, 40));
  // Others do not matter, and a page may be asked for again.
  Fill("a", 41, 60, 2);
  EXPECT_EQ(page(36), From(36, 45));
  Fill("b", 1, 3);
  EXPECT_EQ(page(46), From(46, 55));
  EXPECT_EQ(page(46), From(46, 55));
  EXPECT_EQ(page(56), From(56, 60));
}

// PER-19: a recovery sees all events, although the former owner deletes between two pages.
TEST_P(JournalContract, ShowsInTheNextPageWhatAFormerOwnerWantsToDelete) {
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  Fill("a", 1, 50, 1);
  const absl::StatusOr<WriterOpened> recovering = Await(storage().OpenWriter("a", std::nullopt));
  ASSERT_TRUE(recovering.ok()) << recovering.status();
  Numbers replayed;
  ReplayCursor cursor({.persistence_id = "a", .to_sequence_nr = recovering->highest_sequence_nr});
  while (!cursor.done()) {
    const absl::StatusOr<EventBatch> batch = Await(storage().Replay(cursor.NextPage({.max_events = 10})));
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (const StoredEvent& event : *batch) replayed.push_back(event.sequence_nr);
    cursor.Advance(*batch);
    EXPECT_TRUE(IsKind(DeleteTo("a", 45, 1), JournalErrorKind::kFenced));
    EXPECT_TRUE(IsKind(DeleteTo("a", 45), JournalErrorKind::kFenced));
  }
  EXPECT_EQ(replayed, From(1, 50));
}

// PER-20: a live query that begins behind it waits.
TEST_P(JournalContract, GoesOnBehindWhatIsDeletedAfterAnEmptyPage) {
  Fill("a", 1, 5);
  ASSERT_TRUE(DeleteTo("a", 5).ok());
  const absl::StatusOr<EventBatch> empty = Await(storage().Replay({.persistence_id = "a"}));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_TRUE(empty->empty());
  EXPECT_TRUE(empty->at_end());
  EXPECT_EQ(empty->resume_at(), 6u);
  Future<uint64_t> advance = storage().AwaitAdvance(JournalSubject::OfId("a"), empty->resume_at() - 1);
  EXPECT_EQ(Highest("a"), 5u);
  EXPECT_FALSE(advance.IsReady());
  Fill("a", 6, 6);
  EXPECT_EQ(Await(std::move(advance)).value(), 6u);
}

TEST_P(JournalContract, DeletesManyEvents) {
  for (uint64_t from = 1; from <= 3000; from += 500) Fill("a", from, from + 499);
  Fill("b", 1, 3);
  ASSERT_TRUE(DeleteTo("a", 2500).ok());
  EXPECT_EQ(Replay("a"), From(2501, 3000));
  ASSERT_TRUE(DeleteTo("a", 2990).ok());
  EXPECT_EQ(Replay("a"), From(2991, 3000));
  EXPECT_EQ(Replay("b"), From(1, 3));
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Replay("a"), From(2991, 3000));
  EXPECT_EQ(Highest("a"), 3000u);
}

// PER-2
TEST_P(JournalContract, RejectsANumberThatIsNotAboveTheHighest) {
  Fill("a", 1, 5);
  EXPECT_TRUE(IsKind(Write(Event("a", 5).WithPayload("another")), JournalErrorKind::kSequenceMismatch));
  const absl::Status rejected = Write(Event("a", 3).WithPayload("another"));
  EXPECT_TRUE(IsKind(rejected, JournalErrorKind::kSequenceMismatch));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(rejected, "id"), "a");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(rejected, "nr"), 3);
  EXPECT_EQ(Replay("a"), From(1, 5));
  EXPECT_EQ(Highest("a"), 5u);
}

// PER-2: a rejected number is consumed by its writer, so the next write leaves a gap.
TEST_P(JournalContract, TakesNumbersWithGaps) {
  Fill("a", 1, 2);
  Fill("a", 5, 6);
  Fill("a", 100, 100);
  EXPECT_EQ(Replay("a"), (Numbers{1, 2, 5, 6, 100}));
  EXPECT_EQ(Replay("a", 3, 5), Numbers{5});
  EXPECT_EQ(Replay("a", 1, kMax, kMax, {.max_events = 2}), (Numbers{1, 2, 5, 6, 100}));
  EXPECT_EQ(Highest("a"), 100u);
}

// PER-2: a gap is legal; that events of before the gap are missing is not.
TEST_P(JournalContract, RejectsAWriteIfItHasLostWhatTheWriterKnowsToBeStored) {
  const auto write = [this](uint64_t from, uint64_t to, uint64_t known_stored) {
    AtomicWrite::Events events;
    for (uint64_t number = from; number <= to; ++number) events.push_back(Event("a", number));
    AtomicWrite atomic = AtomicWrite::Make(std::move(events)).value();
    atomic.set_known_stored(known_stored);
    std::vector<AtomicWrite> writes;
    writes.push_back(std::move(atomic));
    const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
    if (!results.ok()) return results.status();
    const absl::Status counted = CheckWriteResults(*results, 1);
    if (!counted.ok() || results->empty()) return counted;
    return results->front();
  };
  Fill("a", 1, 5);
  // As of a journal that has had more events: another one was restored in its place.
  const absl::Status lost = write(8, 8, 7);
  EXPECT_TRUE(IsKind(lost, JournalErrorKind::kEventsLost));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(lost, "id"), "a");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(lost, "nr"), 8);
  EXPECT_TRUE(IsKind(write(8, 8, 6), JournalErrorKind::kEventsLost));
  EXPECT_TRUE(IsKind(write(7, 7, 7), JournalErrorKind::kEventsLost));
  EXPECT_EQ(Highest("a"), 5u);
  // The numbers in between were rejected, or their writer says nothing.
  EXPECT_TRUE(write(8, 8, 5).ok());
  EXPECT_TRUE(write(10, 10, 5).ok());
  EXPECT_TRUE(write(12, 12, 0).ok());
  // The journal has lost the write, and the writer sends it again.
  EXPECT_TRUE(write(13, 13, 13).ok());
  EXPECT_TRUE(write(13, 13, 13).ok());
  EXPECT_EQ(Replay("a"), (Numbers{1, 2, 3, 4, 5, 8, 10, 12, 13}));
  // Deleted is not lost.
  ASSERT_TRUE(DeleteTo("a", kMax).ok());
  EXPECT_TRUE(write(14, 14, 13).ok());
  if (GetParam().writes_several_atomically) {
    EXPECT_TRUE(IsKind(write(17, 18, 15), JournalErrorKind::kEventsLost));
    EXPECT_TRUE(write(17, 18, 14).ok());
    EXPECT_TRUE(write(17, 18, 17).ok());
  }
  if (!GetParam().survives_reopen) return;
  const uint64_t highest = Highest("a");
  ASSERT_TRUE(Reopen().ok());
  EXPECT_TRUE(IsKind(write(highest + 2, highest + 2, highest + 1), JournalErrorKind::kEventsLost));
  EXPECT_TRUE(write(highest + 2, highest + 2, highest).ok());
}

// PER-2: the writes before it in the list count as stored.
TEST_P(JournalContract, JudgesWhatIsLostByThoseBeforeItInTheList) {
  Fill("a", 1, 2);
  std::vector<AtomicWrite> writes = Writes("a", 3, 5);
  writes[0].set_known_stored(2);
  writes[1].set_known_stored(3);
  writes[2].set_known_stored(4);
  std::vector<AtomicWrite> later = Writes("a", 8, 9);
  later[0].set_known_stored(6);
  later[1].set_known_stored(8);
  for (AtomicWrite& write : later) writes.push_back(write);
  const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 5u);
  for (const size_t i : {0, 1, 2}) EXPECT_TRUE((*results)[i].ok()) << (*results)[i];
  EXPECT_TRUE(IsKind((*results)[3], JournalErrorKind::kEventsLost));
  EXPECT_TRUE(IsKind((*results)[4], JournalErrorKind::kEventsLost));
  EXPECT_EQ(Replay("a"), From(1, 5));
}

// PER-2, P19
TEST_P(JournalContract, RejectsOneAtomicWriteAndStoresItsNeighbours) {
  std::vector<AtomicWrite> writes;
  writes.push_back(AtomicWrite::Make(Event("a", 1)).value());
  writes.push_back(AtomicWrite::Make(Event("a", 2).WithTags({""})).value());
  writes.push_back(AtomicWrite::Make(Event("a", 3)).value());
  const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 3u);
  EXPECT_TRUE((*results)[0].ok()) << (*results)[0];
  EXPECT_TRUE(IsKind((*results)[1], JournalErrorKind::kInvalid));
  EXPECT_TRUE((*results)[2].ok()) << (*results)[2];
  EXPECT_EQ(Replay("a"), (Numbers{1, 3}));
}

// PER-2
TEST_P(JournalContract, WritesAtOnceAsItWritesOtherwise) {
  Fill("a", 1, 2);
  std::vector<AtomicWrite> writes = Writes("a", 2, 4, 0);
  PersistentRepr other = Event("a", 2, 0);
  other.payload = "another";
  writes[0] = AtomicWrite::Make(other).value();
  absl::StatusOr<WriteResults> results = absl::UnknownError("not set");
  if (!storage().WriteAtOnce(writes, results)) {
    // Then nothing has happened.
    EXPECT_EQ(Replay("a"), From(1, 2));
    return;
  }
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 3u);
  EXPECT_TRUE(IsKind((*results)[0], JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE((*results)[1].ok());
  EXPECT_TRUE((*results)[2].ok());
  EXPECT_EQ(Replay("a"), From(1, 4));
  ASSERT_TRUE(storage().WriteAtOnce(Writes("a", 5, 6, 0), results));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(results->empty());
  EXPECT_EQ(Highest("a"), 6u);
  EXPECT_TRUE(Await(storage().Close()).ok());
  if (storage().WriteAtOnce(Writes("a", 7, 7, 0), results)) {
    EXPECT_TRUE(IsKind(results.status(), JournalErrorKind::kClosed));
  }
}

// PER-2, P23
TEST_P(JournalContract, StoresAnAtomicWriteAsAWholeOrNotAtAll) {
  if (!GetParam().writes_several_atomically) GTEST_SKIP() << "the store writes one event at a time";
  ASSERT_TRUE(WriteTogether({Event("a", 1), Event("a", 2), Event("a", 3)}).ok());
  EXPECT_FALSE(WriteTogether({Event("a", 4), Event("a", 5).WithTags({"x", "x"}), Event("a", 6)}).ok());
  EXPECT_EQ(Replay("a"), From(1, 3));
  EXPECT_EQ(Highest("a"), 3u);
  // Half of it is below the highest.
  EXPECT_TRUE(IsKind(WriteTogether({Event("a", 3), Event("a", 4)}), JournalErrorKind::kSequenceMismatch));
  EXPECT_EQ(Replay("a"), From(1, 3));
  EXPECT_EQ(Tagged("x"), Texts());
}

// PER-14: an answer may be lost on its way from a journal on another node.
TEST_P(JournalContract, TakesAWriteThatIsSentAgainAsASuccess) {
  Fill("a", 1, 3);
  EXPECT_TRUE(Write(Event("a", 3)).ok());
  EXPECT_TRUE(Write(Event("a", 1)).ok());
  // Twice in one list.
  std::vector<AtomicWrite> writes = Writes("a", 4, 4);
  writes.push_back(writes.front());
  const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  for (const absl::Status& result : *results) EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(Replay("a"), From(1, 4));
  // The same number by another writer, or with other bytes, is something else.
  EXPECT_TRUE(IsKind(Write(Event("a", 3).WithWriter({1, 1})), JournalErrorKind::kSequenceMismatch));
  EXPECT_TRUE(IsKind(Write(Event("a", 3).WithMetadata("m")), JournalErrorKind::kSequenceMismatch));
  if (!GetParam().writes_several_atomically) return;
  ASSERT_TRUE(WriteTogether({Event("b", 1), Event("b", 2)}).ok());
  EXPECT_TRUE(WriteTogether({Event("b", 1), Event("b", 2)}).ok());
  EXPECT_TRUE(IsKind(WriteTogether({Event("b", 2), Event("b", 3)}), JournalErrorKind::kSequenceMismatch));
  EXPECT_EQ(Replay("b"), From(1, 2));
}

// PER-2: however many ids one list names.
TEST_P(JournalContract, JudgesEachAtomicWriteByThoseBeforeItInTheList) {
  const Texts ids = ManyIds();
  std::vector<AtomicWrite> writes;
  for (const uint64_t number : {1, 2}) {
    for (const std::string& id : ids) writes.push_back(AtomicWrite::Make(Event(id, number)).value());
  }
  for (const std::string& id : ids) {
    writes.push_back(AtomicWrite::Make(Event(id, 1).WithPayload("another event 1")).value());
  }
  const absl::StatusOr<WriteResults> results = Await(storage().Write(std::move(writes)));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->size(), 3 * ids.size()) << "nothing was rejected";
  size_t overwritten = 0;
  size_t lost = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (results->size() == 3 * ids.size()) {
      ASSERT_TRUE((*results)[i].ok()) << (*results)[i];
      ASSERT_TRUE((*results)[ids.size() + i].ok()) << (*results)[ids.size() + i];
      if (!IsKind((*results)[2 * ids.size() + i], JournalErrorKind::kSequenceMismatch)) ++overwritten;
    }
    if (ReplayEvents(ids[i]) != std::vector<PersistentRepr>{Event(ids[i], 1), Event(ids[i], 2)}) ++lost;
  }
  EXPECT_EQ(overwritten, 0u);
  EXPECT_EQ(lost, 0u);
  EXPECT_TRUE(Ids() == ids) << Ids().size() << " entries in the list of " << ids.size() << " ids";
}

// PER-5, P20, P21
TEST_P(JournalContract, GivesAnEventBackAsItWas) {
  PersistentRepr full = Event("a", 1);
  full.manifest = "deposited";
  full.manifest_version = 3;
  full.payload = std::string("\0\xff\n text", 9);
  full.tags = {"red", std::string("bl\0ue", 5)};
  full.timestamp = absl::FromUnixNanos(-1);
  if (GetParam().keeps_metadata) full.metadata = std::string("m\0", 2);
  const PersistentRepr bare{.persistence_id = "a", .sequence_nr = 2};
  const PersistentRepr large = Event("a", 3).WithPayload(std::string(1'000'000, 'x'));
  for (const PersistentRepr& event : {full, bare, large}) {
    const absl::Status written = Write(event);
    ASSERT_TRUE(written.ok()) << written;
  }
  EXPECT_EQ(ReplayEvents("a"), (std::vector<PersistentRepr>{full, bare, large}));
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(ReplayEvents("a"), (std::vector<PersistentRepr>{full, bare, large}));
}

TEST_P(JournalContract, KeepsIdsApart) {
  const Texts ids = {"a",
                     "ab",
                     "b",
                     std::string("a\0", 2),
                     std::string("a\0\0\0\0\0\0\0\0\0\1", 11),
                     "\xff\xff",
                     "id with blanks",
                     std::string(1000, 'x'),
                     std::string(1000, 'x') + "y"};
  for (const std::string& id : ids) Fill(id, 1, 3);
  ASSERT_TRUE(DeleteTo("a", 2).ok());
  for (const std::string& id : ids) {
    EXPECT_EQ(Replay(id), id == "a" ? Numbers{3} : From(1, 3)) << id;
    EXPECT_EQ(Highest(id), 3u) << id;
  }
  EXPECT_EQ(Ids(), ids);
}

TEST_P(JournalContract, RefusesAnIdThatIsEmptyOrTooLong) {
  const std::string long_id(storage().limits().max_persistence_id_bytes + 1, 'x');
  EXPECT_TRUE(IsKind(Write(Event("", 1)), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Write(Event(long_id, 1)), JournalErrorKind::kTooLarge));
  EXPECT_TRUE(IsKind(Await(storage().OpenWriter("", std::nullopt)).status(), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Await(storage().Replay({})).status(), JournalErrorKind::kInvalid));
  EXPECT_TRUE(IsKind(Await(storage().HighestSequenceNr(long_id)).status(), JournalErrorKind::kTooLarge));
  EXPECT_TRUE(IsKind(DeleteTo("", 1), JournalErrorKind::kInvalid));
  EXPECT_EQ(Ids(), Texts());
}

TEST_P(JournalContract, RejectsAnEventThatIsTooLargeAndNamesIt) {
  const std::string payload(storage().limits().max_event_bytes + 1, 'x');
  Fill("a", 1, 1);
  const absl::Status rejected = Write(Event("a", 2).WithPayload(payload));
  EXPECT_TRUE(IsKind(rejected, JournalErrorKind::kTooLarge));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(rejected, "id"), "a");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(rejected, "nr"), 2);
  Fill("a", 3, 3);
  EXPECT_EQ(Replay("a"), (Numbers{1, 3}));
}

// PER-19
TEST_P(JournalContract, GivesEachWriterAHigherEpoch) {
  const absl::StatusOr<WriterOpened> first = Await(storage().OpenWriter("a", std::nullopt));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->epoch, 1u);
  EXPECT_EQ(first->highest_sequence_nr, 0u);
  Fill("a", 1, 3, 1);
  const absl::StatusOr<WriterOpened> second = Await(storage().OpenWriter("a", std::nullopt));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->epoch, 2u);
  EXPECT_EQ(second->highest_sequence_nr, 3u);
  EXPECT_EQ(Await(storage().OpenWriter("b", std::nullopt))->epoch, 1u);
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  const absl::StatusOr<WriterOpened> third = Await(storage().OpenWriter("a", std::nullopt));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->epoch, 3u);
  EXPECT_EQ(third->highest_sequence_nr, 3u);
}

// PER-19
TEST_P(JournalContract, RefusesTheWritesOfAFormerWriter) {
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  Fill("a", 1, 2, 1);
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  const absl::Status fenced = Write(Event("a", 3, 1));
  EXPECT_TRUE(IsKind(fenced, JournalErrorKind::kFenced));
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(fenced, "nr"), 3);
  EXPECT_TRUE(IsKind(Write(Event("a", 3, 0)), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Write(Event("a", 3, 3)), JournalErrorKind::kNotOpen));
  Fill("a", 3, 3, 2);
  EXPECT_EQ(Replay("a"), From(1, 3));
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_TRUE(IsKind(Write(Event("a", 4, 1)), JournalErrorKind::kFenced));
  Fill("a", 4, 4, 2);
}

// PER-19
TEST_P(JournalContract, TakesAFencingTokenAsTheEpoch) {
  EXPECT_EQ(Await(storage().OpenWriter("a", 17))->epoch, 17u);
  Fill("a", 1, 1, 17);
  // The same owner may come again, a later one takes over, an earlier one cannot come back.
  EXPECT_EQ(Await(storage().OpenWriter("a", 17))->epoch, 17u);
  EXPECT_EQ(Await(storage().OpenWriter("a", 23))->epoch, 23u);
  EXPECT_TRUE(IsKind(Await(storage().OpenWriter("a", 17)).status(), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Write(Event("a", 2, 17)), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Await(storage().OpenWriter("a", 0)).status(), JournalErrorKind::kInvalid));
  Fill("a", 2, 2, 23);
  EXPECT_EQ(Replay("a"), From(1, 2));
}

// PER-19
TEST_P(JournalContract, RefusesTheDeletionsOfAFormerWriter) {
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  Fill("a", 1, 5, 1);
  ASSERT_TRUE(DeleteTo("a", 1, 1).ok());
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  const absl::Status fenced = DeleteTo("a", 3, 1);
  EXPECT_TRUE(IsKind(fenced, JournalErrorKind::kFenced));
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(fenced, "id"), "a");
  EXPECT_TRUE(IsKind(DeleteTo("a", kMax, 1), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(DeleteTo("a", 3, 3), JournalErrorKind::kNotOpen));
  EXPECT_EQ(Replay("a"), From(2, 5));
  ASSERT_TRUE(DeleteTo("a", 3, 2).ok());
  EXPECT_EQ(Replay("a"), From(4, 5));
  if (GetParam().survives_reopen) {
    ASSERT_TRUE(Reopen().ok());
    EXPECT_TRUE(IsKind(DeleteTo("a", 5, 1), JournalErrorKind::kFenced));
    EXPECT_EQ(Replay("a"), From(4, 5));
    ASSERT_TRUE(DeleteTo("a", 4, 2).ok());
  }
  const absl::StatusOr<WriterOpened> next = Await(storage().OpenWriter("a", std::nullopt));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->deleted_to, GetParam().survives_reopen ? 4u : 3u);
}

// PER-19
TEST_P(JournalContract, RefusesTheDeletionsOfAnOlderToken) {
  ASSERT_TRUE(Await(storage().OpenWriter("a", 17)).ok());
  Fill("a", 1, 3, 17);
  ASSERT_TRUE(Await(storage().OpenWriter("a", 23)).ok());
  EXPECT_TRUE(IsKind(DeleteTo("a", 3, 17), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(DeleteTo("a", 3, 22), JournalErrorKind::kFenced));
  EXPECT_EQ(Replay("a"), From(1, 3));
  ASSERT_TRUE(Await(storage().OpenWriter("a", 23)).ok());
  EXPECT_TRUE(DeleteTo("a", 2, 23).ok());
  EXPECT_EQ(Replay("a"), From(3, 3));
}

// PER-19: the deletions of nodes of older versions name no epoch.
TEST_P(JournalContract, DeletesWithoutAnEpochOnlyUntilTheIdIsOpened) {
  Fill("a", 1, 5);
  EXPECT_TRUE(IsKind(DeleteTo("a", 1, 1), JournalErrorKind::kNotOpen));
  EXPECT_TRUE(IsKind(DeleteTo("unknown", 1, 1), JournalErrorKind::kNotOpen));
  ASSERT_TRUE(DeleteTo("a", 2).ok());
  EXPECT_EQ(Replay("a"), From(3, 5));
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  const absl::Status fenced = DeleteTo("a", 4);
  EXPECT_TRUE(IsKind(fenced, JournalErrorKind::kFenced));
  EXPECT_NE(fenced.message().find("names no epoch"), absl::string_view::npos) << fenced;
  EXPECT_EQ(Replay("a"), From(3, 5));
  EXPECT_EQ(Ids(), Texts{"a"});
}

// PER-19: an opening, and the writes and deletions around it, take effect in the order of the
// requests, answered or not.
TEST_P(JournalContract, FencesInTheOrderOfRequests) {
  ASSERT_TRUE(Await(storage().OpenWriter("a", std::nullopt)).ok());
  Future<WriteResults> before = storage().Write(Writes("a", 1, 1, 1));
  Future<WriterOpened> opening = storage().OpenWriter("a", std::nullopt);
  Future<WriteResults> zombie = storage().Write(Writes("a", 2, 2, 1));
  Future<void> zombie_deletion = storage().DeleteTo("a", 1, 1);
  Future<WriteResults> after = storage().Write(Writes("a", 2, 2, 2));
  EXPECT_TRUE(AllAreStored(Await(std::move(before))));
  EXPECT_EQ(Await(std::move(opening))->highest_sequence_nr, 1u);
  const absl::StatusOr<WriteResults> refused = Await(std::move(zombie));
  ASSERT_TRUE(refused.ok()) << refused.status();
  ASSERT_EQ(refused->size(), 1u);
  EXPECT_TRUE(IsKind(refused->front(), JournalErrorKind::kFenced));
  EXPECT_TRUE(IsKind(Await(std::move(zombie_deletion)), JournalErrorKind::kFenced));
  EXPECT_TRUE(AllAreStored(Await(std::move(after))));
  EXPECT_EQ(Replay("a"), From(1, 2));
}

// PER-19: the same for many ids at once. Each opening sees the writes, openings and deletions
// before it.
TEST_P(JournalContract, OpensManyIdsBehindRequestsThatAreNotAnswered) {
  const Texts ids = ManyIds(10'000);
  std::vector<AtomicWrite> firsts;
  std::vector<AtomicWrite> seconds;
  for (const std::string& id : ids) {
    firsts.push_back(AtomicWrite::Make(Event(id, 1).WithTags({"red"})).value());
    seconds.push_back(AtomicWrite::Make(Event(id, 2, 2)).value());
  }
  Future<WriteResults> first = storage().Write(std::move(firsts));
  std::vector<Future<WriterOpened>> openings;
  const auto open_all = [&] {
    for (const std::string& id : ids) openings.push_back(storage().OpenWriter(id, std::nullopt));
  };
  open_all();
  open_all();
  Future<WriteResults> second = storage().Write(std::move(seconds));
  std::vector<Future<void>> deletions;
  std::vector<Future<void>> zombie_deletions;
  for (const std::string& id : ids) {
    zombie_deletions.push_back(storage().DeleteTo(id, 2, 1));
    deletions.push_back(storage().DeleteTo(id, 1, 2));
  }
  open_all();

  ASSERT_TRUE(AllAreStored(Await(std::move(first)), ids.size()));
  ASSERT_TRUE(AllAreStored(Await(std::move(second)), ids.size()));
  for (Future<void>& deletion : deletions) {
    const absl::Status deleted = Await(std::move(deletion));
    ASSERT_TRUE(deleted.ok()) << deleted;
  }
  for (Future<void>& deletion : zombie_deletions) {
    ASSERT_TRUE(IsKind(Await(std::move(deletion)), JournalErrorKind::kFenced));
  }
  const WriterOpened expected[] = {{.epoch = 1, .highest_sequence_nr = 1},
                                   {.epoch = 2, .highest_sequence_nr = 1},
                                   {.epoch = 3, .highest_sequence_nr = 2, .deleted_to = 1}};
  size_t wrong[] = {0, 0, 0};
  for (size_t i = 0; i < openings.size(); ++i) {
    const absl::StatusOr<WriterOpened> opened = Await(std::move(openings[i]));
    ASSERT_TRUE(opened.ok()) << opened.status();
    const WriterOpened& right = expected[i / ids.size()];
    if (opened->epoch != right.epoch || opened->highest_sequence_nr != right.highest_sequence_nr ||
        opened->deleted_to != right.deleted_to) {
      ++wrong[i / ids.size()];
    }
  }
  EXPECT_EQ(wrong[0], 0u);
  EXPECT_EQ(wrong[1], 0u);
  EXPECT_EQ(wrong[2], 0u);
  size_t lost = 0;
  for (const std::string& id : ids) lost += Replay(id) == Numbers{2} ? 0 : 1;
  EXPECT_EQ(lost, 0u);
  EXPECT_TRUE(Ids() == ids) << Ids().size() << " entries in the list of " << ids.size() << " ids";
}

TEST_P(JournalContract, ReadsWhatWasAnswered) {
  for (uint64_t number = 1; number <= 50; ++number) {
    Fill("a", number, number);
    EXPECT_EQ(Highest("a"), number);
    EXPECT_EQ(Replay("a", number), Numbers{number});
  }
}

// P24
TEST_P(JournalContract, KeepsTheOrderOfManyWritesInFlight) {
  std::vector<Future<WriteResults>> writing;
  for (uint64_t number = 1; number <= 2000; ++number) writing.push_back(storage().Write(Writes("a", number, number)));
  for (Future<WriteResults>& future : writing) {
    ASSERT_TRUE(AllAreStored(Await(std::move(future))));
  }
  EXPECT_EQ(Replay("a"), From(1, 2000));
}

// A store may limit the requests that wait. One that is large must not fail because small ones wait
// before it.
TEST_P(JournalContract, TakesALargeWriteBehindASmallRequest) {
  Future<WriterOpened> small = storage().OpenWriter("small", std::nullopt);
  std::vector<AtomicWrite> writes;
  for (uint64_t number = 1; number <= 8; ++number) {
    writes.push_back(AtomicWrite::Make(Event("a", number).WithPayload(std::string(256 << 10, 'x'))).value());
  }
  Future<WriteResults> large = storage().Write(std::move(writes));
  EXPECT_TRUE(Await(std::move(small)).ok());
  EXPECT_TRUE(AllAreStored(Await(std::move(large)), 8));
  EXPECT_EQ(Highest("a"), 8u);
}

// PER-20
TEST_P(JournalContract, FindsEventsByTag) {
  ASSERT_TRUE(Write(Event("a", 1).WithTags({"red"})).ok());
  ASSERT_TRUE(Write(Event("b", 1).WithTags({"blue", "red"})).ok());
  ASSERT_TRUE(Write(Event("a", 2)).ok());
  ASSERT_TRUE(Write(Event("a", 3).WithTags({"red"})).ok());
  EXPECT_EQ(Tagged("red"), (Texts{"a/1", "b/1", "a/3"}));
  EXPECT_EQ(Tagged("blue"), Texts{"b/1"});
  EXPECT_EQ(Tagged("re"), Texts());
  EXPECT_EQ(Tagged("red "), Texts());
  EXPECT_EQ(Tagged("red", 0, {.max_events = 1}), (Texts{"a/1", "b/1", "a/3"}));
  const absl::StatusOr<EventBatch> batch = Await(storage().EventsByTag({.tag = "red"}));
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->size(), 3u);
  EXPECT_EQ((*batch)[1].ToRepr(), Event("b", 1).WithTags({"blue", "red"}));
  // From and to an offset, both included.
  const uint64_t second = (*batch)[1].offset;
  EXPECT_EQ(Tagged("red", second), (Texts{"b/1", "a/3"}));
  EXPECT_EQ(Tagged("red", second + 1), Texts{"a/3"});
  EXPECT_EQ(Await(storage().EventsByTag({.tag = "red", .to_offset = second}))->size(), 2u);
  EXPECT_EQ(Await(storage().EventsByTag({.tag = "red", .to_offset = second - 1}))->size(), 1u);
  // A page that ends here goes on there, also for what comes later.
  ASSERT_TRUE(Write(Event("c", 1).WithTags({"red"})).ok());
  EXPECT_EQ(Tagged("red", batch->resume_at()), Texts{"c/1"});
}

// PER-20
TEST_P(JournalContract, DoesNotFindDeletedEventsByTag) {
  for (uint64_t number = 1; number <= 20; ++number) {
    ASSERT_TRUE(Write(Event("a", number).WithTags({"red"})).ok());
    ASSERT_TRUE(Write(Event("b", number).WithTags({"red"})).ok());
  }
  ASSERT_TRUE(DeleteTo("a", 19).ok());
  ASSERT_TRUE(DeleteTo("b", kMax).ok());
  EXPECT_EQ(Tagged("red"), Texts{"a/20"});
  EXPECT_EQ(Tagged("red", 0, {.max_events = 1}), Texts{"a/20"});
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Tagged("red"), Texts{"a/20"});
}

// PER-20
TEST_P(JournalContract, GivesHigherOffsetsAfterAReopen) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "the store does not survive";
  ASSERT_TRUE(Write(Event("a", 1).WithTags({"red"})).ok());
  ASSERT_TRUE(Reopen().ok());
  ASSERT_TRUE(Write(Event("a", 2).WithTags({"red"})).ok());
  ASSERT_TRUE(Write(Event("b", 1)).ok());
  EXPECT_EQ(Tagged("red"), (Texts{"a/1", "a/2"}));  // which also asks for rising offsets
  EXPECT_EQ(Ids(), (Texts{"a", "b"}));
}

// PER-20
TEST_P(JournalContract, ListsIdsOnceInTheOrderOfTheirFirstUse) {
  Texts expected;
  for (int i = 30; i > 0; --i) {
    expected.push_back(absl::StrCat("id-", i));
    Fill(expected.back(), 1, 1);
  }
  // One that was opened counts, though it has no events.
  ASSERT_TRUE(Await(storage().OpenWriter("opened", std::nullopt)).ok());
  expected.emplace_back("opened");
  Fill("id-3", 2, 3);
  for (const size_t page : {1, 7, 31, 1000}) EXPECT_EQ(Ids(page), expected) << page;
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Ids(), expected);
}

// PER-20
TEST_P(JournalContract, TellsLiveQueriesThatSomethingHasCome) {
  Future<uint64_t> id = storage().AwaitAdvance(JournalSubject::OfId("a"), 1);
  Future<uint64_t> tag = storage().AwaitAdvance(JournalSubject::OfTag("red"), 0);
  Future<uint64_t> ids = storage().AwaitAdvance(JournalSubject::OfAllIds(), 0);
  Fill("a", 1, 1);
  EXPECT_GT(Await(std::move(ids)).value(), 0u);
  EXPECT_FALSE(id.IsReady());
  EXPECT_FALSE(tag.IsReady());
  ASSERT_TRUE(Write(Event("a", 2).WithTags({"red"})).ok());
  EXPECT_EQ(Await(std::move(id)).value(), 2u);
  const absl::StatusOr<uint64_t> offset = Await(std::move(tag));
  ASSERT_TRUE(offset.ok()) << offset.status();
  EXPECT_EQ(Tagged("red", *offset), Texts{"a/2"});
  // What has come before is told at once.
  EXPECT_EQ(Await(storage().AwaitAdvance(JournalSubject::OfId("a"), 0)).value(), 2u);
  EXPECT_EQ(Await(storage().AwaitAdvance(JournalSubject::OfTag("red"), 0)).value(), *offset);
  EXPECT_GT(Await(storage().AwaitAdvance(JournalSubject::OfAllIds(), 0)).value(), 0u);
  Future<uint64_t> next = storage().AwaitAdvance(JournalSubject::OfTag("red"), *offset);
  ASSERT_TRUE(Write(Event("b", 1).WithTags({"blue"})).ok());
  EXPECT_FALSE(next.IsReady());
  ASSERT_TRUE(Write(Event("b", 2).WithTags({"red"})).ok());
  EXPECT_GT(Await(std::move(next)).value(), *offset);
}

TEST_P(JournalContract, AnswersEverythingBeforeItIsClosed) {
  std::vector<Future<WriteResults>> writing;
  for (uint64_t number = 1; number <= 100; ++number) writing.push_back(storage().Write(Writes("a", number, number)));
  Future<uint64_t> live = storage().AwaitAdvance(JournalSubject::OfId("b"), 0);
  EXPECT_TRUE(Await(storage().Close()).ok());
  for (Future<WriteResults>& future : writing) {
    const absl::StatusOr<WriteResults> results = Await(std::move(future));
    EXPECT_TRUE(results.ok()) << results.status();
  }
  EXPECT_TRUE(IsKind(Await(std::move(live)).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Write(Event("a", 101)), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().OpenWriter("a", std::nullopt)).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().Replay({.persistence_id = "a"})).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().HighestSequenceNr("a")).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(DeleteTo("a", 1), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().EventsByTag({.tag = "red"})).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().PersistenceIds({})).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(IsKind(Await(storage().AwaitAdvance(JournalSubject::OfAllIds(), 0)).status(), JournalErrorKind::kClosed));
  EXPECT_TRUE(Await(storage().Close()).ok());
  if (!GetParam().survives_reopen) return;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Replay("a"), From(1, 100));
}

// Many callers at once: each sees its own writes in order, and queries see every event once.
TEST_P(JournalContract, ServesManyThreads) {
  if (journal_->toolbox() != nullptr) GTEST_SKIP() << "the store runs on one thread";
  constexpr int kThreads = 4;
  constexpr uint64_t kEvents = 100;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      const std::string id = absl::StrCat("id-", thread);
      const absl::StatusOr<WriterOpened> opened = Await(storage().OpenWriter(id, std::nullopt));
      EXPECT_TRUE(opened.ok()) << opened.status();
      for (uint64_t number = 1; number <= kEvents; ++number) {
        const absl::Status written = Write(Event(id, number, 1).WithTags({"all"}));
        EXPECT_TRUE(written.ok()) << written;
        if (number % 10 == 0) {
          EXPECT_EQ(Highest(id), number);
        }
        if (number % 50 == 0) {
          EXPECT_TRUE(DeleteTo(id, number - 40, 1).ok());
        }
      }
    });
  }
  // A live query beside them: nothing comes twice, nothing is missed but what was deleted before it was read.
  std::vector<uint64_t> last(kThreads, 0);
  for (uint64_t from = 0;
       std::find_if(last.begin(), last.end(), [](uint64_t n) { return n < kEvents; }) != last.end();) {
    const absl::StatusOr<uint64_t> advanced =
        Await(storage().AwaitAdvance(JournalSubject::OfTag("all"), from == 0 ? 0 : from - 1));
    ASSERT_TRUE(advanced.ok()) << advanced.status();
    const absl::StatusOr<EventBatch> batch = Await(storage().EventsByTag({.tag = "all", .from_offset = from}));
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (const StoredEvent& event : *batch) {
      uint64_t& previous = last[static_cast<size_t>(event.persistence_id.back() - '0')];
      EXPECT_GT(event.sequence_nr, previous);
      if (event.sequence_nr > previous + 1) {
        EXPECT_LE(event.sequence_nr, kEvents - 39);
      }
      previous = event.sequence_nr;
    }
    from = batch->resume_at();
  }
  for (std::thread& thread : threads) thread.join();
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(Replay(absl::StrCat("id-", thread)), From(kEvents - 39, kEvents));
  }
  EXPECT_EQ(Tagged("all").size(), kThreads * 40u);
}

}  // namespace fraktor::inline v0
