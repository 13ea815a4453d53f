#include "fraktor/persistence/protocol/protocol_codecs.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/journal_messages.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

using utils_internal::TableSlot;

namespace {

// Knows one actor.
class OneRef final : public ActorRefCodec {
 public:
  static ActorRef It() {
    alignas(64) static char memory[64];
    return ActorRef(reinterpret_cast<TableSlot*>(memory), 5);
  }
  absl::Status Write(ActorRef ref, std::string& out) override {
    EXPECT_EQ(ref, It());
    out += "it";
    return absl::OkStatus();
  }
  absl::StatusOr<ActorRef> Read(std::string_view) override { return It(); }
};

// Field by field, so that a field that a codec forgets is found. Converts to the type of any field.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class M, size_t... kFields>
constexpr bool IsMadeOf(std::index_sequence<kFields...>) {
  return requires { M{(static_cast<void>(kFields), Anything())...}; };
}
template <class M, size_t kFields>
constexpr bool kHasFields = IsMadeOf<M>(std::make_index_sequence<kFields>());

template <class M, class F>
bool WithFields(const M& message, const M& other, F visit) {
  if constexpr (kHasFields<M, 10>) {
    const auto& [a, b, c, d, e, f, g, h, i, j] = message;
    const auto& [a2, b2, c2, d2, e2, f2, g2, h2, i2, j2] = other;
    return visit(a, a2) && visit(b, b2) && visit(c, c2) && visit(d, d2) && visit(e, e2) && visit(f, f2) &&
           visit(g, g2) && visit(h, h2) && visit(i, i2) && visit(j, j2);
  } else if constexpr (kHasFields<M, 9>) {
    const auto& [a, b, c, d, e, f, g, h, i] = message;
    const auto& [a2, b2, c2, d2, e2, f2, g2, h2, i2] = other;
    return visit(a, a2) && visit(b, b2) && visit(c, c2) && visit(d, d2) && visit(e, e2) && visit(f, f2) &&
           visit(g, g2) && visit(h, h2) && visit(i, i2);
  } else if constexpr (kHasFields<M, 7>) {
    const auto& [a, b, c, d, e, f, g] = message;
    const auto& [a2, b2, c2, d2, e2, f2, g2] = other;
    return visit(a, a2) && visit(b, b2) && visit(c, c2) && visit(d, d2) && visit(e, e2) && visit(f, f2) && visit(g, g2);
  } else if constexpr (kHasFields<M, 6>) {
    const auto& [a, b, c, d, e, f] = message;
    const auto& [a2, b2, c2, d2, e2, f2] = other;
    if (!visit(a, a2) || !visit(b, b2) || !visit(c, c2) || !visit(d, d2) || !visit(e, e2)) return false;
    // The last one of a write is not sent: see AskAnotherNodeForAllAnswers.
    if constexpr (std::is_same_v<M, WriteMessages>) return f == f2;
    return visit(f, f2);
  } else if constexpr (kHasFields<M, 5>) {
    const auto& [a, b, c, d, e] = message;
    const auto& [a2, b2, c2, d2, e2] = other;
    return visit(a, a2) && visit(b, b2) && visit(c, c2) && visit(d, d2) && visit(e, e2);
  } else if constexpr (kHasFields<M, 4>) {
    const auto& [a, b, c, d] = message;
    const auto& [a2, b2, c2, d2] = other;
    return visit(a, a2) && visit(b, b2) && visit(c, c2) && visit(d, d2);
  } else if constexpr (kHasFields<M, 3>) {
    const auto& [a, b, c] = message;
    const auto& [a2, b2, c2] = other;
    return visit(a, a2) && visit(b, b2) && visit(c, c2);
  } else if constexpr (kHasFields<M, 2>) {
    const auto& [a, b] = message;
    const auto& [a2, b2] = other;
    return visit(a, a2) && visit(b, b2);
  } else {
    const auto& [a] = message;
    const auto& [a2] = other;
    return visit(a, a2);
  }
}

bool Same(const AtomicWrite& a, const AtomicWrite& b) {
  return a.events() == b.events() && a.known_stored() == b.known_stored();
}
bool Same(const EventBatch& a, const EventBatch& b) {
  if (a.size() != b.size() || a.at_end() != b.at_end() || a.resume_at() != b.resume_at()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].ToRepr() != b[i].ToRepr() || a[i].offset != b[i].offset) return false;
  }
  return true;
}
template <class T>
concept ListOfParts = requires(const T& list) {
  list.begin();
  typename T::value_type;
}
&&!std::equality_comparable<typename T::value_type>;

template <class T>
bool Same(const T& a, const T& b) {
  if constexpr (ListOfParts<T>) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Same(a[i], b[i])) return false;
    }
    return true;
  } else if constexpr (std::equality_comparable<T> && !std::is_same_v<T, SnapshotMetadata>) {
    // Metadata are equal if they are of the same snapshot: not enough here.
    return a == b;
  } else {
    return WithFields(a, b, [](const auto& x, const auto& y) { return Same(x, y); });
  }
}

absl::Status Error() {
  return EventError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kFenced, "id", 7, "another writer");
}

PersistentRepr Repr(uint64_t nr) {
  return {.persistence_id = "account-7",
          .sequence_nr = nr,
          .writer = {.high = ~uint64_t{0}, .low = 3},
          .epoch = 4,
          .timestamp = absl::FromUnixNanos(1234567890123456789),
          .manifest = "deposited",
          .manifest_version = 5,
          .payload = std::string("a\0b", 3),
          .tags = {"red", "green"},
          .metadata = "meta"};
}

Snapshot State() {
  return {.metadata = {.persistence_id = "account-7",
                       .sequence_nr = 9,
                       .timestamp = absl::FromUnixNanos(-5),
                       .metadata = "meta"},
          .manifest = "account",
          .manifest_version = 3,
          .payload = "state"};
}

SnapshotSelectionCriteria Criteria() {
  return {.max_sequence_nr = 100,
          .max_timestamp = absl::FromUnixNanos(7),
          .min_sequence_nr = 2,
          .min_timestamp = absl::FromUnixNanos(-7)};
}

EventBatch Page(std::vector<std::string> ids) {
  EventBatch page;
  uint64_t nr = 10;
  for (const std::string& id : ids) {
    StoredEvent event;
    event.persistence_id = page.Keep(id);
    event.sequence_nr = ++nr;
    event.offset = (uint64_t{3} << 40) + nr;
    event.epoch = 2;
    event.writer = {.high = 1, .low = 2};
    event.timestamp_ns = -9;
    event.manifest = page.Keep("deposited");
    event.manifest_version = 4;
    event.payload = page.Keep("payload");
    event.metadata = page.Keep("meta");
    std::string tags;
    AppendSized(tags, "red");
    AppendSized(tags, "");
    event.tag_bytes = page.Keep(tags);
    event.tag_count = 2;
    page.Add(event);
  }
  page.Finish(nr + 1, false);
  return page;
}

const CodecRegistry& Registry() {
  static const auto& registry =
      *new std::shared_ptr<const CodecRegistry>(CodecSetup().Add(ProtocolCodecs()).Build().value());
  return *registry;
}

class Samples {
 public:
  // Calls `visit` with a message of each type in which no field has its default.
  template <class Visit>
  static void ForEach(Visit visit) {
    const ActorRef it = OneRef::It();
    WriteMessages write{.deferred = {{.position = 0, .token = 4}, {.position = 2, .token = 5}},
                        .client = it,
                        .instance_id = 8,
                        .batch = 9};
    write.writes.push_back(AtomicWrite::Make(Repr(3)).value());
    write.writes.push_back(AtomicWrite::Make({Repr(4), Repr(5)}).value());
    write.writes[0].set_known_stored(2);
    write.writes[1].set_known_stored(3);
    visit(OpenWriter{"account-7", 6, it, 8});
    visit(std::move(write));
    visit(ReplayMessages{"account-7", 2, 900, 800, {.max_events = 7, .max_bytes = 70}, true, 1000, it, 8, true});
    visit(DeleteMessagesTo{"account-7", 5, it, 8, 3});
    visit(GetHighestSequenceNr{"account-7", it, 8});
    visit(WriterIsOpen{3, 1000, 8, 900});
    visit(OpenWriterFailure{Error(), 8});
    visit(WriteMessagesSuccessful{8, 9});
    visit(WriteMessagesFailed{Error(), 2, 8, 9});
    visit(WriteMessageSuccess{3, 8, 9});
    visit(WriteMessageRejected{3, Error(), 8, 9});
    visit(WriteMessageFailure{3, Error(), 8, 9});
    visit(LoopMessageSuccess{4, 8, 9});
    visit(ReplayedMessages{Page({"a", "a", "b", ""}), true, 8});
    visit(RecoverySuccess{1000, 8, 900});
    visit(ReplayMessagesFailure{Error(), 8});
    visit(DeleteMessagesSuccess{5, 8});
    visit(DeleteMessagesFailure{Error(), 5, 8});
    visit(HighestSequenceNrSuccess{1000, 8});
    visit(HighestSequenceNrFailure{Error(), 8});
    visit(LoadSnapshot{"account-7", Criteria(), 50, it, 8, 3});
    visit(SaveSnapshot{State(), it, 8, 3});
    visit(DeleteSnapshot{State().metadata, it, 8, 3});
    visit(DeleteSnapshots{"account-7", Criteria(), it, 8, 3});
    visit(SaveSnapshotPart{{1, 2}, 3, 4, "part", State(), it, 8});
    visit(LoadSnapshotInParts{{"account-7", Criteria(), 50, it, 8, 3}, it, 4, 5});
    visit(GetSnapshotPart{State().metadata, 9, 3, 4, it, 5});
    visit(SnapshotPartsTaken{{1, 2}, 3, false});
    visit(SnapshotPartsSaved{{1, 2}, Error(), State().metadata});
    visit(LoadInPartsTaken{4});
    visit(SnapshotOffer{4, State(), 9, 50});
    visit(SnapshotPart{5, 3, "part", Error()});
    visit(LoadSnapshotResult{true, State(), 50, 8});
    visit(LoadSnapshotFailed{Error(), 8});
    visit(SaveSnapshotSuccess{State().metadata, 8});
    visit(SaveSnapshotFailure{State().metadata, Error(), 8});
    visit(DeleteSnapshotSuccess{State().metadata, 8});
    visit(DeleteSnapshotFailure{State().metadata, Error(), 8});
    visit(DeleteSnapshotsSuccess{Criteria(), 8});
    visit(DeleteSnapshotsFailure{Criteria(), Error(), 8});
  }
};

// PER-14
TEST(ProtocolCodecs, BringEveryMessageBackEqual) {
  OneRef refs;
  const CodecContext context{.refs = &refs};
  size_t messages = 0;
  Samples::ForEach([&](auto sample) {
    using M = decltype(sample);
    ++messages;
    SCOPED_TRACE(MessageTypeOf<M>()->name());
    const M untouched;
    WithFields(sample, untouched, [](const auto& field, const auto& usual) {
      EXPECT_FALSE(Same(field, usual)) << "a field of the sample has its default: what if the codec forgets it?";
      return true;
    });
    const EnvelopePtr sent = MakeEnvelope<M>(ActorRef(), std::move(sample));
    std::string bytes;
    const auto codec = Registry().Encode(*sent, bytes, context);
    ASSERT_TRUE(codec.ok()) << codec.status();
    const EncodedMessage encoded{(*codec)->manifest(), (*codec)->version(), bytes};
    const auto got = Registry().Decode(encoded, {}, context);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE((*got)->template Is<M>());
    EXPECT_TRUE(Same(sent->template As<M>(), (*got)->template As<M>()));
    // Nothing that is cut short or goes on is taken.
    for (size_t size = 0; size < bytes.size(); ++size) {
      const EncodedMessage cut{encoded.manifest, encoded.version, std::string_view(bytes).substr(0, size)};
      EXPECT_EQ(ErrorKindOf<SerializationErrorKind>(Registry().Decode(cut, {}, context).status()),
                SerializationErrorKind::kCorrupt);
    }
    bytes += "x";
    EXPECT_FALSE(Registry().Decode({encoded.manifest, encoded.version, bytes}, {}, context).ok());
  });
  // All that there are.
  EXPECT_EQ(messages + CodecRegistry::BuiltIn().Manifests().size(), Registry().Manifests().size());
}

TEST(ProtocolCodecs, KeepTheKindOfAnError) {
  std::string bytes;
  ASSERT_TRUE(
      Registry().Encode(*MakeEnvelope<OpenWriterFailure>(ActorRef(), OpenWriterFailure{Error(), 8}), bytes).ok());
  const auto got = Registry().Decode({"fraktor.persistence.open_writer_failure", 0, bytes});
  ASSERT_TRUE(got.ok()) << got.status();
  const absl::Status cause = (*got)->As<OpenWriterFailure>().cause;
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(cause), JournalErrorKind::kFenced);
  EXPECT_EQ(ErrorDetailNumberOf<JournalErrorKind>(cause, "nr"), 7);
  EXPECT_EQ(cause, Error());
}

// A journal on another node may be of a former version.
TEST(ProtocolCodecs, ReadAnOpeningThatDoesNotSayWhatIsDeleted) {
  std::string bytes;
  for (const uint64_t field : {3, 1000, 8}) AppendVarint(bytes, field);
  const auto got = Registry().Decode({"fraktor.persistence.writer_is_open", 0, bytes});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(Same((*got)->As<WriterIsOpen>(), WriterIsOpen{3, 1000, 8, 0}));
}

// PER-14: the last number of a replay is sent to a client that asks for it, and to no older one.
TEST(ProtocolCodecs, TellTheLastNumberOfAReplayOnlyToThoseWhoAsk) {
  constexpr uint64_t kAsks = uint64_t{1} << 63;
  std::string bytes;
  ASSERT_TRUE(Registry().Encode(*MakeEnvelope<RecoverySuccess>(ActorRef(), RecoverySuccess{1000, 8}), bytes).ok());
  std::string as_ever;
  for (const uint64_t field : {1000, 8}) AppendVarint(as_ever, field);
  EXPECT_EQ(bytes, as_ever);
  // A journal on an older node returns the number that it was sent.
  std::string echo;
  for (const uint64_t field : {kAsks | 1000, uint64_t{8}}) AppendVarint(echo, field);
  const auto got = Registry().Decode({"fraktor.persistence.recovery_success", 0, echo});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)->As<RecoverySuccess>().highest_sequence_nr, 1000u);
  EXPECT_FALSE((*got)->As<RecoverySuccess>().last_sent_nr.has_value());
  // An older client does not ask.
  OneRef refs;
  const CodecContext context{.refs = &refs};
  bytes.clear();
  ReplayMessages replay{
      .persistence_id = "a", .knows_highest = true, .highest_sequence_nr = 1000, .client = OneRef::It()};
  ASSERT_TRUE(Registry().Encode(*MakeEnvelope<ReplayMessages>(ActorRef(), std::move(replay)), bytes, context).ok());
  const auto read = Registry().Decode({"fraktor.persistence.replay", 0, bytes}, {}, context);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE((*read)->As<ReplayMessages>().asks_for_last_sent);
}

// PER-19: a node of an older version does not send the epoch of the owner.
TEST(ProtocolCodecs, ReadRequestsOfOlderNodesAsThoseOfNoEpoch) {
  OneRef refs;
  const CodecContext context{.refs = &refs};
  const auto read_without_epoch = [&](auto request) {
    using M = decltype(request);
    request.epoch = 3;  // in one byte, which is the last one
    std::string bytes;
    const auto codec = Registry().Encode(*MakeEnvelope<M>(ActorRef(), M(request)), bytes, context);
    EXPECT_TRUE(codec.ok()) << codec.status();
    EXPECT_EQ((*codec)->version(), 1u);
    EXPECT_EQ(bytes.back(), '\3');
    bytes.pop_back();
    const auto got = Registry().Decode({(*codec)->manifest(), 0, bytes}, {}, context);
    ASSERT_TRUE(got.ok()) << got.status();
    request.epoch = kNoEpoch;
    EXPECT_TRUE(Same((*got)->template As<M>(), request));
  };
  const ActorRef it = OneRef::It();
  read_without_epoch(DeleteMessagesTo{"account-7", 5, it, 8});
  read_without_epoch(LoadSnapshot{"account-7", Criteria(), 50, it, 8});
  read_without_epoch(SaveSnapshot{State(), it, 8});
  read_without_epoch(DeleteSnapshot{State().metadata, it, 8});
  read_without_epoch(DeleteSnapshots{"account-7", Criteria(), it, 8});
}

// Answers have the bytes that older nodes read.
TEST(ProtocolCodecs, WriteAnswersThatOlderNodesRead) {
  Samples::ForEach([](auto sample) {
    using M = decltype(sample);
    constexpr bool kIsRequest = requires(const M& message) { message.client; };
    if (kIsRequest || std::is_same_v<M, WriterIsOpen>) return;
    std::string bytes;
    const auto codec = Registry().Encode(*MakeEnvelope<M>(ActorRef(), std::move(sample)), bytes);
    ASSERT_TRUE(codec.ok()) << codec.status();
    EXPECT_EQ((*codec)->version(), 0u) << (*codec)->manifest();
  });
}

// At the end of a system many clients end before the answer of a store: that is no news.
TEST(ProtocolMessages, AnswersAreNotLoggedAsDeadLetters) {
  Samples::ForEach([](const auto& sample) {
    using M = std::decay_t<decltype(sample)>;
    constexpr bool kIsRequest = requires(const M& message) { message.client; };
    EXPECT_EQ(MessageTypeOf<M>()->is_suppressed(), !kIsRequest) << MessageTypeOf<M>()->name();
  });
  EXPECT_TRUE(MessageTypeOf<protocol_internal::OperationReady>()->is_suppressed());
}

// P1: a node that does not know that something could be spared answers everything, and so do all.
TEST(ProtocolCodecs, AskAnotherNodeForAllAnswers) {
  OneRef refs;
  const CodecContext context{.refs = &refs};
  std::string bytes;
  WriteMessages write{.batch = 9, .only_events_are_answered = true};
  ASSERT_TRUE(Registry().Encode(*MakeEnvelope<WriteMessages>(ActorRef(), std::move(write)), bytes, context).ok());
  const auto read = Registry().Decode({"fraktor.persistence.write", 0, bytes}, {}, context);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->As<WriteMessages>().batch, 9u);
  EXPECT_FALSE((*read)->As<WriteMessages>().only_events_are_answered);
}

// PER-2, PER-14: a journal on an older node reads a deferred entry, and answers it.
TEST(ProtocolCodecs, TellWhatAWriterKnowsToBeStoredInAnEntryThatOlderNodesRead) {
  constexpr uint64_t kMark = uint64_t{1} << 63;
  OneRef refs;
  const CodecContext context{.refs = &refs};
  const auto encode = [&](WriteMessages write) {
    std::string bytes;
    const auto codec =
        Registry().Encode(*MakeEnvelope<WriteMessages>(ActorRef(), std::move(write)), bytes, context).value();
    EXPECT_EQ(codec->version(), 0u);
    return bytes;
  };
  const auto decode = [&](const std::string& bytes) {
    auto read = Registry().Decode({"fraktor.persistence.write", 0, bytes}, {}, context);
    EXPECT_TRUE(read.ok()) << read.status();
    return std::move((*read)->As<WriteMessages>());
  };
  const auto with_writes = [](std::vector<uint64_t> known, std::vector<DeferredEntry> deferred) {
    WriteMessages write{.deferred = std::move(deferred), .batch = 9};
    for (size_t i = 0; i < known.size(); ++i) {
      write.writes.push_back(AtomicWrite::Make(Repr(20 + i)).value());
      write.writes.back().set_known_stored(known[i]);
    }
    return write;
  };
  // An older node reads one entry for writes of the same number, among the writer's own.
  const std::vector<DeferredEntry> own = {{0, 1}, {1, 2}, {4, 3}};
  EXPECT_EQ(
      encode(with_writes({7, 7, 9, 0}, own)),
      encode(with_writes({0, 0, 0, 0}, {{0, kMark | 7}, {0, 1}, {1, 2}, {2, kMark | 9}, {3, kMark | 0}, {4, 3}})));
  EXPECT_EQ(encode(with_writes({7}, {})), encode(with_writes({0}, {{0, kMark | 7}})));
  // A node of today reads the writer's own entries only.
  const WriteMessages read = decode(encode(with_writes({7, 7, 9, 0}, own)));
  EXPECT_TRUE(Same(read.writes, with_writes({7, 7, 9, 0}, {}).writes));
  EXPECT_TRUE(Same(read.deferred, own));
  // A writer on an older node does not say it: 0, and its writes are not checked.
  const WriteMessages silent = decode(encode(with_writes({0, 0}, {{0, 1}})));
  EXPECT_EQ(silent.writes[0].known_stored(), 0u);
  EXPECT_EQ(silent.writes[1].known_stored(), 0u);
  EXPECT_TRUE(Same(silent.deferred, std::vector<DeferredEntry>{{0, 1}}));
  // There are no such numbers, but nothing else must come of them.
  EXPECT_EQ(decode(encode(with_writes({~uint64_t{0}}, {}))).writes[0].known_stored(), kMark - 1);
}

TEST(ProtocolCodecs, RefuseWhatNoClientSends) {
  OneRef refs;
  const CodecContext context{.refs = &refs};
  const auto decode_write = [&](WriteMessages write) {
    std::string bytes;
    EXPECT_TRUE(Registry().Encode(*MakeEnvelope<WriteMessages>(ActorRef(), std::move(write)), bytes, context).ok());
    return Registry().Decode({"fraktor.persistence.write", 0, bytes}, {}, context).status();
  };
  EXPECT_TRUE(decode_write({.deferred = {{0, 1}, {0, 2}}}).ok());
  // Entries that nobody would ever answer.
  EXPECT_FALSE(decode_write({.deferred = {{1, 1}}}).ok());
  WriteMessages backwards{.deferred = {{1, 1}, {0, 2}}};
  backwards.writes.push_back(AtomicWrite::Make(Repr(3)).value());
  EXPECT_FALSE(decode_write(std::move(backwards)).ok());
  // An atomic write without events.
  EXPECT_FALSE(Registry().Decode({"fraktor.persistence.write", 0, std::string(40, '\1').replace(1, 1, 1, '\0')}).ok());
  // More tags than there are bytes for: nobody reserves room for four billion.
  std::string event(1, '\1');                                 // the id of the one before
  event += std::string(3 + 24, '\0') + std::string("\0", 1);  // numbers, writer, time, version
  AppendVarint(event, 0xffffffff);                            // tags
  event += std::string(4, '\0');                              // nothing else
  std::string page("\1\1\1", 3);
  AppendSized(page, event);
  page += std::string("\1\1", 2);
  EXPECT_FALSE(Registry().Decode({"fraktor.persistence.replayed", 0, page}).ok());
}

}  // namespace
}  // namespace fraktor
