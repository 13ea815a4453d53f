#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/wrappers.pb.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor {
namespace {

using google::protobuf::Int64Value;
using NamePart = google::protobuf::UninterpretedOption::NamePart;

enum class Color : uint8_t { kRed = 1, kBlue = 200 };

struct Deposited {
  int64_t amount = 0;
  std::string note = {};
  friend bool operator==(const Deposited&, const Deposited&) = default;
};

// The event as a later release of the program declares it.
struct DepositedLater {
  int64_t amount = 0;
  std::string note = {};
  std::string teller = "nobody";
};

struct Everything {
  bool flag = false;
  int8_t small = 0;
  uint16_t port = 0;
  double ratio = 0;
  float part = 0;
  Color color = Color::kRed;
  absl::Time when = absl::UnixEpoch();
  absl::Duration pause = absl::ZeroDuration();
  std::vector<Deposited> deposits = {};
  std::vector<bool> bits = {};
  std::optional<std::string> name = {};
  std::map<std::string, int64_t> counts = {};
  absl::Time end = absl::InfiniteFuture();
  absl::Status error = {};
  friend bool operator==(const Everything&, const Everything&) = default;
};

struct Ping {};

struct Introduce {
  ActorRef who = {};
  std::vector<ActorRef> friends = {};
};

// A list as a chain of nested values.
struct Chain {
  std::vector<Chain> next = {};
};

struct Moody {
  enum Mood { kCalm, kRefusesToWrite, kThrowsOnWrite, kRefusesToRead, kThrowsOnRead, kThrowsANumber };
  Mood mood = kCalm;
};

struct Blob {
  std::string bytes = {};
};

struct Unregistered {};

}  // namespace

template <>
struct Codec<Deposited> : FieldCodec<Deposited, &Deposited::amount, &Deposited::note> {
  static constexpr std::string_view kManifest = "bank.deposited";
};
template <>
struct Codec<DepositedLater>
    : FieldCodec<DepositedLater, &DepositedLater::amount, &DepositedLater::note, &DepositedLater::teller> {
  static constexpr std::string_view kManifest = "bank.deposited";
  static constexpr uint32_t kVersion = 1;
};
template <>
struct Codec<Everything>
    : FieldCodec<Everything, &Everything::flag, &Everything::small, &Everything::port, &Everything::ratio,
                 &Everything::part, &Everything::color, &Everything::when, &Everything::pause, &Everything::deposits,
                 &Everything::bits, &Everything::name, &Everything::counts, &Everything::end, &Everything::error> {
  static constexpr std::string_view kManifest = "test.everything";
};
template <>
struct Codec<Ping> : FieldCodec<Ping> {
  static constexpr std::string_view kManifest = "test.ping";
};
template <>
struct Codec<Introduce> : FieldCodec<Introduce, &Introduce::who, &Introduce::friends> {
  static constexpr std::string_view kManifest = "test.introduce";
};
template <>
struct Codec<Chain> : FieldCodec<Chain, &Chain::next> {
  static constexpr std::string_view kManifest = "test.chain";
};
template <>
struct Codec<Blob> : FieldCodec<Blob, &Blob::bytes> {
  static constexpr std::string_view kManifest = "test.blob";
};
template <>
struct Codec<Moody> {
  static constexpr std::string_view kManifest = "test.moody";
  static absl::Status Encode(const Moody& moody, Encoder& out) {
    out.Value(moody.mood);
    if (moody.mood == Moody::kThrowsOnWrite) throw std::runtime_error("not today");
    if (moody.mood == Moody::kRefusesToWrite) return absl::FailedPreconditionError("not in this mood");
    return absl::OkStatus();
  }
  static absl::StatusOr<Moody> Decode(Decoder& in) {
    const auto mood = in.Value<Moody::Mood>();
    if (mood == Moody::kThrowsOnRead) throw std::runtime_error("not today");
    if (mood == Moody::kThrowsANumber) throw 7;
    if (mood == Moody::kRefusesToRead) return absl::FailedPreconditionError("not in this mood");
    return Moody{mood};
  }
};

namespace {

std::shared_ptr<const CodecRegistry> Registry() {
  CodecSetup setup;
  setup.Add<Deposited, Everything, Ping, Introduce, Chain, Moody, Blob, Int64Value, NamePart>();
  return setup.Build().value();
}

std::optional<SerializationErrorKind> KindOf(const absl::Status& status) {
  return ErrorKindOf<SerializationErrorKind>(status);
}

bool Mentions(const absl::Status& status, std::string_view text) {
  return ToStd(status.message()).find(text) != std::string_view::npos;
}

template <class T>
absl::StatusOr<T> ThereAndBack(const CodecRegistry& registry, const T& message, const CodecContext& context = {}) {
  std::string bytes = "before";
  const absl::StatusOr<const MessageCodec*> codec = registry.Encode(message, bytes, context);
  if (!codec.ok()) {
    EXPECT_EQ(bytes, "before");
    return codec.status();
  }
  EXPECT_EQ(bytes.substr(0, 6), "before");
  const std::string_view own = std::string_view(bytes).substr(6);
  return registry.DecodeAs<T>({(*codec)->manifest(), (*codec)->version(), own}, context);
}

Everything Full() {
  return {.flag = true,
          .small = -128,
          .port = 65535,
          .ratio = -0.1,
          .part = 1e30f,
          .color = Color::kBlue,
          .when = absl::FromUnixNanos(1234567890123456789),
          .pause = -absl::InfiniteDuration(),
          .deposits = {{.amount = std::numeric_limits<int64_t>::min(), .note = "a"}, {.amount = -1}},
          .bits = {true, false, true},
          .name = "name",
          .counts = {{"a", 1}, {"b", std::numeric_limits<int64_t>::max()}},
          .end = absl::InfinitePast(),
          .error = SerializationError(SerializationErrorKind::kTooLarge, "m", "text")};
}

// P20, P107
TEST(CodecRegistry, BringsAMessageWithACodecBackEqual) {
  const auto registry = Registry();
  EXPECT_EQ(ThereAndBack(*registry, Full()).value(), Full());
  EXPECT_EQ(ThereAndBack(*registry, Everything{}).value(), Everything{});
  EXPECT_TRUE(ThereAndBack(*registry, Ping{}).ok());
}

TEST(CodecRegistry, TakesAProtobufMessageWithoutCeremony) {
  const auto registry = Registry();
  Int64Value value;
  value.set_value(-7);
  EXPECT_EQ(ThereAndBack(*registry, value).value().value(), -7);
  EXPECT_EQ(registry->Find<Int64Value>()->manifest(), "google.protobuf.Int64Value");
  std::string bytes;
  ASSERT_TRUE(registry->Encode(value, bytes).ok());
  EXPECT_EQ(bytes, value.SerializeAsString());
}

TEST(CodecRegistry, WritesEqualProtobufMessagesAsEqualBytes) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "maps of the installed protobuf have another layout than those of instrumented code";
#endif
  const auto registry = CodecSetup().Add<google::protobuf::Struct>().Build().value();
  // The maps are filled in different orders, so that their inner orders differ.
  google::protobuf::Struct up;
  google::protobuf::Struct down;
  for (int i = 0; i < 100; ++i) {
    (*up.mutable_fields())[std::to_string(i)].set_number_value(i);
    (*down.mutable_fields())[std::to_string(99 - i)].set_number_value(99 - i);
  }
  std::string up_bytes;
  std::string down_bytes;
  ASSERT_TRUE(registry->Encode(up, up_bytes).ok());
  ASSERT_TRUE(registry->Encode(down, down_bytes).ok());
  EXPECT_EQ(up_bytes, down_bytes);
  EXPECT_EQ(ThereAndBack(*registry, up).value().fields_size(), 100);
}

// A status from a stranger.
TEST(Decoder, TakesAnUnknownCodeAsUnknownAndRefusesTooManyPayloads) {
  const auto read = [](std::string_view bytes) {
    const CodecContext context;
    Decoder in(bytes, 0, 0, context);
    const absl::Status status = in.Status();
    return std::make_pair(status, in.Finish());
  };
  EXPECT_EQ(read(std::string_view("\x7e\x01x\x00", 4)).first.code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(read(std::string_view("\x03\x01x\x00", 4)).first.code(), absl::StatusCode::kUnknown);  // -2
  EXPECT_TRUE(read(std::string_view("\x00\x00\x00", 3)).first.ok());
  EXPECT_EQ(read(std::string_view("\x04\x01x\x00", 4)).first, absl::UnknownError("x"));
  EXPECT_FALSE(read(std::string("\x04\x01x\x11", 4) + std::string(34, '\0')).second.ok());
  EXPECT_FALSE(read(std::string_view("\x04\x05x", 3)).second.ok());
}

TEST(CodecRegistry, RefusesAProtobufMessageThatLacksARequiredField) {
  const auto registry = Registry();
  const absl::Status refused = ThereAndBack(*registry, NamePart()).status();
  EXPECT_EQ(KindOf(refused), SerializationErrorKind::kCannotEncode);
  EXPECT_TRUE(Mentions(refused, "required field")) << refused;
  const auto corrupt = registry->Decode({"google.protobuf.Int64Value", 0, "\xff"});
  EXPECT_EQ(KindOf(corrupt.status()), SerializationErrorKind::kCorrupt) << corrupt.status();
}

// P91
TEST(CodecRegistry, AlwaysKnowsNumbersAndTexts) {
  const CodecRegistry& registry = CodecRegistry::BuiltIn();
  EXPECT_EQ(ThereAndBack<int64_t>(registry, -5).value(), -5);
  EXPECT_EQ(ThereAndBack<int32_t>(registry, 42).value(), 42);
  EXPECT_EQ(ThereAndBack<uint64_t>(registry, std::numeric_limits<uint64_t>::max()).value(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ThereAndBack<double>(registry, 0.5).value(), 0.5);
  EXPECT_EQ(ThereAndBack<bool>(registry, true).value(), true);
  EXPECT_EQ(ThereAndBack<std::string>(registry, std::string("a\0b", 3)).value(), std::string("a\0b", 3));
  EXPECT_EQ(ThereAndBack<std::string>(registry, "").value(), "");
}

TEST(CodecRegistry, MakesAnEnvelopeOfWhatItReads) {
  const auto registry = Registry();
  const EnvelopePtr sent = MakeEnvelope<Deposited>(ActorRef(), Deposited{5, "five"});
  std::string bytes;
  const MessageCodec* const codec = registry->Encode(*sent, bytes).value();
  const EnvelopePtr received = registry->Decode({codec->manifest(), codec->version(), bytes}).value();
  ASSERT_TRUE(received->Is<Deposited>());
  EXPECT_EQ(received->As<Deposited>(), (Deposited{5, "five"}));
  Int64Value value;
  value.set_value(9);
  bytes.clear();
  ASSERT_TRUE(registry->Encode(value, bytes).ok());
  EXPECT_EQ(registry->Decode({"google.protobuf.Int64Value", 0, bytes}).value()->As<Int64Value>().value(), 9);
}

// P121
TEST(Codec, OfALaterVersionReadsWhatOlderOnesWrote) {
  const auto later = CodecSetup().Add<DepositedLater>().Build().value();
  const auto earlier = CodecSetup().Add<Deposited>().Build().value();
  std::string bytes;
  ASSERT_TRUE(earlier->Encode(Deposited{3, "three"}, bytes).ok());
  const DepositedLater read = later->DecodeAs<DepositedLater>({"bank.deposited", 0, bytes}).value();
  EXPECT_EQ(read.amount, 3);
  EXPECT_EQ(read.note, "three");
  EXPECT_EQ(read.teller, "nobody");
  // A field that is missing in its own version is an error, not a default.
  EXPECT_EQ(KindOf(later->Decode({"bank.deposited", 1, bytes}).status()), SerializationErrorKind::kCorrupt);
  // An older program returns an error that says what to do.
  bytes.clear();
  ASSERT_TRUE(later->Encode(DepositedLater{3, "three", "Ann"}, bytes).ok());
  const absl::Status newer = earlier->Decode({"bank.deposited", 1, bytes}).status();
  EXPECT_EQ(KindOf(newer), SerializationErrorKind::kNewerVersion);
  EXPECT_TRUE(Mentions(newer, "\"bank.deposited\"") && Mentions(newer, "version 1") && Mentions(newer, "update"))
      << newer;
}

TEST(CodecSetup, ReadsAnAliasAndNeverWritesIt) {
  const auto registry = CodecSetup().Add<Deposited>().AddAlias<Deposited>("bank.payed_in").Build().value();
  std::string bytes;
  EXPECT_EQ(registry->Encode(Deposited{1, ""}, bytes).value()->manifest(), "bank.deposited");
  EXPECT_EQ(registry->DecodeAs<Deposited>({"bank.payed_in", 0, bytes}).value().amount, 1);
  const auto renamed = CodecSetup().AddAs<Int64Value>("bank.number").Build().value();
  EXPECT_EQ(renamed->Find<Int64Value>()->manifest(), "bank.number");
}

TEST(CodecSetup, RefusesWhatCannotBeToldApart) {
  const auto refused = [](const CodecSetup& setup) { return setup.Build().status(); };
  const absl::Status twice = refused(CodecSetup().Add<Deposited, Deposited>());
  EXPECT_EQ(KindOf(twice), SerializationErrorKind::kInvalidSetup);
  EXPECT_TRUE(Mentions(twice, "Deposited were added twice")) << twice;
  const absl::Status shared = refused(CodecSetup().Add<Deposited>().Add(CodecSetup().Add<DepositedLater>()));
  EXPECT_EQ(KindOf(shared), SerializationErrorKind::kInvalidSetup);
  EXPECT_TRUE(Mentions(shared, "the manifest \"bank.deposited\" was given to two types")) << shared;
  EXPECT_EQ(KindOf(refused(CodecSetup().AddAs<Deposited>("a b"))), SerializationErrorKind::kInvalidSetup);
  EXPECT_EQ(KindOf(refused(CodecSetup().AddAs<Deposited>(std::string(256, 'a')))),
            SerializationErrorKind::kInvalidSetup);
  EXPECT_TRUE(CodecSetup().AddAs<Deposited>(std::string(255, 'a')).Build().ok());
  EXPECT_EQ(KindOf(refused(CodecSetup().Add<Deposited>().AddAlias<Deposited>(""))),
            SerializationErrorKind::kInvalidSetup);
  EXPECT_EQ(KindOf(refused(CodecSetup().Add<Deposited>().AddAlias<Deposited>("fraktor.int64"))),
            SerializationErrorKind::kInvalidSetup);
  const absl::Status alias = refused(CodecSetup().AddAlias<Deposited>("bank.payed_in"));
  EXPECT_EQ(KindOf(alias), SerializationErrorKind::kInvalidSetup);
  EXPECT_TRUE(Mentions(alias, "which was not added")) << alias;
}

TEST(CodecRegistry, SaysWhatIsNotRegistered) {
  const auto registry = Registry();
  std::string bytes = "before";
  const absl::Status type = registry->Encode(*MakeEnvelope<Unregistered>(ActorRef()), bytes).status();
  EXPECT_EQ(KindOf(type), SerializationErrorKind::kNotRegistered);
  EXPECT_TRUE(Mentions(type, "Unregistered") && Mentions(type, "ActorSystemOptions::codecs")) << type;
  EXPECT_EQ(bytes, "before");
  const absl::Status manifest = registry->Decode({"bank.\nlost", 0, ""}).status();
  EXPECT_EQ(KindOf(manifest), SerializationErrorKind::kUnknownManifest);
  EXPECT_TRUE(Mentions(manifest, "\"bank.\\x0alost\"")) << manifest;
  EXPECT_EQ(KindOf(registry->DecodeAs<Ping>({"bank.deposited", 0, ""}).status()), SerializationErrorKind::kWrongType);
  EXPECT_EQ(
      ErrorDetailOf<SerializationErrorKind>(registry->DecodeAs<Ping>({"bank.deposited", 0, ""}).status(), "manifest"),
      "bank.deposited");
}

TEST(CodecRegistry, TurnsWhatACodecRefusesOrThrowsIntoAnError) {
  const auto registry = Registry();
  const absl::Status refused = ThereAndBack(*registry, Moody{Moody::kRefusesToWrite}).status();
  EXPECT_EQ(KindOf(refused), SerializationErrorKind::kCannotEncode);
  EXPECT_TRUE(Mentions(refused, "\"test.moody\": not in this mood")) << refused;
  const absl::Status thrown = ThereAndBack(*registry, Moody{Moody::kThrowsOnWrite}).status();
  EXPECT_EQ(KindOf(thrown), SerializationErrorKind::kCannotEncode);
  EXPECT_TRUE(Mentions(thrown, "its codec threw: not today")) << thrown;
  for (const Moody::Mood mood : {Moody::kRefusesToRead, Moody::kThrowsOnRead, Moody::kThrowsANumber}) {
    EXPECT_EQ(KindOf(ThereAndBack(*registry, Moody{mood}).status()), SerializationErrorKind::kCorrupt);
  }
}

TEST(CodecRegistry, KeepsToTheLimitOfBytes) {
  const auto registry = Registry();
  const Blob blob{std::string(98, 'x')};  // 98 bytes and one for the length
  std::string bytes;
  EXPECT_TRUE(registry->Encode(blob, bytes, {.max_bytes = 99}).ok());
  EXPECT_EQ(bytes.size(), 99u);
  const absl::Status large = ThereAndBack(*registry, blob, {.max_bytes = 98}).status();
  EXPECT_EQ(KindOf(large), SerializationErrorKind::kTooLarge);
  EXPECT_TRUE(Mentions(large, "98") && Mentions(large, "test.blob")) << large;
  EXPECT_EQ(KindOf(ThereAndBack(*registry, blob, {.max_bytes = 10}).status()), SerializationErrorKind::kTooLarge);
  EXPECT_EQ(KindOf(registry->Decode({"test.blob", 0, bytes}, {}, {.max_bytes = 98}).status()),
            SerializationErrorKind::kTooLarge);
  Int64Value value;
  value.set_value(1);
  EXPECT_EQ(KindOf(ThereAndBack(*registry, value, {.max_bytes = 1}).status()), SerializationErrorKind::kTooLarge);
}

TEST(Decoder, TakesNothingThatIsCutShortOrGoesOn) {
  const auto registry = Registry();
  std::string bytes;
  ASSERT_TRUE(registry->Encode(Full(), bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = registry->Decode({"test.everything", 0, std::string_view(bytes).substr(0, size)});
    EXPECT_EQ(KindOf(cut.status()), SerializationErrorKind::kCorrupt) << size;
  }
  EXPECT_EQ(KindOf(registry->Decode({"test.everything", 0, bytes + "x"}).status()), SerializationErrorKind::kCorrupt);
}

TEST(Decoder, ReservesNothingForElementsThatCannotBeThere) {
  const auto registry = Registry();
  std::string bytes;
  AppendVarint(bytes, uint64_t{1} << 60);
  const absl::Status refused = registry->Decode({"test.chain", 0, bytes}).status();
  EXPECT_EQ(KindOf(refused), SerializationErrorKind::kCorrupt);
  EXPECT_TRUE(Mentions(refused, "elements follow")) << refused;
}

TEST(Decoder, EndsBeforePartsWithinPartsUseUpTheStack) {
  const auto registry = Registry();
  const auto nested = [](int depth) {
    Chain chain;
    for (int i = 0; i < depth; ++i) {
      Chain outer;
      outer.next.push_back(std::move(chain));
      chain = std::move(outer);
    }
    return chain;
  };
  EXPECT_TRUE(ThereAndBack(*registry, nested(Decoder::kMaxDepth)).ok());
  const absl::Status deep = ThereAndBack(*registry, nested(Decoder::kMaxDepth + 1)).status();
  EXPECT_EQ(KindOf(deep), SerializationErrorKind::kCorrupt);
  EXPECT_TRUE(Mentions(deep, "too deep")) << deep;
}

class Listener : public Actor<Listener, Ping> {
 public:
  void On(Context&, const Ping&) {}
};

TEST(ActorRefCodec, BringsAReferenceBackAsAReferenceThatWorks) {
  TestKit kit(TestKitOptions{.system = {.codecs = Registry()}});
  const CodecRegistry& codecs = CodecsOf(kit.system());
  const ActorRef one = kit.system().Spawn<Listener>("one").untyped();
  const ActorRef two = kit.system().Spawn<Listener>("two").untyped();
  PathRefs refs(kit.system());
  const Introduce sent{one, {two, ActorRef(), one}};
  EXPECT_EQ(ThereAndBack(codecs, sent, {.refs = &refs}).value().who, one);
  EXPECT_EQ(ThereAndBack(codecs, sent, {.refs = &refs}).value().friends, sent.friends);
  // A reference to an ended actor is no one, before and after.
  std::string bytes;
  ASSERT_TRUE(codecs.Encode(sent, bytes, {.refs = &refs}).ok());
  kit.system().Stop(two);
  kit.Settle();
  EXPECT_EQ(codecs.DecodeAs<Introduce>({"test.introduce", 0, bytes}, {.refs = &refs}).value().friends,
            (std::vector<ActorRef>{ActorRef(), ActorRef(), one}));
  EXPECT_EQ(ThereAndBack(codecs, sent, {.refs = &refs}).value().friends[0], ActorRef());
  // The reference is read as the actor that has the path then.
  const ActorRef again = kit.system().Spawn<Listener>("two").untyped();
  EXPECT_EQ(codecs.DecodeAs<Introduce>({"test.introduce", 0, bytes}, {.refs = &refs}).value().friends[0], again);
}

TEST(ActorRefCodec, IsNeededForReferencesAndForNothingElse) {
  const auto registry = Registry();
  EXPECT_TRUE(ThereAndBack(*registry, Introduce{}).ok());
  TestKit kit;
  const ActorRef one = kit.system().Spawn<Listener>("one").untyped();
  const absl::Status refused = ThereAndBack(*registry, Introduce{one, {}}).status();
  EXPECT_EQ(KindOf(refused), SerializationErrorKind::kCannotEncode);
  EXPECT_TRUE(Mentions(refused, "CodecContext::refs")) << refused;
  EXPECT_EQ(KindOf(registry->Decode({"test.introduce", 0, std::string_view("\1a\0", 3)}).status()),
            SerializationErrorKind::kCorrupt);
  PathRefs refs(kit.system());
  EXPECT_EQ(KindOf(registry->Decode({"test.introduce", 0, std::string_view("\1a\0", 3)}, {}, {.refs = &refs}).status()),
            SerializationErrorKind::kCorrupt);
}

TEST(CodecsOf, AreThoseOfTheOptionsOrTheBuiltInOnes) {
  TestKit plain;
  EXPECT_EQ(&CodecsOf(plain.system()), &CodecRegistry::BuiltIn());
  EXPECT_EQ(CodecsOf(plain.system()).Manifests().size(), 8u);
  const auto registry = Registry();
  TestKit kit(TestKitOptions{.system = {.codecs = registry}});
  EXPECT_EQ(&CodecsOf(kit.system()), registry.get());
}

}  // namespace
}  // namespace fraktor
