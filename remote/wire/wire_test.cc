#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/remote/wire/batch.pb.h"
#include "fraktor/remote/wire/batch_reader.h"
#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/remote/wire/frame_header.h"
#include "fraktor/remote/wire/protocol_version.h"
#include "fraktor/remote/wire/wire_error.h"
#include "fraktor/remote/wire/wire_limits.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

using Step = BatchReader::Step;

FrameHeader BatchHeader(Lane lane = Lane::kOrdinary) {
  return {.kind = FrameKind::kBatch, .lane = lane, .origin_uid = 0x1122334455667788, .target_uid = 99, .number = 7};
}

// What a batch says, a line for each entry.
std::vector<std::string> Lines(std::string_view body, const WireLimits& limits = {}) {
  std::vector<std::string> lines;
  BatchReader reader(body, limits);
  for (;;) {
    const absl::StatusOr<Step> step = reader.Next();
    if (!step.ok()) {
      lines.push_back(std::string(step.status().message()));
      return lines;
    }
    switch (*step) {
      case Step::kNode:
        lines.push_back(absl::StrCat("node ", std::string(reader.node().protocol), " ",
                                     std::string(reader.node().system), " ", std::string(reader.node().host), " ",
                                     reader.node().port, " ", reader.node().uid));
        break;
      case Step::kRef:
        lines.push_back(absl::StrCat("ref ", reader.ref().home, " ", reader.ref().uid, " ",
                                     std::string(reader.ref().path), reader.ref().is_selection ? " selection" : "",
                                     reader.ref().is_promise ? " promise" : ""));
        break;
      case Step::kManifest:
        lines.push_back(absl::StrCat("manifest ", std::string(reader.manifest().name), " ", reader.manifest().version));
        break;
      case Step::kMessage:
        lines.push_back(absl::StrCat("message ", reader.message().to, " ", reader.message().from, " ",
                                     reader.message().manifest, " ", std::string(reader.message().payload)));
        break;
      case Step::kEnd:
        return lines;
    }
  }
}

std::string BodyOf(const std::string& frame) { return frame.substr(kFrameHeaderBytes); }

WireErrorKind KindOf(const absl::Status& status) {
  return ErrorKindOf<WireErrorKind>(status).value_or(static_cast<WireErrorKind>(-1));
}

WireErrorKind BatchErrorOf(std::string_view body, const WireLimits& limits) {
  BatchReader reader(body, limits);
  for (;;) {
    const absl::StatusOr<Step> step = reader.Next();
    if (!step.ok()) return KindOf(step.status());
    if (*step == Step::kEnd) return static_cast<WireErrorKind>(-1);
  }
}

TEST(FrameHeader, IsReadAsItWasWritten) {
  std::string frame = StartFrame(BatchHeader(Lane::kLarge));
  frame += "body";
  const absl::StatusOr<FrameView> view = ReadFrame(frame, WireLimits());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->header.kind, FrameKind::kBatch);
  EXPECT_EQ(view->header.lane, Lane::kLarge);
  EXPECT_EQ(view->header.origin_uid, 0x1122334455667788u);
  EXPECT_EQ(view->header.target_uid, 99u);
  EXPECT_EQ(view->header.number, 7u);
  EXPECT_EQ(view->body, "body");
}

TEST(FrameHeader, HasTheBytesThatItSays) {
  const std::string frame = StartFrame(BatchHeader());
  EXPECT_EQ(frame.substr(0, 12), std::string("\x01\x02\x02\x00\x88\x77\x66\x55\x44\x33\x22\x11", 12));
  EXPECT_EQ(frame.size(), kFrameHeaderBytes);
}

TEST(FrameHeader, RefusesWhatIsNone) {
  const WireLimits limits;
  const std::string good = StartFrame(BatchHeader());
  EXPECT_EQ(KindOf(ReadFrame(good.substr(0, 27), limits).status()), WireErrorKind::kMalformed);
  const auto with = [&](size_t at, char byte) {
    std::string frame = good;
    frame[at] = byte;
    return KindOf(ReadFrame(frame, limits).status());
  };
  EXPECT_EQ(with(0, 2), WireErrorKind::kUnknownFraming);
  EXPECT_EQ(with(1, 0), WireErrorKind::kMalformed);
  EXPECT_EQ(with(1, 3), WireErrorKind::kMalformed);
  EXPECT_EQ(with(2, 0), WireErrorKind::kMalformed);
  EXPECT_EQ(with(2, 4), WireErrorKind::kMalformed);
  EXPECT_EQ(with(2, 1), WireErrorKind::kMalformed);   // A batch on the control lane.
  EXPECT_EQ(with(20, 0), WireErrorKind::kMalformed);  // A batch without a number.
}

TEST(FrameHeader, HasALimitForEachLane) {
  const WireLimits limits{.max_control_frame_bytes = 4096, .max_frame_bytes = 5000, .max_large_frame_bytes = 6000};
  const auto sized = [&](FrameHeader header, size_t bytes) {
    std::string frame = StartFrame(header);
    frame.resize(bytes);
    return ReadFrame(frame, limits).status();
  };
  EXPECT_TRUE(sized(BatchHeader(), 5000).ok());
  EXPECT_EQ(KindOf(sized(BatchHeader(), 5001)), WireErrorKind::kTooLarge);
  EXPECT_TRUE(sized(BatchHeader(Lane::kLarge), 6000).ok());
  EXPECT_EQ(KindOf(sized(BatchHeader(Lane::kLarge), 6001)), WireErrorKind::kTooLarge);
  EXPECT_TRUE(sized({.lane = Lane::kControl}, 4096).ok());
  EXPECT_EQ(KindOf(sized({.lane = Lane::kControl}, 4097)), WireErrorKind::kTooLarge);
  // A handshake on the large lane is no reason to take more.
  EXPECT_EQ(KindOf(sized({.lane = Lane::kLarge}, 4097)), WireErrorKind::kTooLarge);
}

// Tables inside a batch. R38
TEST(Batch, IsWhatTheProtocolCompilerReads) {
  BatchWriter writer;
  const uint32_t home = writer.AddNode(
      {.protocol = "pekko", .system = "third", .host = "10.0.0.3", .port = 2552, .uid = 0xffeeddccbbaa9988});
  EXPECT_EQ(home, 2u);
  const uint32_t to = writer.AddRef({.home = BatchHome::kReceiver, .uid = 1});
  const uint32_t from = writer.AddRef({.home = BatchHome::kSender, .uid = UINT64_MAX, .path = "/user/a"});
  const uint32_t other = writer.AddRef({.home = home, .uid = 3, .is_promise = true});
  const uint32_t all = writer.AddRef({.path = "/user/*", .is_selection = true});
  const uint32_t manifest = writer.AddManifest("shop.Order", 300);
  writer.AddMessage({.to = to, .from = from, .manifest = manifest, .payload = "one"});
  writer.AddMessage({.to = other, .from = 0, .manifest = manifest, .payload = {}});
  writer.AddMessage({.to = all, .from = 0, .manifest = manifest, .payload = std::string(300, 'x')});
  EXPECT_EQ(writer.messages(), 3u);
  const std::string frame = writer.Seal(BatchHeader());
  EXPECT_TRUE(writer.empty());

  wire::Batch batch;
  ASSERT_TRUE(batch.ParseFromString(BodyOf(frame)));
  ASSERT_EQ(batch.nodes_size(), 1);
  EXPECT_EQ(batch.nodes(0).system(), "third");
  EXPECT_EQ(batch.nodes(0).port(), 2552u);
  EXPECT_EQ(batch.nodes(0).uid(), 0xffeeddccbbaa9988u);
  ASSERT_EQ(batch.refs_size(), 4);
  EXPECT_EQ(batch.refs(1).uid(), UINT64_MAX);
  EXPECT_EQ(batch.refs(1).path(), "/user/a");
  EXPECT_EQ(batch.refs(2).home(), home);
  EXPECT_TRUE(batch.refs(2).is_promise());
  EXPECT_FALSE(batch.refs(1).is_promise());
  EXPECT_TRUE(batch.refs(3).is_selection());
  ASSERT_EQ(batch.manifests_size(), 1);
  EXPECT_EQ(batch.manifests(0).version(), 300u);
  ASSERT_EQ(batch.messages_size(), 3);
  EXPECT_EQ(batch.messages(0).to(), to);
  EXPECT_EQ(batch.messages(0).from(), from);
  EXPECT_EQ(batch.messages(0).payload(), "one");
  EXPECT_EQ(batch.messages(2).payload().size(), 300u);
  // And byte for byte what it writes, since entries stand in the order of the fields here.
  EXPECT_EQ(batch.SerializeAsString(), BodyOf(frame));

  EXPECT_EQ(Lines(BodyOf(frame)),
            (std::vector<std::string>{"node pekko third 10.0.0.3 2552 18441921395520346504", "ref 0 1 ",
                                      "ref 1 18446744073709551615 /user/a", "ref 2 3  promise",
                                      "ref 0 0 /user/* selection", "manifest shop.Order 300", "message 1 2 1 one",
                                      "message 3 0 1 ", absl::StrCat("message 4 0 1 ", std::string(300, 'x'))}));
}

TEST(Batch, MayHaveItsTablesBetweenItsMessages) {
  BatchWriter writer;
  writer.AddRef({.uid = 1});
  writer.AddManifest("m", 0);
  writer.AddMessage({.to = 1, .manifest = 1, .payload = "a"});
  writer.AddRef({.uid = 2});
  writer.AddMessage({.to = 2, .from = 1, .manifest = 1, .payload = "b"});
  EXPECT_EQ(Lines(BodyOf(writer.Seal(BatchHeader()))),
            (std::vector<std::string>{"ref 0 1 ", "manifest m 0", "message 1 0 1 a", "ref 0 2 ", "message 2 1 1 b"}));
}

// Short messages have ways of their own, which nobody may notice.
TEST(Batch, HasTheSameBytesWhereverAMessageStopsToBeShort) {
  for (const uint32_t place : {1u, 127u, 128u}) {
    for (const bool has_sender : {false, true}) {
      for (const size_t size : {0u, 1u, 117u, 118u, 119u, 120u, 121u, 122u, 127u, 128u}) {
        BatchWriter writer;
        wire::Batch batch;
        for (uint32_t i = 1; i <= place; ++i) {
          writer.AddRef({.uid = i});
          batch.add_refs()->set_uid(i);
          writer.AddManifest("m", 0);
          batch.add_manifests()->set_name("m");
        }
        const uint32_t from = has_sender ? place : 0;
        const std::string payload(size, 'p');
        writer.AddMessage({.to = place, .from = from, .manifest = place, .payload = payload});
        wire::BatchMessage& message = *batch.add_messages();
        message.set_to(place);
        message.set_from(from);
        message.set_manifest(place);
        message.set_payload(payload);
        const std::string body = BodyOf(writer.Seal(BatchHeader()));
        wire::Batch read;
        ASSERT_TRUE(read.ParseFromString(body));
        EXPECT_EQ(read.SerializeAsString(), batch.SerializeAsString());
        EXPECT_TRUE(absl::EndsWith(body, message.SerializeAsString()));
        EXPECT_EQ(Lines(body).back(), absl::StrCat("message ", place, " ", from, " ", place, " ", payload));
      }
    }
  }
}

TEST(Batch, PassesOverFieldsOfALaterVersion) {
  wire::Batch batch;
  batch.add_refs()->set_uid(5);
  batch.add_manifests()->set_name("m");
  wire::BatchMessage* const message = batch.add_messages();
  message->set_to(1);
  message->set_manifest(1);
  message->set_payload("p");
  // Field 15 as text, 14 as a number, 13 with 8 bytes, 12 with 4: in the batch and in its message.
  const std::string unknown("\x7a\x02hi\x70\x05\x69zzzzzzzz\x65yyyy", 20);
  message->GetReflection()->MutableUnknownFields(message)->ParseFromString(unknown);
  EXPECT_EQ(Lines(absl::StrCat(unknown, batch.SerializeAsString(), unknown)),
            (std::vector<std::string>{"ref 0 5 ", "manifest m 0", "message 1 0 1 p"}));
}

TEST(Batch, RefusesPlacesThatAreNotThere) {
  const auto error = [](auto build) {
    wire::Batch batch;
    build(batch);
    return BatchErrorOf(batch.SerializeAsString(), WireLimits());
  };
  const auto message = [](uint32_t to, uint32_t from, uint32_t manifest) {
    return [=](wire::Batch& batch) {
      batch.add_refs()->set_uid(1);
      batch.add_manifests()->set_name("m");
      wire::BatchMessage* const one = batch.add_messages();
      one->set_to(to);
      one->set_from(from);
      one->set_manifest(manifest);
    };
  };
  EXPECT_EQ(error(message(1, 1, 1)), static_cast<WireErrorKind>(-1));
  EXPECT_EQ(error(message(0, 1, 1)), WireErrorKind::kMalformed);
  EXPECT_EQ(error(message(2, 1, 1)), WireErrorKind::kMalformed);
  EXPECT_EQ(error(message(1, 2, 1)), WireErrorKind::kMalformed);
  EXPECT_EQ(error(message(1, 1, 0)), WireErrorKind::kMalformed);
  EXPECT_EQ(error(message(1, 1, 2)), WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::Batch& batch) { batch.add_refs(); }), WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::Batch& batch) { batch.add_manifests(); }), WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::Batch& batch) { batch.add_nodes()->set_port(65536); }), WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::Batch& batch) {
              batch.add_refs()->set_uid(1);
              batch.mutable_refs(0)->set_home(2);
            }),
            WireErrorKind::kMalformed);
}

TEST(Batch, RefusesWhatIsAboveItsLimits) {
  const WireLimits limits{.max_messages = 2,
                          .max_refs = 2,
                          .max_manifests = 1,
                          .max_nodes = 1,
                          .max_path_bytes = 64,
                          .max_manifest_bytes = 16,
                          .max_name_bytes = 16};
  const auto error = [&](auto build) {
    wire::Batch batch;
    build(batch);
    return BatchErrorOf(batch.SerializeAsString(), limits);
  };
  EXPECT_EQ(error([](wire::Batch& batch) {
              for (int i = 0; i < 3; ++i) batch.add_refs()->set_uid(1);
            }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::Batch& batch) {
              for (int i = 0; i < 2; ++i) batch.add_manifests()->set_name("m");
            }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::Batch& batch) {
              batch.add_nodes();
              batch.add_nodes();
            }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::Batch& batch) {
              batch.add_refs()->set_uid(1);
              batch.add_manifests()->set_name("m");
              for (int i = 0; i < 3; ++i) {
                batch.add_messages()->set_to(1);
                batch.mutable_messages(i)->set_manifest(1);
              }
            }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::Batch& batch) { batch.add_refs()->set_path(std::string(65, 'p')); }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::Batch& batch) { batch.add_manifests()->set_name(std::string(17, 'm')); }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::Batch& batch) { batch.add_nodes()->set_host(std::string(17, 'h')); }),
            WireErrorKind::kTooLarge);
}

TEST(Batch, IsMalformedWhereverItIsCut) {
  BatchWriter writer;
  writer.AddRef({.uid = 1, .path = "/user/a"});
  writer.AddManifest("m", 1);
  writer.AddMessage({.to = 1, .manifest = 1, .payload = "payload"});
  const std::string body = BodyOf(writer.Seal(BatchHeader()));
  int whole = 0;
  for (size_t size = 0; size < body.size(); ++size) {
    const WireErrorKind kind = BatchErrorOf(std::string_view(body).substr(0, size), WireLimits());
    // Between two entries it is a shorter batch.
    if (kind == static_cast<WireErrorKind>(-1)) {
      ++whole;
    } else {
      EXPECT_EQ(kind, WireErrorKind::kMalformed) << size;
    }
  }
  EXPECT_EQ(whole, 3);
}

wire::ControlMessage Request() {
  wire::ControlMessage message;
  wire::HandshakeRequest* const request = message.mutable_handshake_request();
  for (wire::Node* const node : {request->mutable_from(), request->mutable_to()}) {
    node->set_protocol("pekko");
    node->set_system("shop");
    node->set_host("10.0.0.7");
    node->set_port(2552);
    node->set_uid(42);
  }
  request->set_min_version(1);
  request->set_max_version(2);
  return message;
}

TEST(Control, IsReadAsItWasWritten) {
  const std::string frame = EncodeControl({.lane = Lane::kOrdinary, .origin_uid = 1, .target_uid = 2}, Request());
  const absl::StatusOr<FrameView> view = ReadFrame(frame, WireLimits());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->header.kind, FrameKind::kControl);
  EXPECT_EQ(view->header.lane, Lane::kOrdinary);
  const absl::StatusOr<wire::ControlMessage> message = DecodeControl(view->body, WireLimits());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->SerializeAsString(), Request().SerializeAsString());
}

TEST(Control, KeepsFieldsOfALaterVersion) {
  const std::string later =
      absl::StrCat(Request().SerializeAsString(), std::string("\xfa\x07\x02hi", 5));  // Field 127.
  const absl::StatusOr<wire::ControlMessage> message = DecodeControl(later, WireLimits());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->SerializeAsString(), later);
}

TEST(Control, HasNoBodyIfItIsOfAKindOfALaterVersion) {
  const absl::StatusOr<wire::ControlMessage> message = DecodeControl(std::string("\xfa\x07\x02hi", 5), WireLimits());
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->body_case(), wire::ControlMessage::BODY_NOT_SET);
}

TEST(Control, RefusesWhatIsNotAsTheProtocolSays) {
  const WireLimits limits{.max_path_bytes = 64, .max_reason_bytes = 64, .max_system_messages = 2};
  const auto error = [&](auto change, wire::ControlMessage message = {}) {
    change(message);
    return KindOf(DecodeControl(message.SerializeAsString(), limits).status());
  };
  const auto request = [](auto change) {
    return [change](wire::ControlMessage& message) {
      message = Request();
      change(*message.mutable_handshake_request());
    };
  };
  EXPECT_EQ(error(request([](wire::HandshakeRequest& r) { r.mutable_from()->set_port(70'000); })),
            WireErrorKind::kMalformed);
  EXPECT_EQ(error(request([](wire::HandshakeRequest& r) { r.mutable_from()->set_host(std::string(256, 'h')); })),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error(request([](wire::HandshakeRequest& r) { r.mutable_to()->clear_system(); })),
            WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::ControlMessage& m) { m.mutable_quarantine_notice()->set_reason(std::string(65, 'r')); }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::ControlMessage& m) { m.mutable_flush()->set_lane(4); }), WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::ControlMessage& m) { m.mutable_flush_done(); }), WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::ControlMessage& m) {
              for (int i = 0; i < 3; ++i) m.mutable_system_messages()->add_messages()->set_number(1);
            }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(error([](wire::ControlMessage& m) { m.mutable_system_messages()->add_messages(); }),
            WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::ControlMessage& m) {
              wire::SystemMessage* const one = m.mutable_system_messages()->add_messages();
              one->set_number(1);
              one->mutable_watch()->mutable_watchee()->set_uid(1);
            }),
            WireErrorKind::kMalformed);
  EXPECT_EQ(error([](wire::ControlMessage& m) {
              wire::SystemMessage* const one = m.mutable_system_messages()->add_messages();
              one->set_number(1);
              one->mutable_stop()->mutable_actor()->set_path(std::string(65, 'p'));
            }),
            WireErrorKind::kTooLarge);
  EXPECT_EQ(KindOf(DecodeControl("\x0a\x7f", limits).status()), WireErrorKind::kMalformed);
  EXPECT_EQ(KindOf(DecodeControl(std::string(limits.max_control_frame_bytes + 1, '\0'), limits).status()),
            WireErrorKind::kTooLarge);
}

TEST(ProtocolVersion, IsTheHighestThatBothKnow) {
  EXPECT_EQ(ChooseVersion({1, 2}, {1, 2}).value(), 2u);
  EXPECT_EQ(ChooseVersion({1, 2}, {1, 1}).value(), 1u);
  EXPECT_EQ(ChooseVersion({1, 2}, {2, 9}).value(), 2u);
  EXPECT_EQ(ChooseVersion({}, {kOldestProtocol, kOldestProtocol}).value(), kOldestProtocol);
}

TEST(ProtocolVersion, SaysWhoIsToBeUpdatedIfThereIsNone) {
  const absl::Status older = ChooseVersion({2, 3}, {1, 1}).status();
  EXPECT_EQ(KindOf(older), WireErrorKind::kNoCommonVersion);
  EXPECT_EQ(older.message(),
            "no common version of the protocol: this node speaks 2 to 3, the peer 1 to 1; update the peer");
  EXPECT_EQ(ChooseVersion({1, 2}, {3, 4}).status().message(),
            "no common version of the protocol: this node speaks 1 to 2, the peer 3 to 4; update this node");
  EXPECT_EQ(KindOf(ChooseVersion({1, 2}, {0, 1}).status()), WireErrorKind::kMalformed);
  EXPECT_EQ(KindOf(ChooseVersion({1, 2}, {2, 1}).status()), WireErrorKind::kMalformed);
}

TEST(WireLimits, AreRefusedIfNothingCouldBeSaid) {
  EXPECT_TRUE(WireLimits().Validate().ok());
  EXPECT_EQ(WireLimits{.max_refs = 1}.Validate().message(),
            "WireLimits.max_refs is 1; peers could not talk at all: use at least 2");
}

TEST(WireLimits, AgreeWithEachOther) {
  EXPECT_EQ(
      WireLimits{.max_control_frame_bytes = 60'000}.Validate().message(),
      "WireLimits.max_control_frame_bytes is 60000; a watch by a path of max_path_bytes would not fit: use at least "
      "61024");
  EXPECT_FALSE((WireLimits{.max_frame_bytes = 1024, .max_manifest_bytes = 1000}.Validate().ok()));
  EXPECT_TRUE((WireLimits{.max_control_frame_bytes = 4096, .max_path_bytes = 1024}.Validate().ok()));
}

TEST(BatchWriter, TakesBackWhatWasAddedSinceAMark) {
  const FrameHeader header{.kind = FrameKind::kBatch, .lane = Lane::kOrdinary, .number = 1};
  const auto add = [](BatchWriter& batch, std::string_view path) {
    const uint32_t home = batch.AddNode({.protocol = "pekko", .system = "s", .host = path, .port = 1, .uid = 2});
    const uint32_t to = batch.AddRef({.home = home, .path = path});
    const uint32_t manifest = batch.AddManifest(path, 1);
    batch.AddMessage({.to = to, .manifest = manifest, .payload = path});
  };
  BatchWriter plain;
  add(plain, "a");
  add(plain, "c");
  BatchWriter batch;
  add(batch, "a");
  const BatchWriter::Mark mark = batch.mark();
  add(batch, "b");
  EXPECT_EQ(batch.messages(), 2u);
  batch.Rollback(mark);
  EXPECT_EQ(batch.messages(), 1u);
  add(batch, "c");
  EXPECT_EQ(batch.refs(), 2u);
  EXPECT_EQ(batch.Seal(header), plain.Seal(header));
}

}  // namespace
}  // namespace fraktor
