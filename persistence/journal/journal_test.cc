#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/advance_board.h"
#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/event_record.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/replay_cursor.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

PersistentRepr FullEvent() {
  PersistentRepr event;
  event.persistence_id = "account-7";
  event.sequence_nr = 12;
  event.writer = {0x0123456789abcdef, 42};
  event.epoch = 3;
  event.timestamp = absl::FromUnixNanos(1'700'000'000'123'456'789);
  event.manifest = "deposited";
  event.manifest_version = 2;
  event.payload = std::string("a\0b", 3);
  event.tags = {"red", "blue"};
  event.metadata = "trace";
  return event;
}

JournalErrorKind KindOf(const absl::Status& status) {
  return ErrorKindOf<JournalErrorKind>(status).value_or(JournalErrorKind::kIo);
}

bool Mentions(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

// PER-5
TEST(PersistentRepr, GivesCopiesWithOneThingChanged) {
  const PersistentRepr event = FullEvent();
  EXPECT_EQ(event.WithSequenceNr(13).sequence_nr, 13u);
  EXPECT_EQ(event.WithPersistenceId("x").persistence_id, "x");
  EXPECT_EQ(event.WithWriter({1, 2}).writer, (WriterId{1, 2}));
  EXPECT_EQ(event.WithEpoch(9).epoch, 9u);
  EXPECT_EQ(event.WithTimestamp(absl::UnixEpoch()).timestamp, absl::UnixEpoch());
  EXPECT_EQ(event.WithManifest("m", 5).manifest, "m");
  EXPECT_EQ(event.WithManifest("m", 5).manifest_version, 5u);
  EXPECT_EQ(event.WithPayload("p").payload, "p");
  EXPECT_EQ(event.WithTags({"t"}).tags, std::vector<std::string>{"t"});
  EXPECT_EQ(event.WithMetadata("n").metadata, "n");
  // Each changes one thing and back.
  EXPECT_EQ(event.WithSequenceNr(13).WithSequenceNr(12), event);
  EXPECT_EQ(event.WithManifest("m", 5).WithManifest("deposited", 2), event);
  EXPECT_EQ(event, FullEvent());
}

TEST(WriterId, IsReadBackFromItsText) {
  Random random(7);
  const WriterId writer = WriterId::Draw(random);
  EXPECT_FALSE(writer.is_none());
  EXPECT_EQ(writer.ToString().size(), 32u);
  EXPECT_EQ(WriterId::Parse(writer.ToString()), writer);
  EXPECT_EQ(WriterId::Parse(""), WriterId{});
  EXPECT_FALSE(WriterId::Parse("12").has_value());
  EXPECT_FALSE(WriterId::Parse("0123456789abcdef0123456789abcdeX").has_value());
}

// P25
TEST(AtomicWrite, RefusesEventsOfDifferentIds) {
  const PersistentRepr event = FullEvent();
  const absl::Status refused = AtomicWrite::Make({event, event.WithPersistenceId("b").WithSequenceNr(13)}).status();
  EXPECT_EQ(KindOf(refused), JournalErrorKind::kInvalid);
  EXPECT_TRUE(Mentions(refused, "event 13 of \"b\"")) << refused;
}

// P25
TEST(AtomicWrite, KnowsItsLowestAndHighestNumber) {
  const PersistentRepr event = FullEvent();
  const absl::StatusOr<AtomicWrite> write =
      AtomicWrite::Make({event, event.WithSequenceNr(13), event.WithSequenceNr(14)});
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->lowest_sequence_nr(), 12u);
  EXPECT_EQ(write->highest_sequence_nr(), 14u);
  EXPECT_EQ(write->persistence_id(), "account-7");
  EXPECT_EQ(write->epoch(), 3u);
}

// Memory of one that has ended is used again.
TEST(AtomicWrite, IsFilledWithNothingOfTheOneBeforeIt) {
  PersistentRepr full = FullEvent();
  full.tags.clear();
  const PersistentRepr bare{.persistence_id = "x", .sequence_nr = 1};
  for (const PersistentRepr& event : {full, bare, full, bare}) {
    const absl::StatusOr<AtomicWrite> write = AtomicWrite::Fill(1, [&](size_t, PersistentRepr& repr) {
      EXPECT_EQ(repr, PersistentRepr());
      repr.persistence_id = event.persistence_id;
      repr.sequence_nr = event.sequence_nr;
      repr.writer = event.writer;
      repr.epoch = event.epoch;
      repr.timestamp = event.timestamp;
      repr.manifest = event.manifest;
      repr.manifest_version = event.manifest_version;
      repr.payload = event.payload;
      repr.metadata = event.metadata;
      return absl::OkStatus();
    });
    ASSERT_TRUE(write.ok()) << write.status();
    EXPECT_EQ(write->events()[0], event);
  }
}

TEST(AtomicWrite, StaysAsItIsWhileACopyIsThere) {
  const auto fill = [](size_t, PersistentRepr& repr) {
    repr = FullEvent();
    repr.tags.clear();
    return absl::OkStatus();
  };
  std::optional<AtomicWrite> first = AtomicWrite::Fill(1, fill).value();
  const AtomicWrite copy = *first;
  first.reset();
  const AtomicWrite second = AtomicWrite::Make(PersistentRepr{.persistence_id = "x", .sequence_nr = 1}).value();
  const AtomicWrite third = AtomicWrite::Fill(1, fill).value();
  EXPECT_EQ(copy.persistence_id(), "account-7");
  EXPECT_NE(&copy.events(), &third.events());
  EXPECT_EQ(second.persistence_id(), "x");
}

TEST(AtomicWrite, OfAFailedFillingIsNone) {
  const auto fail = [](size_t, PersistentRepr& repr) {
    repr.payload = "half";
    return absl::InvalidArgumentError("no codec");
  };
  EXPECT_EQ(AtomicWrite::Fill(1, fail).status(), absl::InvalidArgumentError("no codec"));
}

TEST(AtomicWrite, RefusesNumbersThatDoNotRiseByOneAndMixedWriters) {
  const PersistentRepr event = FullEvent();
  EXPECT_FALSE(AtomicWrite::Make(AtomicWrite::Events()).ok());
  EXPECT_FALSE(AtomicWrite::Make({event, event}).ok());
  EXPECT_FALSE(AtomicWrite::Make({event, event.WithSequenceNr(14)}).ok());
  EXPECT_FALSE(AtomicWrite::Make(event.WithSequenceNr(0)).ok());
  EXPECT_FALSE(AtomicWrite::Make({event, event.WithSequenceNr(13).WithEpoch(4)}).ok());
  EXPECT_FALSE(AtomicWrite::Make({event, event.WithSequenceNr(13).WithWriter({})}).ok());
}

TEST(JournalLimits, NameTheEventTheSizeAndTheLimit) {
  JournalLimits limits;
  limits.max_event_bytes = 100;
  const AtomicWrite write = AtomicWrite::Make(FullEvent().WithPayload(std::string(101, 'x'))).value();
  const absl::Status refused = CheckAtomicWrite(limits, write);
  EXPECT_EQ(KindOf(refused), JournalErrorKind::kTooLarge);
  EXPECT_TRUE(Mentions(refused, "event 12 of \"account-7\"")) << refused;
  EXPECT_TRUE(Mentions(refused, "the limit is 100")) << refused;
  EXPECT_TRUE(Mentions(refused, "JournalLimits::max_event_bytes")) << refused;
  EXPECT_EQ(ErrorDetailOf<JournalErrorKind>(refused, "id"), "account-7");
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(refused, "nr"), 12);
}

TEST(JournalLimits, BoundEverythingThatVaries) {
  const auto kind = [](const JournalLimits& limits, PersistentRepr event) {
    PersistentRepr next = event.WithSequenceNr(event.sequence_nr + 1);
    return KindOf(CheckAtomicWrite(limits, AtomicWrite::Make({std::move(event), std::move(next)}).value()));
  };
  EXPECT_TRUE(CheckAtomicWrite({}, AtomicWrite::Make(FullEvent()).value()).ok());
  EXPECT_EQ(kind({.max_persistence_id_bytes = 8}, FullEvent()), JournalErrorKind::kTooLarge);
  EXPECT_EQ(kind({.max_atomic_write_events = 1}, FullEvent()), JournalErrorKind::kTooLarge);
  EXPECT_EQ(kind({.max_atomic_write_bytes = 40}, FullEvent()), JournalErrorKind::kTooLarge);
  EXPECT_EQ(kind({.max_tags = 1}, FullEvent()), JournalErrorKind::kTooLarge);
  EXPECT_EQ(kind({.max_tag_bytes = 3}, FullEvent()), JournalErrorKind::kTooLarge);
  EXPECT_EQ(kind({}, FullEvent().WithPersistenceId("")), JournalErrorKind::kInvalid);
  EXPECT_EQ(kind({}, FullEvent().WithTags({""})), JournalErrorKind::kInvalid);
  EXPECT_EQ(kind({}, FullEvent().WithTags({"a", "b", "a"})), JournalErrorKind::kInvalid);
}

TEST(JournalLimits, HaveLimitsThemselves) {
  EXPECT_TRUE(CheckJournalLimits({}).ok());
  EXPECT_FALSE(CheckJournalLimits({.max_persistence_id_bytes = 65536}).ok());
  EXPECT_FALSE(CheckJournalLimits({.max_event_bytes = 0}).ok());
  EXPECT_FALSE(CheckJournalLimits({.max_atomic_write_events = 0}).ok());
  EXPECT_FALSE(CheckJournalLimits({.max_atomic_write_bytes = 0}).ok());
  EXPECT_FALSE(CheckJournalLimits({.max_tags = 0}).ok());
  EXPECT_FALSE(CheckJournalLimits({.max_tag_bytes = 65536}).ok());
}

TEST(JournalErrorKind, HasANameForEach) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKindTraits<JournalErrorKind>::kLast); ++kind) {
    names.insert(JournalErrorKindName(static_cast<JournalErrorKind>(kind)));
  }
  EXPECT_EQ(names.size(), 16u);
  EXPECT_EQ(names.count("unknown"), 0u);
}

TEST(Crc32c, AgreesWithKnownValuesAndWithTheTables) {
  EXPECT_EQ(ExtendCrc32c(0, "123456789"), 0xe3069283u);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\0')), 0x8a9136aau);
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(ExtendCrc32c(17, bytes), journal_internal::ExtendCrc32cPortable(17, bytes)) << i;
    EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, bytes), "tail"), ExtendCrc32c(0, bytes + "tail")) << i;
    bytes.push_back(static_cast<char>(i * 37));
  }
}

TEST(EventKey, SortsByIdAndNumberAndIsReadBack) {
  EXPECT_LT(EventKey("a", 9), EventKey("a", 10));
  EXPECT_LT(EventKey("a", 255), EventKey("a", 256));
  EXPECT_LT(EventKey("a", kMax), EventKey("b", 0));
  // An id that is the beginning of another, or has zero bytes, does not mix with it.
  EXPECT_NE(EventKey(std::string("a\0\0\0\0\0\0\0\0", 9), 1).substr(0, 3), EventKey("a", 1).substr(0, 3));
  std::string_view id;
  uint64_t number = 0;
  const std::string key = EventKey("account-7", 12);
  ASSERT_TRUE(ParseEventKey(key, id, number));
  EXPECT_EQ(id, "account-7");
  EXPECT_EQ(number, 12u);
  EXPECT_FALSE(ParseEventKey(key.substr(0, key.size() - 1), id, number));
  EXPECT_FALSE(ParseEventKey(key + "x", id, number));
}

std::string Record(const PersistentRepr& event, uint64_t offset) {
  std::string record;
  AppendEventBody(event, record);
  SealRecord(EventKeyCrc(event.persistence_id, event.sequence_nr), offset, record);
  return record;
}

TEST(EventRecord, IsReadBack) {
  for (const PersistentRepr& event : {FullEvent(), PersistentRepr{.persistence_id = "x", .sequence_nr = 1}}) {
    const std::string record = Record(event, 77);
    StoredEvent stored;
    ASSERT_EQ(DecodeEventRecord(EventKeyCrc(event.persistence_id, event.sequence_nr), record, stored),
              RecordProblem::kNone);
    stored.persistence_id = event.persistence_id;
    stored.sequence_nr = event.sequence_nr;
    EXPECT_EQ(stored.offset, 77u);
    EXPECT_EQ(stored.ToRepr(), event);
    std::string trusted(EventRecordBytes(event), '#');
    WriteTrustedRecord(event, 77, trusted.data());
    StoredEvent kept;
    ASSERT_EQ(DecodeTrustedRecord(trusted, kept), RecordProblem::kNone);
    kept.persistence_id = event.persistence_id;
    kept.sequence_nr = event.sequence_nr;
    EXPECT_EQ(kept.offset, 77u);
    EXPECT_EQ(kept.ToRepr(), event);
  }
}

TEST(EventRecord, IsWrittenToItsLastByteWhateverItsLengths) {
  for (const size_t size : {0, 1, 127, 128, 129, 16383, 16384}) {
    for (int part = 0; part < 5; ++part) {
      PersistentRepr event{.persistence_id = "x", .sequence_nr = 1, .epoch = size, .manifest_version = 128};
      const std::string text(size, 'x');
      if (part == 0) event.manifest = text;
      if (part == 1) event.payload = text;
      if (part == 2) event.metadata = text;
      if (part == 3 && size > 0) event.tags = {"red", text};
      if (part == 4) event.writer = {.high = size, .low = 2};
      const std::string record = Record(event, 77);
      ASSERT_EQ(EventRecordBytes(event), record.size());
      std::string written(record.size() + 1, '#');
      WriteEventRecord(event, EventKeyCrc("x", 1), 77, written.data());
      EXPECT_EQ(written, record + "#") << size << " in part " << part;
      std::string trusted(record.size() + 1, '#');
      WriteTrustedRecord(event, 77, trusted.data());
      EXPECT_EQ(trusted, record.substr(0, record.size() - 4) + std::string(4, '\0') + "#") << size;
      StoredEvent stored;
      ASSERT_EQ(DecodeEventRecord(EventKeyCrc("x", 1), record, stored), RecordProblem::kNone);
      stored.persistence_id = event.persistence_id;
      stored.sequence_nr = event.sequence_nr;
      EXPECT_EQ(stored.ToRepr(), event) << size << " in part " << part;
    }
  }
}

TEST(EventRecord, FindsEveryFlippedBitAndEveryCut) {
  const std::string record = Record(FullEvent(), 77);
  const uint32_t key_crc = EventKeyCrc("account-7", 12);
  StoredEvent stored;
  for (size_t bit = 0; bit < record.size() * 8; ++bit) {
    std::string damaged = record;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(DecodeEventRecord(key_crc, damaged, stored), RecordProblem::kChecksum) << "bit " << bit;
  }
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_EQ(DecodeEventRecord(key_crc, record.substr(0, size), stored), RecordProblem::kChecksum) << "size " << size;
  }
  EXPECT_EQ(DecodeEventRecord(EventKeyCrc("account-7", 13), record, stored), RecordProblem::kChecksum);
  EXPECT_EQ(DecodeEventRecord(EventKeyCrc("account-8", 12), record, stored), RecordProblem::kChecksum);
}

TEST(EventRecord, RefusesANewerVersionPolitely) {
  std::string record;
  AppendEventBody(FullEvent(), record);
  record[0] = 2;
  SealRecord(EventKeyCrc("account-7", 12), 1, record);
  StoredEvent stored;
  const RecordProblem problem = DecodeEventRecord(EventKeyCrc("account-7", 12), record, stored);
  EXPECT_EQ(problem, RecordProblem::kNewer);
  const absl::Status status = RecordError(problem, "account-7", 12, record);
  EXPECT_EQ(KindOf(status), JournalErrorKind::kNewerSchema);
  EXPECT_TRUE(Mentions(status, "event 12 of \"account-7\": its record has version 2")) << status;
}

TEST(EventRecord, HasABodyThatDependsOnTheEventAlone) {
  EXPECT_EQ(BodyOfRecord(Record(FullEvent(), 1)), BodyOfRecord(Record(FullEvent(), 2)));
  EXPECT_NE(BodyOfRecord(Record(FullEvent(), 1)), BodyOfRecord(Record(FullEvent().WithPayload("other"), 1)));
  EXPECT_EQ(BodyOfRecord("short"), "");
}

TEST(EventBatch, KeepsItsBytesInPlaceWhenItIsMoved) {
  EventBatch batch;
  StoredEvent event;
  for (int i = 0; i < 2000; ++i) {
    event.sequence_nr = static_cast<uint64_t>(i);
    event.payload = batch.Keep(std::string(static_cast<size_t>(i % 300), static_cast<char>('a' + i % 26)));
    batch.Add(event);
  }
  event.payload = batch.Keep(std::string(1 << 20, 'z'));
  batch.Add(event);
  const EventBatch moved = std::move(batch);
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(moved[static_cast<size_t>(i)].payload,
              std::string(static_cast<size_t>(i % 300), static_cast<char>('a' + i % 26)));
  }
  EXPECT_EQ(moved.back().payload, std::string(1 << 20, 'z'));
}

EventBatch BatchOf(size_t events, uint64_t resume_at, bool at_end) {
  EventBatch batch;
  for (size_t i = 0; i < events; ++i) batch.Add({});
  batch.Finish(resume_at, at_end);
  return batch;
}

// PER-3
TEST(ReplayCursor, AsksForNoMoreThanIsWanted) {
  ReplayCursor cursor({.persistence_id = "a", .from_sequence_nr = 3, .to_sequence_nr = 90, .max_events = 25});
  ASSERT_FALSE(cursor.done());
  EXPECT_EQ(cursor.NextPage({.max_events = 10}).from_sequence_nr, 3u);
  EXPECT_EQ(cursor.NextPage({.max_events = 10}).to_sequence_nr, 90u);
  cursor.Advance(BatchOf(10, 14, false));  // with a gap
  cursor.Advance(BatchOf(10, 24, false));
  EXPECT_EQ(cursor.NextPage({.max_events = 10}).limits.max_events, 5u);
  EXPECT_EQ(cursor.NextPage({.max_events = 10}).from_sequence_nr, 24u);
  cursor.Advance(BatchOf(5, 29, false));
  EXPECT_TRUE(cursor.done());
}

// PER-3, P10, P27
TEST(ReplayCursor, AsksForNothingWhereNothingCanBe) {
  EXPECT_TRUE(ReplayCursor({.max_events = 0}).done());
  EXPECT_TRUE(ReplayCursor({.to_sequence_nr = 0}).done());
  EXPECT_TRUE(ReplayCursor({.from_sequence_nr = 0, .to_sequence_nr = 0}).done());
  EXPECT_TRUE(ReplayCursor({.from_sequence_nr = 5, .to_sequence_nr = 4}).done());
  EXPECT_FALSE(ReplayCursor({.from_sequence_nr = 5, .to_sequence_nr = 5}).done());
}

TEST(ReplayCursor, GoesOnAfterAnEmptyPageThatIsNotTheEnd) {
  ReplayCursor cursor({.persistence_id = "a"});
  cursor.Advance(BatchOf(0, 1000, false));
  EXPECT_FALSE(cursor.done());
  cursor.Advance(BatchOf(0, 1000, true));
  EXPECT_TRUE(cursor.done());
}

// P26
TEST(WriteResults, AreNoneOrOneForEach) {
  EXPECT_TRUE(CheckWriteResults({}, 3).ok());
  EXPECT_TRUE(CheckWriteResults({absl::OkStatus(), absl::OkStatus(), absl::OkStatus()}, 3).ok());
  EXPECT_FALSE(CheckWriteResults({absl::OkStatus(), absl::OkStatus()}, 3).ok());
}

TEST(AdvanceBoard, WakesThoseWhoWaitForLess) {
  AdvanceBoard board;
  EXPECT_FALSE(board.HasWaiters());
  Future<uint64_t> low = board.Wait(JournalSubject::OfTag("red"), 4);
  Future<uint64_t> high = board.Wait(JournalSubject::OfTag("red"), 5);
  Future<uint64_t> other = board.Wait(JournalSubject::OfId("red"), 0);
  EXPECT_TRUE(board.HasWaiters());
  board.Publish(JournalSubject::OfTag("red"), 4);
  EXPECT_FALSE(low.IsReady());
  board.Publish(JournalSubject::OfTag("red"), 5);
  ASSERT_TRUE(low.IsReady());
  EXPECT_EQ(low.Take().value(), 5u);
  EXPECT_FALSE(high.IsReady());
  EXPECT_FALSE(other.IsReady());
  board.Publish(JournalSubject::OfTag("red"), 9);
  EXPECT_EQ(high.Take().value(), 9u);
  board.Publish(JournalSubject::OfId("red"), 1);
  EXPECT_EQ(other.Take().value(), 1u);
  EXPECT_FALSE(board.HasWaiters());
}

TEST(AdvanceBoard, HasALimitThatThoseWhoGaveUpDoNotCountFor) {
  AdvanceBoard board(2);
  Future<uint64_t> first = board.Wait(JournalSubject::OfAllIds(), 0);
  Future<uint64_t> second = board.Wait(JournalSubject::OfAllIds(), 0);
  EXPECT_EQ(KindOf(board.Wait(JournalSubject::OfAllIds(), 0).Take().status()), JournalErrorKind::kOverloaded);
  second = Future<uint64_t>();
  Future<uint64_t> third = board.Wait(JournalSubject::OfAllIds(), 0);
  EXPECT_FALSE(third.IsReady());
}

TEST(AdvanceBoard, TellsAllThatItCloses) {
  AdvanceBoard board;
  Future<uint64_t> before = board.Wait(JournalSubject::OfAllIds(), 0);
  board.Close(absl::UnavailableError("closed"));
  EXPECT_TRUE(absl::IsUnavailable(before.Take().status()));
  EXPECT_TRUE(absl::IsUnavailable(board.Wait(JournalSubject::OfAllIds(), 0).Take().status()));
}

}  // namespace
}  // namespace fraktor
