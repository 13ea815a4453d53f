// A peer of the previous version of the protocol, as it was recorded: this version still talks to it.
//
// recorded_peer_v1.txt has the frames of a node "old", uid 77, that speaks version 1 only, to a node "a", uid 1001: it
// tells /system/sink "from the past", watches /user/echo, and sends heartbeats. The last test here has printed them.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/remote/association/nodes_fixture.h"
#include "fraktor/remote/association/recorded_frames.h"
#include "fraktor/remote/association/remote_events.h"

namespace fraktor {
namespace {

constexpr uint64_t kUid = 1001;
constexpr uint64_t kOldUid = 77;

class RecordedPeerTest : public NodesTest {};

// Plays the record, and keeps what is answered.
class Player final : public FrameReceiver, public StreamListener {
 public:
  bool OnFrame(uint64_t, std::string_view bytes) override {
    const FrameView view = ReadFrame(bytes, WireLimits()).value();
    EXPECT_EQ(view.header.origin_uid, kUid);
    if (view.header.kind == FrameKind::kControl) answers.push_back(DecodeControl(view.body, WireLimits()).value());
    return true;
  }
  void OnOpened() override {}
  void OnWritten() override {}
  void OnClosed(const absl::Status&) override {}

  std::vector<wire::ControlMessage> answers;
};

TEST_F(RecordedPeerTest, OfThePreviousVersionIsUnderstood) {
  const TestNode a = nodes_.Add("a", {.system_uid = kUid});
  auto sink = a.kit->Probe("sink");
  const ActorRef echo = a.kit->SpawnNamed<Echo>("echo").untyped();
  const std::vector<std::string> record = ReadRecordedFrames("remote/association/recorded_peer_v1.txt");
  ASSERT_GE(record.size(), 6u);
  const auto player = std::make_shared<Player>();
  const std::unique_ptr<Transport> old = network().MakeTransport(AddressOf("old"));
  ASSERT_TRUE(old->Start(player).ok());
  const auto stream = old->Connect(a.address, Lane::kControl, player);
  Advance(absl::Milliseconds(10));
  for (const std::string& frame : record) {
    stream->Write(frame);
    Advance(absl::Milliseconds(10));
  }
  EXPECT_EQ(sink.Expect<std::string>(), "from the past");
  ASSERT_EQ(a.remoting->Peers().size(), 1u);
  EXPECT_EQ(a.remoting->Peers()[0].version, 1u);
  EXPECT_EQ(a.remoting->Peers()[0].uid, kOldUid);
  a.system().Stop(echo);
  Advance(absl::Seconds(1));
  int responses = 0;
  int beats = 0;
  int notices = 0;
  for (const wire::ControlMessage& answer : player->answers) {
    if (answer.has_handshake_response()) {
      ++responses;
      EXPECT_EQ(answer.handshake_response().version(), 1u);
    }
    if (answer.has_heartbeat_answer()) ++beats;
    if (!answer.has_system_messages()) continue;
    for (const wire::SystemMessage& message : answer.system_messages().messages()) {
      ASSERT_TRUE(message.has_death_notice());
      ++notices;
      EXPECT_EQ(message.death_notice().watchee().path(), "/user/echo");
      // What it does not know is not said.
      EXPECT_EQ(message.death_notice().after_ordinary(), 0u);
      EXPECT_EQ(message.death_notice().after_large(), 0u);
    }
  }
  EXPECT_GE(responses, 1);
  EXPECT_GE(beats, 1);
  EXPECT_GE(notices, 1);
}

TEST_F(RecordedPeerTest, IsRefusedWithAReasonIfThereIsNoCommonVersion) {
  const TestNode a = nodes_.Add("a", {.system_uid = kUid, .versions = {2, 2}});
  const TestNode old = nodes_.Add("old", {.versions = {1, 1}});
  const std::string reason =
      "no common version of the protocol: this node speaks 2 to 2, the peer 1 to 1; update the peer";
  auto probe = old.kit->Probe();
  old.kit->ExpectEvents<HandshakeRefused>(
      1,
      [&] {
        a.kit->ExpectEvents<HandshakeRefused>(
            1, [&] { probe.Send(a.From(old, "/system/remote"), Note{}); },
            [&](const HandshakeRefused& refused) { return refused.reason == reason; });
      },
      [&](const HandshakeRefused& refused) { return refused.reason == reason && refused.node == "pekko://a@a:2552"; });
  EXPECT_FALSE(a.IsAssociatedWith(old));
  EXPECT_FALSE(old.IsAssociatedWith(a));
}

TEST_F(RecordedPeerTest, OfTheOldestVersionTalksToTheNewest) {
  const TestNode a = Add("a");
  const TestNode old = nodes_.Add("old", {.versions = {1, 1}});
  a.kit->SpawnNamed<Echo>("echo");
  auto probe = old.kit->Probe();
  probe.Send(a.From(old, "/user/echo"), Question{1});
  const Note note = probe.Expect<Note>();
  probe.Watch(note.ref);
  Advance(absl::Seconds(1));
  EXPECT_EQ(a.Info(old).version, 1u);
  EXPECT_EQ(old.Info(a).version, 1u);
  a.system().Stop(a.system().Resolve("/user/echo").value());
  probe.ExpectTerminated(note.ref);
}

TEST_F(RecordedPeerTest, HasTheFeaturesThatBothHave) {
  const TestNode a = Add("a", {.features = 0b0110});
  const TestNode b = Add("b", {.features = 0b1100});
  const TestNode plain = Add("plain");
  Meet(a, b);
  Meet(b, plain);
  EXPECT_EQ(a.Info(b).features, 0b0100u);
  EXPECT_EQ(b.Info(a).features, 0b0100u);
  EXPECT_EQ(b.Info(plain).features, 0u);
  EXPECT_EQ(plain.Info(b).features, 0u);
}

// How the record was made.
TEST_F(RecordedPeerTest, DISABLED_PrintsWhatAPeerOfTheOldestVersionSays) {
  const TestNode a = nodes_.Add("a", {.system_uid = kUid});
  const TestNode old = nodes_.Add("old", {.system_uid = kOldUid, .versions = {1, 1}});
  auto sink = a.kit->Probe("sink");
  a.kit->SpawnNamed<Echo>("echo");
  network().SetTamper([](const PathAuthority& from, const PathAuthority&, std::string& frame) {
    if (from.host() == "old") std::printf("RECORD %s\n", absl::BytesToHexString(frame).c_str());
    return true;
  });
  auto probe = old.kit->Probe();
  probe.Send(a.From(old, "/system/sink"), std::string("from the past"));
  EXPECT_EQ(sink.Expect<std::string>(), "from the past");
  probe.Watch(a.From(old, "/user/echo"));
  Advance(absl::Milliseconds(1500));
}

}  // namespace
}  // namespace fraktor
