// The examples of the headers of actor/event, message, observe, path, ref, registry, selection and
// serialization, so that they compile, and most of them run. //tools/tidy:tidy_test checks that
// each paragraph of an example stands here, line by line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/event/orphaned_message.h"
#include "fraktor/actor/event/undelivered_message.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/message/routing_key.h"
#include "fraktor/actor/message/type_name.h"
#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/internal/foreign_metrics.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/observe/prometheus_text.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/internal/actor_path_comparator.h"
#include "fraktor/actor/path/internal/actor_path_formatter.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/actor/path/internal/uri_parser.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/path/path_segment.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/actor/registry/internal/actor_path_registry.h"
#include "fraktor/actor/registry/internal/path_failure.h"
#include "fraktor/actor/registry/internal/remote_authority_registry.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/selection/internal/actor_selection_resolver.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/decoder.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/actor/serialization/message_codec.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

// The examples stand as they do in the headers.
// clang-format off
// An example may leave a variable to its reader.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

// A Codec is a specialization in the namespace fraktor, so the types are outside of the functions.
struct Deposited { int64_t amount = 0; std::string note = {}; };

template <>
struct fraktor::Codec<Deposited> : fraktor::FieldCodec<Deposited, &Deposited::amount, &Deposited::note> {
  static constexpr std::string_view kManifest = "bank.deposited";       // explicit and stable: it is stored
  static constexpr uint32_t kVersion = 1;                               // 0 if left out
};

struct Withdrawn { int64_t amount = 0; };

template <>
struct fraktor::Codec<Withdrawn> : fraktor::FieldCodec<Withdrawn, &Withdrawn::amount> {
  static constexpr std::string_view kManifest = "bank.withdrawn";
};

struct Shape { int64_t corners = 0; };

template <>
struct fraktor::Codec<Shape> {
  static constexpr std::string_view kManifest = "draw.shape";
  static constexpr uint32_t kVersion = 2;
  static void Encode(const Shape& shape, Encoder& out);                 // or absl::Status
  static Shape Decode(Decoder& in);                                     // or absl::StatusOr<Shape>
};                                                                      // in.version() is 0, 1 or 2

void fraktor::Codec<Shape>::Encode(const Shape& shape, Encoder& out) { out.Value(shape.corners); }
Shape fraktor::Codec<Shape>::Decode(Decoder& in) { return {in.Value<int64_t>()}; }

namespace shop { struct Order {}; }

namespace by_hand {

struct Deposited { int64_t amount = 0; std::string note = {}; fraktor::ActorRef from = {}; };

}  // namespace by_hand

template <>
struct fraktor::Codec<by_hand::Deposited> {
  using Deposited = by_hand::Deposited;
  static constexpr std::string_view kManifest = "bank.deposited_by_hand";
  static constexpr uint32_t kVersion = 2;
  static void Encode(const Deposited& event, Encoder& out) {
    out.Value(event.amount);                       // a number, in as few bytes as it needs
    out.Value(event.note);                         // a text, with its length
    out.Value(event.from);                         // an ActorRef, as the context says
  }
  static Deposited Decode(Decoder& in) {
    Deposited event;
    event.amount = in.Value<int64_t>();
    event.note = in.Value<std::string>();
    if (in.version() >= 2) event.from = in.Value<ActorRef>();       // a field that version 1 did not have
    return event;
  }
};

namespace fraktor {

using actor_internal::ActorPathRegistry;
using actor_internal::ActorSelectionResolver;
using actor_internal::ForeignMetrics;
using actor_internal::NodeClass;
using actor_internal::NodePool;
using actor_internal::NodePoolStats;
using actor_internal::ObservedId;
using actor_internal::PathFailureReporter;
using actor_internal::RemoteAuthorityRegistry;
using actor_internal::WorkerMetrics;
using path_internal::ActorPathComparator;
using path_internal::ActorPathFormatter;
using path_internal::ActorPathValidator;
using path_internal::AutoName;
using path_internal::ParseAutoName;
using path_internal::UriParser;
using path_internal::UriParts;

namespace {

namespace paths {

absl::Status Paths(const PathSegment& segment) {
  FRAKTOR_ASSIGN_OR_RETURN(ActorPath cart, ActorPathParser::Parse("pekko://shop@10.0.0.7:2552/user/cart#42"));
  std::string place = cart.ToString();        // "pekko://shop@10.0.0.7:2552/user/cart"
  std::string canonical = cart.ToCanonical(); // "pekko://shop@10.0.0.7:2552/user/cart#42": one incarnation
  ActorPath user = cart.Parent();             // "pekko://shop@10.0.0.7:2552/user"
  ActorPath item = cart.Child(segment);       // only the new segment was ever checked
  EXPECT_EQ(place, "pekko://shop@10.0.0.7:2552/user/cart");
  EXPECT_EQ(canonical, "pekko://shop@10.0.0.7:2552/user/cart#42");
  EXPECT_EQ(user.ToString(), "pekko://shop@10.0.0.7:2552/user");
  EXPECT_EQ(item.ToString(), "pekko://shop@10.0.0.7:2552/user/cart/milk");
  return absl::OkStatus();
}

TEST(HeaderExamples, ActorPath) { EXPECT_TRUE(Paths(*PathSegment::Create("milk")).ok()); }

TEST(HeaderExamples, ActorPathComparator) {
  const ActorPath a = *ActorPathParser::Parse("pekko://shop/user/cart#1");
  const ActorPath b = *ActorPathParser::Parse("pekko://shop/user/cart#2");
  std::vector<ActorPath> paths = {b, a};
  bool same_place = ActorPathComparator::Equals(a, b);    // system, authority and segments; not the uid
  bool same_actor = ActorPathComparator::RefEquals(a, b); // the uid too: the same incarnation
  std::sort(paths.begin(), paths.end(), ActorPathComparator::Less);
  EXPECT_TRUE(same_place);
  EXPECT_FALSE(same_actor);
}

void Format(const ActorPath& path) {
  std::string text = ActorPathFormatter::Format(path);  // "pekko://shop@10.0.0.7:2552/user/cart#42"
  EXPECT_EQ(text, "pekko://shop@10.0.0.7:2552/user/cart#42");
}

TEST(HeaderExamples, ActorPathParserAndFormatter) {
  absl::StatusOr<ActorPath> path = ActorPathParser::Parse("pekko://shop@10.0.0.7:2552/user/cart#42");
  ASSERT_TRUE(path.ok());
  Format(*path);
}

absl::Status Parts(const PathAuthority& authority) {
  FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts local, ActorPathParts::Local("shop"));
  FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts remote, ActorPathParts::Remote("shop", authority));
  std::string here = local.ToString();    // "pekko://shop"
  std::string there = remote.ToString();  // "pekko://shop@10.0.0.7:2552"
  EXPECT_EQ(here, "pekko://shop");
  EXPECT_EQ(there, "pekko://shop@10.0.0.7:2552");
  return absl::OkStatus();
}

absl::Status Authority() {
  FRAKTOR_ASSIGN_OR_RETURN(PathAuthority peer, PathAuthority::Create("pekko.tcp", "10.0.0.7", 2552));
  std::string text = peer.ToString();  // "pekko.tcp://10.0.0.7:2552"
  EXPECT_EQ(text, "pekko.tcp://10.0.0.7:2552");
  return absl::OkStatus();
}

TEST(HeaderExamples, ActorPathPartsAndPathAuthority) {
  EXPECT_TRUE(Parts(*PathAuthority::Create("pekko", "10.0.0.7", 2552)).ok());
  EXPECT_TRUE(Authority().ok());
}

absl::Status Validate(std::string_view name) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateUserName(name));  // name "a b": ' ' at 1 is not allowed; ...
  return absl::OkStatus();
}

TEST(HeaderExamples, ActorPathValidator) {
  EXPECT_TRUE(Validate("cart").ok());
  EXPECT_FALSE(Validate("a b").ok());
}

absl::Status Workers() {
  FRAKTOR_ASSIGN_OR_RETURN(ActorSelection workers, ActorSelection::Parse("../pool/*"));
  bool is_in_pool = workers.elements()[1].Matches("pool");
  EXPECT_TRUE(is_in_pool);
  return absl::OkStatus();
}

TEST(HeaderExamples, ActorSelection) {
  EXPECT_TRUE(Workers().ok());
  const ActorPath cart = *ActorPathParser::Parse("pekko://shop/user/cart");
  absl::StatusOr<ActorPath> till = ActorSelectionResolver::Resolve(cart, *ActorSelection::Parse("../till"));
  absl::StatusOr<ActorPath> none = ActorSelectionResolver::Resolve(cart, *ActorSelection::Parse("../../.."));
  EXPECT_EQ(till->ToString(), "pekko://shop/user/till");
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(none.status()), ActorPathErrorKind::kRelativeEscape);
}

TEST(HeaderExamples, PidAndActorUid) {
  Pid pid{.slot = 7, .generation = 3};
  bool names_an_actor = pid.IsValid();  // a default Pid names none
  EXPECT_TRUE(names_an_actor);
  const uint64_t key = 5;
  ActorUidIssuer issuer(key);                    // the key belongs to one start of one system
  ActorUid uid = issuer.UidOf(pid);              // never 0, and never the same for two pids
  std::optional<Pid> again = issuer.PidOf(uid);  // O(1), without a table
  EXPECT_EQ(again, pid);
}

TEST(HeaderExamples, Names) {
  std::string first = AutoName(0);                        // "$a"
  std::string later = AutoName(64);                       // "$ab"
  std::optional<uint64_t> number = ParseAutoName("$ab");  // 64
  EXPECT_EQ(first, "$a");
  EXPECT_EQ(later, "$ab");
  EXPECT_EQ(number, 64u);
  std::string_view name = GuardianSegments::NameOf(Guardian::kUser);           // "user"
  std::optional<Guardian> guardian = GuardianSegments::Find("temp");           // Guardian::kTemp
  EXPECT_EQ(name, "user");
  EXPECT_EQ(guardian, Guardian::kTemp);
}

absl::Status Segment(const ActorPath& user) {
  FRAKTOR_ASSIGN_OR_RETURN(PathSegment cart, PathSegment::Create("cart"));  // a user's name: not empty, no leading $
  ActorPath path = user.Child(cart);
  EXPECT_EQ(path.ToString(), "pekko://shop/user/cart");
  return absl::OkStatus();
}

TEST(HeaderExamples, PathSegment) { EXPECT_TRUE(Segment(*ActorPathParser::Parse("pekko://shop/user")).ok()); }

TEST(HeaderExamples, PathError) {
  const std::string text = "pekko://shop/user/a(b";
  absl::StatusOr<ActorPath> path = ActorPathParser::Parse(text);
  if (ErrorKindOf<ActorPathErrorKind>(path.status()) == ActorPathErrorKind::kInvalidSegment) {
    std::optional<int64_t> index = ErrorDetailNumberOf<ActorPathErrorKind>(path.status(), "index");
  }
  EXPECT_FALSE(path.ok());
}

TEST(HeaderExamples, UriParser) {
  absl::StatusOr<UriParts> uri = UriParser::Parse("pekko://shop@[2001:db8::1]:2552/user/cart?x=1#42");
  EXPECT_EQ(uri->host, "[2001:db8::1]");
  EXPECT_EQ(uri->fragment, "42");
}

}  // namespace paths

namespace registries {

absl::Status Register(uint64_t key, Pid root, Pid user, Pid cart, Pid worker) {
  const ActorSystemConfig config{.system_name = "shop"};
  FRAKTOR_ASSIGN_OR_RETURN(auto registry, ActorPathRegistry::Create(config, {.uid_key = key}));
  FRAKTOR_RETURN_IF_ERROR(registry->RegisterRoot(root));
  FRAKTOR_RETURN_IF_ERROR(registry->Register(user, root, "user"));
  FRAKTOR_RETURN_IF_ERROR(registry->Register(cart, user, "cart"));
  FRAKTOR_RETURN_IF_ERROR(registry->RegisterAuto(worker, cart, 0));  // "$a"
  absl::StatusOr<std::string> text = registry->TextOf(worker);       // "pekko://shop/user/cart/$a"
  Pid found = registry->Find(*ActorPathParser::Parse("pekko://shop/user/cart"));
  EXPECT_EQ(*text, "pekko://shop/user/cart/$a");
  EXPECT_EQ(found, cart);
  return absl::OkStatus();
}

TEST(HeaderExamples, ActorPathRegistry) { EXPECT_TRUE(Register(5, {1, 1}, {2, 1}, {3, 1}, {4, 1}).ok()); }

absl::Status Report(const PathFailureReporter& reporter, const ActorPath& base, const ActorSelection& selection,
                    std::string_view from, std::string_view text, const MessageView& view, Instant now) {
  absl::StatusOr<ActorPath> path = ActorSelectionResolver::Resolve(base, selection);
  if (!path.ok()) {
    return reporter.Report(path.status(), {.sender = from, .recipient = text, .message = view}, now);
  }
  return absl::OkStatus();
}

TEST(HeaderExamples, PathEvents) {
  EventStream stream;
  std::vector<std::string> notes;
  const auto Note = [&](std::string_view text) { notes.emplace_back(text); };
  EventSubscription failures = stream.Listen<PathFailure>(
      [&](const PathFailure& failure) { Note(failure.recipient); });
  EventSubscription evictions = stream.Listen<UidReservationEvicted>(
      [&](const UidReservationEvicted& eviction) { Note(eviction.path); });
  const absl::Status error = absl::NotFoundError("there is no actor");
  stream.PublishToAll(PathFailure{.error = error, .sender = "", .recipient = "/user/a", .at = {}});
  EXPECT_EQ(notes, std::vector<std::string>{"/user/a"});
}

TEST(HeaderExamples, PathFailure) {
  EventStream stream;
  DeadLetters dead_letters(stream);
  const PathFailureReporter reporter(stream, dead_letters);
  const ActorPath base = *ActorPathParser::Parse("pekko://shop/user/cart");
  EXPECT_FALSE(Report(reporter, base, *ActorSelection::Parse("../../.."), "", "../../..", {}, {}).ok());
  EXPECT_EQ(dead_letters.total(), 1u);
}

struct Parcel { std::string recipient; };
struct Transport {
  void Send(const Parcel& parcel) { sent.push_back(parcel.recipient); }
  std::vector<std::string> sent;
};

TEST(HeaderExamples, RemoteAuthorityRegistry) {
  EventStream stream;
  DeadLetters dead_letters(stream);
  std::vector<std::string> notes;
  const auto Note = [&](const PathAuthority& authority) { notes.push_back(authority.ToString()); };
  EventSubscription changes = stream.Listen<AuthorityStateChanged>(
      [&](const AuthorityStateChanged& change) { Note(change.authority); });               // quarantines too
  EventSubscription quarantines = stream.Listen<QuarantinedEvent>(
      [&](const QuarantinedEvent& change) { Note(change.authority); });                    // only quarantines
  const auto created = RemoteAuthorityRegistry<Parcel>::Create(
      {}, [](const Parcel& parcel) { return AllDeadLetters{.recipient = parcel.recipient}; }, stream, dead_letters);
  RemoteAuthorityRegistry<Parcel>& registry = **created;
  const PathAuthority authority = *PathAuthority::Create("pekko.tcp", "10.0.0.7", 2552);
  const uint64_t peer_uid = 7;
  const Instant now;
  Transport transport;
  Parcel parcel{"a"};
  absl::StatusOr<std::optional<Parcel>> to_send = registry.Offer(authority, std::move(parcel), now);
  if (to_send.ok() && to_send->has_value()) transport.Send(**to_send);
  absl::StatusOr<std::deque<Parcel>> queued = registry.Connect(authority, "10.0.0.7:2552", peer_uid, now);
  for (Parcel& each : *queued) transport.Send(each);  // before any parcel that is offered later
  EXPECT_EQ(transport.sent, std::vector<std::string>{"a"});
  EXPECT_EQ(notes.size(), 2u);
}

}  // namespace registries

namespace selections {

struct Reload {};
struct Print { std::string text; };
class Printer : public Actor<Printer, Reload, Print> {
 public:
  void On(Context&, const Reload&) {}
  void On(Context&, const Print&) {}
};

TEST(HeaderExamples, ActorRef) {
  TestKit kit;
  ActorSystem& system = kit.system();
  ActorRef printer = system.Spawn<Printer>("printer").untyped();
  std::vector<ActorRef> known = {printer};              // no reference count, nothing to release
  const bool is_set = printer != ActorRef::NoOne();     // NoOne() is the default: a reference to no actor
  EXPECT_TRUE(is_set);
}

[[maybe_unused]] Task<void> Send(ActorSystem& system, ActorContext& context) {
  Select(system, "/user/workers/*").Tell(Reload{});              // to all children of workers
  Select(context, "../printer").Tell(Print{"hello"});            // relative to the actor of the context
  auto finding = Select(context, "/user/till").ResolveOne(absl::Seconds(1));
  absl::StatusOr<ActorRef> till = co_await finding;
}

}  // namespace selections

namespace serialization {

absl::Status Configure(ActorSystemOptions& options) {
  CodecSetup codecs;
  codecs.Add<Deposited, Withdrawn>();                                 // types with a Codec<T>, or protobuf messages
  codecs.AddAlias<Deposited>("bank.payed_in");                        // an earlier name: is read, never written
  FRAKTOR_ASSIGN_OR_RETURN(options.codecs, codecs.Build());
  return absl::OkStatus();
}

absl::Status RoundTrip(const CodecRegistry& registry) {
  std::string bytes;
  FRAKTOR_ASSIGN_OR_RETURN(const MessageCodec* codec, registry.Encode(Deposited{7}, bytes));
  const EncodedMessage stored{codec->manifest(), codec->version(), bytes};
  FRAKTOR_ASSIGN_OR_RETURN(EnvelopePtr message, registry.Decode(stored));
  FRAKTOR_ASSIGN_OR_RETURN(Deposited event, registry.DecodeAs<Deposited>(stored));
  EXPECT_EQ(message->As<Deposited>().amount, 7);
  EXPECT_EQ(event.amount, 7);
  return absl::OkStatus();
}

TEST(HeaderExamples, CodecRegistry) {
  ActorSystemOptions options;
  ASSERT_TRUE(Configure(options).ok());
  EXPECT_TRUE(RoundTrip(*options.codecs).ok());
}

TEST(HeaderExamples, Codec) {
  const auto codecs = CodecSetup().Add<Shape, by_hand::Deposited>().Build().value();
  std::string bytes;
  ASSERT_TRUE(codecs->Encode(Shape{3}, bytes).ok());
  EXPECT_EQ(codecs->DecodeAs<Shape>({"draw.shape", 2, bytes})->corners, 3);
  bytes.clear();
  ASSERT_TRUE(codecs->Encode(by_hand::Deposited{3, "three"}, bytes).ok());
  EXPECT_EQ(codecs->DecodeAs<by_hand::Deposited>({"bank.deposited_by_hand", 2, bytes})->note, "three");
}

TEST(HeaderExamples, MessageCodec) {
  const auto codecs = CodecSetup().Add<Deposited>().Build().value();
  const CodecRegistry& registry = *codecs;
  std::string bytes;
  ASSERT_TRUE(registry.Encode(Deposited{7}, bytes).ok());
  const uint32_t version = 1;
  const ActorRef sender;
  const CodecContext context;
  const MessageCodec* codec = registry.FindManifest("bank.deposited");
  absl::StatusOr<EnvelopePtr> envelope = codec->Decode(version, bytes, sender, context);
  EXPECT_TRUE(envelope.ok());
  const absl::Status status = registry.Decode({"bank.none", 0, bytes}).status();
  const bool is_unknown = ErrorKindOf<SerializationErrorKind>(status) == SerializationErrorKind::kUnknownManifest;
  EXPECT_TRUE(is_unknown);
}

TEST(HeaderExamples, SystemCodecs) {
  TestKit kit;
  ActorSystem& system = kit.system();
  const std::string event = "closed";
  std::string bytes;
  {
    const CodecRegistry& codecs = CodecsOf(system);                     // ActorSystemOptions::codecs
    PathRefs refs(system);
    absl::StatusOr<const MessageCodec*> codec = codecs.Encode(event, bytes, {.refs = &refs});
    EXPECT_TRUE(codec.ok());
  }
  {
    const CodecRegistry& registry = CodecsOf(system);
    PathRefs refs(system);                                           // an ActorRefCodec: references as paths
    const CodecContext context{.refs = &refs, .max_bytes = 1'000'000};
    absl::StatusOr<const MessageCodec*> codec = registry.Encode(event, bytes, context);
    EXPECT_TRUE(codec.ok());
  }
}

}  // namespace serialization

namespace events {

struct NodeEvent {
  static constexpr EventInfo<NodeEvent> kEvent{"NodeEvent"};
  std::string_view node;
};
struct NodeLeft : NodeEvent {
  static constexpr EventInfo<NodeLeft, NodeEvent> kEvent{"NodeLeft"};  // subscribers to NodeEvent receive it too
};

struct NodeJoined {
  static constexpr EventInfo<NodeJoined> kEvent{"NodeJoined"};
  static constexpr bool kOwnsItsData = true;    // no views in it: actors receive a copy
  std::string node;
};

int notes = 0;
void Note(std::string_view) { ++notes; }

TEST(HeaderExamples, EventStream) {
  EventStream stream;
  notes = 0;
  EventSubscription left = stream.Listen<NodeLeft>([](const NodeLeft& event) { Note(event.node); });
  stream.Publish(NodeLeft{{.node = "n1"}});  // calls the listener, until `left` is destroyed
  EXPECT_EQ(notes, 1);
  EXPECT_TRUE(kActorsGetEvent<NodeJoined>);
}

void Count(std::string_view, std::string_view, std::string_view) { ++notes; }
void Print(std::string_view) {}

TEST(HeaderExamples, DeadLetters) {
  TestKit kit;
  ActorSystem& system = kit.system();
  EventSubscription lost = system.events().Listen<AllDeadLetters>([](const AllDeadLetters& letter) {
    Count(NameOf(letter.reason), letter.recipient, letter.message.type_name);
  });
  EventStream stream;
  const RuntimeToolbox& toolbox = system.toolbox();
  const std::string_view from = "pekko://shop/user/a";
  const std::string_view to = "pekko://shop/user/b";
  DeadLetters dead_letters(stream, {.log = [](std::string_view line) { Print(line); }});
  DeadLetter letter{{.reason = DeadLetterReason::kStopped, .sender = from, .recipient = to}};
  dead_letters.Publish(letter, toolbox.Now());
  const uint64_t stopped = dead_letters.count(DeadLetterReason::kStopped);
  EXPECT_EQ(stopped, 1u);
}

class ListSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override { lines.push_back(FormatLogRecord(record)); }
  std::vector<std::string> lines;
};

TEST(HeaderExamples, Log) {
  ListSink sink;
  const absl::Time now = absl::UnixEpoch();
  Logger logger(&sink, LogLevel::kInfo);
  logger.Log(LogLevel::kWarning, {.at = now, .path = "pekko://shop/user/cart", .type = "Cart", .text = "is empty"});
  EXPECT_EQ(sink.lines.size(), 1u);
}

struct Parcel {};

TEST(HeaderExamples, LostMessages) {
  TestKit kit;
  ActorSystem& system = kit.system();
  const ActorRef former;
  std::vector<EnvelopePtr> for_successor;
  std::vector<Parcel> parcels;
  EventSubscription orphans = system.events().Listen<OrphanedMessage>([&](const OrphanedMessage& orphan) {
    if (orphan.recipient == former) for_successor.push_back(std::move(orphan.message));
  });
  EventSubscription losses = system.events().Listen<UndeliveredMessage>([&](const UndeliveredMessage& lost) {
    if (lost.letter.message.type != MessageTypeOf<Parcel>()) return;
    parcels.push_back(lost.TakeBack().Take<Parcel>());
  });
  EXPECT_TRUE(orphans.IsListening() && losses.IsListening());
}

}  // namespace events

namespace messages {

struct Greet { std::string name; };

int printed = 0;
void Print(std::string_view) { ++printed; }

TEST(HeaderExamples, Envelope) {
  const ActorRef sender;
  const ActorRef target;
  EnvelopePtr envelope = MakeEnvelope<Greet>(sender, "world");       // Greet{"world"}, constructed in place
  envelope->set_target_word(target.word());
  if (const Greet* greet = envelope->TryAs<Greet>()) Print(greet->name);
  envelope.reset();                                                  // destroys the message, frees the node
  EXPECT_EQ(printed, 1);
}

TEST(HeaderExamples, MessageType) {
  const EnvelopePtr made = MakeEnvelope<Greet>(ActorRef(), "world");
  const Envelope& envelope = *made;
  const MessageType* type = MessageTypeOf<Greet>();
  std::string_view name = type->name();                            // "Greet", with its namespaces
  const bool is_greet = envelope.type() == MessageTypeOf<Greet>(); // compares addresses, without RTTI
  EXPECT_TRUE(is_greet);
  static_assert(TypeName<shop::Order>() == "shop::Order");
}

TEST(HeaderExamples, NodePool) {
  NodePool::SetDepotLimit(size_t{16} << 20);           // keeps at most 16 MiB of free nodes per size
  NodePool::Trim(0);                                   // returns free memory to the system now
  NodePoolStats stats = NodePool::Stats(NodeClass::k64);
  NodePool::SetDepotLimit(NodePool::kDefaultDepotLimit);
  EXPECT_EQ(stats.depot_nodes, 0u);
}

struct Get {
  std::string name;
  std::string_view RoutingKey() const { return name; }     // or a number
};

TEST(HeaderExamples, RoutingKey) {
  const Get get{"alice"};
  EXPECT_EQ(MessageTypeOf<Get>()->routing_key()(&get), HashOfRoutingKey("alice"));
}

}  // namespace messages

namespace observation {

TEST(HeaderExamples, DurationHistogram) {
  DurationHistogram histogram;                     // one thread records
  histogram.Record(1'500);                         // nanoseconds
  DurationTotals totals;                           // any thread reads, at any time
  histogram.AddTo(totals);
  const double slowest = totals.QuantileNs(0.99);
  EXPECT_NEAR(slowest, 1'500, 1'500 * 0.125);
}

struct Message { bool has_time = false; };
void StampTime(Message& message) { message.has_time = true; }

void Record(WorkerMetrics* metrics, ObservedId id, uint32_t messages, Message& message) {
  if (metrics != nullptr) {                                // ObservabilityHub::AddWorker; null if the hub is off
    metrics->CountEnqueued(id, 1);                         // a message that has to wait for a turn
    if (metrics->Sample()) StampTime(message);             // this message carries the time of its sending
    metrics->CountHandled(id, messages);                   // once per turn
    metrics->passes().Count(id);                           // enqueued and handled at once
  }
}

void RecordForeign(ObservabilityHub& hub, ObservedId id) {
  ForeignMetrics* metrics = hub.foreign();  // null if the hub is off
  if (metrics != nullptr) metrics->CountEnqueued(id);
}

double DepthOf(ObservabilityHub& hub, const RuntimeToolbox& toolbox) {
  const MetricsSnapshot snapshot = hub.Snapshot(toolbox.Now());
  const Metric* depth = snapshot.Find(kMailboxDepth, {{"type", "Greeter"}});
  return depth == nullptr ? -1 : depth->value;
}

TEST(HeaderExamples, MetricTable) {
  const MetricRow* row = FindMetricRow(kMailboxDepth);  // name, kind, unit, labels, help
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->kind, MetricKind::kGauge);
}

TEST(HeaderExamples, ObservabilityHub) {
  TestKit kit;
  const RuntimeToolbox& toolbox = kit.system().toolbox();
  const Instant now = toolbox.Now();
  absl::StatusOr<std::unique_ptr<ObservabilityHub>> hub = ObservabilityHub::Make({.sample_every = 1});
  const ObservedId greeter = (*hub)->TypeId("Greeter");                     // once per type: keep it
  absl::StatusOr<WorkerMetrics*> metrics = (*hub)->AddWorker("w-0", now);   // the counters of a worker
  const MetricsSnapshot snapshot = (*hub)->Snapshot(toolbox.Now());         // metrics_snapshot.h has the names
  Message message;
  Record(*metrics, greeter, 1, message);
  RecordForeign(**hub, greeter);
  EXPECT_TRUE(message.has_time);
  EXPECT_EQ(DepthOf(**hub, toolbox), 1);
}

TEST(HeaderExamples, PrometheusText) {
  TestKit kit;
  ActorSystem& system = kit.system();
  // Serve it with the content type kPrometheusContentType.
  std::string page = ToPrometheusText(system.hub().Snapshot(system.toolbox().Now()));
  EXPECT_FALSE(page.empty());
}

}  // namespace observation

}  // namespace
}  // namespace fraktor
