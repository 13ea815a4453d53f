// Peers that do not mean well: what they may not do, and what it costs.
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/remote/association/nodes_fixture.h"
#include "fraktor/remote/association/recorded_frames.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {
namespace {

constexpr uint64_t kUid = 5;

class HostilePeerTest : public NodesTest {
 protected:
  // A text for whoever the reference means.
  static std::string BatchFor(const TestNode& node, uint64_t uid, uint64_t number, const BatchRefView& to,
                              std::string_view text) {
    BatchWriter batch;
    batch.AddRef(to);
    batch.AddManifest("fraktor.string", 0);
    batch.AddMessage({.to = 1, .manifest = 1, .payload = text});
    return batch.Seal({.kind = FrameKind::kBatch,
                       .lane = Lane::kOrdinary,
                       .origin_uid = uid,
                       .target_uid = node.uid(),
                       .number = number});
  }
  static std::string System(const TestNode& node, uint64_t uid, const wire::SystemMessages& messages) {
    wire::ControlMessage message;
    *message.mutable_system_messages() = messages;
    return EncodeControl({.origin_uid = uid, .target_uid = node.uid()}, message);
  }
  // A stranger that has said who it is.
  std::unique_ptr<Stranger> Meet(const TestNode& node, std::string_view host = "stranger", uint64_t uid = kUid) {
    auto stranger = std::make_unique<Stranger>(sim_, network(), host);
    stranger->Write(node, RequestFrame(node, host, uid));
    return stranger;
  }
  using NodesTest::Meet;
};

// R40: what is not marked as a selection selects nobody, and leads to no other node.
TEST_F(HostilePeerTest, GetsNowhereWithAPathThatIsNone) {
  const TestNode a = Add("a", {.untrusted = true});
  const TestNode trusting = Add("t");
  const TestNode c = Add("c");
  auto at_a = a.kit->Probe("sink");
  auto at_t = trusting.kit->Probe("sink");
  auto at_c = c.kit->Probe("sink");
  for (const TestNode* const node : {&a, &trusting}) {
    const auto stranger = Meet(*node, absl::StrCat("stranger-", std::string(node->address.host())));
    uint64_t number = 0;
    const auto send = [&](const BatchRefView& to) {
      stranger->Write(*node, BatchFor(*node, kUid, ++number, to, "boo"));
    };
    for (const char* const path : {"/system/*", "/system/s?nk", "/system/sink/../sink", "../system/sink", "sink",
                                   "pekko://c@c:2552/system/sink", "/user/.."}) {
      send({.path = path});
    }
    send({.path = "pekko://c@c:2552/system/sink", .is_selection = true});
    send({.path = "../system/sink", .is_selection = true});
    EXPECT_FALSE(stranger->is_cut());
    EXPECT_GE(node->system().dead_letters().count(DeadLetterReason::kInvalidPath), 7u);
    // A path that is one gets there.
    send({.path = "/system/sink"});
  }
  EXPECT_EQ(at_a.Expect<std::string>(), "boo");
  EXPECT_EQ(at_t.Expect<std::string>(), "boo");
  at_a.ExpectNoMessage(absl::Seconds(1));
  at_t.ExpectNoMessage();
  at_c.ExpectNoMessage();
}

// A uid is one actor, whoever has its path by now.
TEST_F(HostilePeerTest, DoesNotReachALaterActorByTheUidOfAnEarlierOne) {
  const TestNode a = Add("a");
  auto probe = a.kit->Probe("sink");
  const auto stranger = Meet(a);
  stranger->Write(a, BatchFor(a, kUid, 1, {.uid = 123456789, .path = "/system/sink"}, "late"));
  probe.ExpectNoMessage(absl::Seconds(1));
}

// What a life sends that has ended is late, also on a stream that is still its own.
TEST_F(HostilePeerTest, IsNotHeardAfterItsGoodbye) {
  const TestNode a = Add("a");
  auto sink = a.kit->Probe("sink");
  const auto stranger = Meet(a);
  stranger->Write(a, BatchFor(a, kUid, 1, {.path = "/system/sink"}, "before"));
  EXPECT_EQ(sink.Expect<std::string>(), "before");
  wire::ControlMessage goodbye;
  goodbye.mutable_goodbye();
  stranger->Write(a, EncodeControl({.origin_uid = kUid, .target_uid = a.uid()}, goodbye));
  stranger->Write(a, BatchFor(a, kUid, 2, {.path = "/system/sink"}, "after"));
  EXPECT_FALSE(stranger->is_cut());
  sink.ExpectNoMessage(absl::Seconds(1));
}

// A stream is of whom its first handshake says, and of nobody else.
TEST_F(HostilePeerTest, CannotSpeakForAnother) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto sink = a.kit->Probe("sink");
  Meet(a, b);
  Meet(b, a);
  wire::ControlMessage goodbye;
  goodbye.mutable_goodbye();
  wire::ControlMessage quarantine;
  quarantine.mutable_quarantine_notice()->set_quarantined_uid(a.uid());
  const auto of_b = [&](const wire::ControlMessage& message) {
    return EncodeControl({.origin_uid = b.uid(), .target_uid = a.uid()}, message);
  };
  const std::vector<std::string> frames = {of_b(goodbye), of_b(quarantine),
                                           BatchFor(a, b.uid(), 1000, {.path = "/system/sink"}, "not of b")};
  for (const std::string& frame : frames) {
    // Before it has said who it is, and after.
    Stranger nobody(sim_, network(), "nobody");
    nobody.Write(a, frame);
    EXPECT_FALSE(nobody.is_cut());
    const auto stranger = Meet(a);
    stranger->Write(a, frame);
    Advance(absl::Seconds(1));
    EXPECT_TRUE(stranger->is_cut());
  }
  // Nor become another on the way.
  const auto stranger = Meet(a);
  stranger->Write(a, RequestFrame(a, "b", b.uid()));
  Advance(absl::Seconds(1));
  EXPECT_TRUE(stranger->is_cut());
  sink.ExpectNoMessage(absl::Seconds(1));
  EXPECT_TRUE(a.IsAssociatedWith(b));
  // The header and the handshake say the same.
  Stranger two(sim_, network(), "two");
  two.Write(a, EncodeControl({.origin_uid = 6}, RequestTo(a, "two", 7)));
  Advance(absl::Seconds(1));
  EXPECT_TRUE(two.is_cut());
}

// Who takes the uid of another one does not take its place.
TEST_F(HostilePeerTest, WithTheUidOfAnotherDoesNotMakeThatOneUnheard) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto sink = a.kit->Probe("sink");
  Meet(a, b);
  Meet(b, a);
  {
    const auto stranger = Meet(a, "stranger", b.uid());
    wire::ControlMessage goodbye;
    goodbye.mutable_goodbye();
    stranger->Write(a, EncodeControl({.origin_uid = b.uid(), .target_uid = a.uid()}, goodbye));
  }
  Advance(absl::Seconds(1));
  EXPECT_TRUE(a.IsAssociatedWith(b));
  auto probe = b.kit->Probe();
  probe.Send(a.From(b, "/system/sink"), Note{.number = 7});
  EXPECT_EQ(sink.Expect<Note>().number, 7);
}

// Who has shown a certificate is what that says.
TEST_F(HostilePeerTest, CannotSayThatItIsAtAHostThatItHasNotProved) {
  const TestNode a = Add("a");
  Stranger liar(sim_, network(), "liar", {"liar", "*.shop.example"});
  a.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "its certificate is for liar, *.shop.example"}, 3, [&] {
    for (const char* const host : {"b", "x.y.shop.example", "shop.example"}) {
      liar.Open(a);
      liar.Write(a, RequestFrame(a, host, kUid));
      Advance(absl::Seconds(1));
      EXPECT_TRUE(liar.is_cut()) << host;
    }
  });
  EXPECT_TRUE(a.remoting->Peers().empty());
  liar.Open(a);
  liar.Write(a, RequestFrame(a, "x.shop.example", kUid));
  EXPECT_FALSE(liar.is_cut());
  EXPECT_EQ(a.remoting->Peers().size(), 1u);
}

// One that cannot be reached may ask as often as it likes: one answer waits for it.
TEST_F(HostilePeerTest, ThatCannotBeReachedPilesNothingUp) {
  const TestNode a = Add("a");
  Stranger caller(sim_, network(), "caller");
  for (int i = 0; i < 500; ++i) caller.Write(a, RequestFrame(a, "ghost", kUid));
  Stranger ghost(sim_, network(), "ghost");  // There it is.
  Advance(absl::Seconds(10));
  EXPECT_GE(ghost.Count(wire::ControlMessage::kHandshakeResponse), 1u);
  EXPECT_LE(ghost.Count(wire::ControlMessage::kHandshakeResponse), 3u);
  EXPECT_LE(ghost.Count(wire::ControlMessage::kHandshakeRequest), 20u);
}

// A stream that says nothing is not kept.
TEST_F(HostilePeerTest, ThatOpensStreamsAndSaysNothingIsCut) {
  const TestNode a = Add("a", {.max_inbound_streams = 10});
  const TestNode b = Add("b");
  Meet(a, b);
  Meet(b, a);
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 30; ++i) {
    silent.push_back(std::make_unique<Stranger>(sim_, network(), absl::StrCat("silent-", i)));
    silent.back()->Open(a);
  }
  Advance(absl::Seconds(1));
  const auto cut = std::count_if(silent.begin(), silent.end(), [](const auto& one) { return one->is_cut(); });
  EXPECT_GE(cut, 20);
  EXPECT_LT(cut, 30);
  Advance(absl::Seconds(21));
  EXPECT_TRUE(std::all_of(silent.begin(), silent.end(), [](const auto& one) { return one->is_cut(); }));
  EXPECT_TRUE(a.IsAssociatedWith(b));
  Meet(b, a);
}

// Nodes that were made up make place for those that are.
TEST_F(HostilePeerTest, CannotUseUpTheRoomForPeers) {
  RemotingConfig config;
  config.max_authorities = 8;
  const TestNode a = nodes_.Add("a", {.max_links = 16}, config);
  const TestNode b = Add("b");
  Meet(a, b);
  for (int i = 0; i < 100; ++i) {
    const std::string host = absl::StrCat("ghost-", i);
    Stranger caller(sim_, network(), absl::StrCat("caller-", i));
    caller.Write(a, RequestFrame(a, host, 100 + static_cast<uint64_t>(i)));
    Advance(absl::Seconds(5));
  }
  EXPECT_LE(a.remoting->Peers().size(), 8u);
  EXPECT_TRUE(a.IsAssociatedWith(b));
  const TestNode c = Add("c");
  Meet(a, c);
}

// Nor the room for references: lives of other nodes that it makes up.
TEST_F(HostilePeerTest, CannotUseUpTheRoomForReferences) {
  const TestNode a = Add("a", {.max_links = 16});
  const TestNode b = Add("b");
  const TestNode c = Add("c");
  c.kit->SpawnNamed<Echo>("echo");
  auto sink = a.kit->Probe("sink");
  Meet(a, b);
  const auto stranger = Meet(a);
  const CodecContext context;
  for (uint64_t number = 1; number <= 50; ++number) {
    BatchWriter batch;
    batch.AddRef({.path = "/system/sink"});
    batch.AddManifest("test.note", 0);
    for (uint64_t i = 0; i < 10; ++i) {
      const uint32_t home =
          batch.AddNode({.protocol = "pekko", .system = "c", .host = "c", .port = 2552, .uid = number * 100 + i});
      batch.AddRef({.home = home, .uid = 42});
      std::string note;
      Encoder out(note, context);
      out.Value(int64_t{1});
      out.Value(std::string());
      out.Varint(1);
      out.Varint(i + 2);
      batch.AddMessage({.to = 1, .manifest = 1, .payload = note});
    }
    stranger->Write(a, batch.Seal({.kind = FrameKind::kBatch,
                                   .lane = Lane::kOrdinary,
                                   .origin_uid = kUid,
                                   .target_uid = a.uid(),
                                   .number = number}));
    while (sink.pending() > 0) EXPECT_FALSE(sink.Expect<Note>().ref.IsNoOne());
  }
  EXPECT_FALSE(stranger->is_cut());
  // Those that are real work as before, in both directions.
  auto probe = a.kit->Probe();
  probe.Send(c.From(a, "/user/echo"), Question{1});
  const Note note = probe.Expect<Note>();
  probe.Send(note.ref, Question{2});
  EXPECT_EQ(probe.Expect<Note>().number, 3);
  Meet(b, a);
  EXPECT_TRUE(a.IsAssociatedWith(b));
}

// References by path have a budget of bytes.
TEST_F(HostilePeerTest, CannotFillTheTableOfPaths) {
  const TestNode a = Add("a", {.max_path_table_bytes = 100'000});
  int made = 0;
  while (made < 1000 && a.system().Resolve(absl::StrCat("pekko://b@b:2552/user/", std::string(1000, 'x'), made)).ok()) {
    ++made;
  }
  EXPECT_GE(made, 40);
  EXPECT_LE(made, 50);
  // Selections use their places again.
  for (int i = 0; i < 3000; ++i) {
    Select(a.system(), absl::StrCat("pekko://c@c:2552/user/", i, "*")).TellAs(ActorRef(), Note{});
  }
}

size_t BytesInUse() { return mallinfo2().uordblks; }

// Everything that it can ask a node to keep, at once.
TEST_F(HostilePeerTest, CannotMakeANodeKeepMoreThanItsLimits) {
  const TestNode a = Add("a", {.max_watch_bytes = size_t{1} << 20, .max_held_notices = 100});
  const TestNode b = Add("b");
  const ActorRef echo = a.kit->SpawnNamed<Echo>("echo").untyped();
  Meet(a, b);
  const auto stranger = Meet(a);
  const size_t before = BytesInUse();
  const std::string path = absl::StrCat("/user/echo#", std::string(8000, '1'));
  uint64_t number = 0;
  for (int i = 0; i < 500; ++i) {
    wire::SystemMessages messages;
    for (int k = 0; k < 3; ++k) {
      wire::SystemMessage& watch = *messages.add_messages();
      watch.set_number(++number);
      watch.mutable_watch()->mutable_watchee()->set_path("/user/echo");
      watch.mutable_watch()->mutable_watcher()->set_uid(number + 1000);
      wire::SystemMessage& notice = *messages.add_messages();
      notice.set_number(++number);
      notice.mutable_death_notice()->mutable_watchee()->set_path(path);
      notice.mutable_death_notice()->mutable_watcher()->set_path(path);
      notice.mutable_death_notice()->set_after_ordinary(~uint64_t{0});
    }
    stranger->Write(a, System(a, kUid, messages));
  }
  Advance(absl::Seconds(1));
  EXPECT_LT(BytesInUse() - before, size_t{8} << 20);
  EXPECT_TRUE(a.IsAssociatedWith(b));
  EXPECT_TRUE(a.kit->IsAlive(echo));
}

std::vector<std::string> Corpus(const TestNode& node) {
  std::vector<std::string> corpus = ReadRecordedFrames("remote/association/recorded_peer_v1.txt");
  for (const char* const name :
       {"ack",         "answer",      "bad_home",      "bad_place",      "batch",      "batch_cut",
        "batch_empty", "batch_large", "flush",         "flush_done",     "goodbye",    "heartbeat",
        "huge_length", "long_path",   "many_messages", "many_refs",      "quarantine", "refusal",
        "request",     "response",    "system",        "system_too_many"}) {
    std::ifstream file(absl::StrCat("remote/wire/decode_corpus/", name), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    EXPECT_FALSE(corpus.back().empty()) << name;
  }
  // They are for this node, of the one that sends them.
  for (std::string& frame : corpus) {
    if (frame.size() < kFrameHeaderBytes) continue;
    FrameHeader header{.kind = static_cast<FrameKind>(frame[1]), .lane = static_cast<Lane>(frame[2])};
    header.origin_uid = kUid;
    header.target_uid = node.uid();
    header.number = 1;
    WriteFrameHeader(header, frame.data());
  }
  return corpus;
}

std::string Mutate(const std::vector<std::string>& corpus, Random& random, const TestNode& node, uint64_t number) {
  std::string frame = corpus[random.Uniform(corpus.size())];
  const uint64_t edits = random.Uniform(4);
  for (uint64_t i = 0; i < edits && !frame.empty(); ++i) {
    const uint64_t at = random.Uniform(frame.size());
    switch (random.Uniform(4)) {
      case 0:
        frame[at] = static_cast<char>(random.Next());
        break;
      case 1:
        frame.resize(at);
        break;
      case 2:
        frame.insert(at, frame.substr(at / 2, 1 + random.Uniform(200)));
        break;
      default:
        frame[at] = static_cast<char>(frame[at] ^ (1 << random.Uniform(8)));
        break;
    }
  }
  // Most are to get past the first look.
  if (frame.size() >= kFrameHeaderBytes && random.Bernoulli(0.8)) {
    FrameHeader header;
    header.kind = random.Bernoulli(0.5) ? FrameKind::kBatch : FrameKind::kControl;
    header.lane = header.kind == FrameKind::kControl ? Lane::kControl
                  : random.Bernoulli(0.5)            ? Lane::kOrdinary
                                                     : Lane::kLarge;
    header.origin_uid = kUid;
    header.target_uid = node.uid();
    header.number = number;
    WriteFrameHeader(header, frame.data());
  }
  return frame;
}

// Ten thousand frames of nonsense, while others talk.
TEST_F(HostilePeerTest, WithTenThousandFramesOfNonsenseDisturbsNobody) {
  const TestNode a = Add("a", {.max_watch_bytes = size_t{1} << 20});
  const TestNode b = Add("b");
  a.kit->SpawnNamed<Echo>("echo");
  auto sink = a.kit->Probe("sink");
  auto probe = b.kit->Probe();
  Meet(a, b);
  Meet(b, a);
  const std::vector<std::string> corpus = Corpus(a);
  Random random(2026);
  const size_t before = BytesInUse();
  size_t most = 0;
  int cuts = 0;
  auto stranger = std::make_unique<Stranger>(sim_, network(), "old");
  uint64_t uid = kUid;
  for (uint64_t i = 1; i <= 10'000; ++i) {
    if (stranger->is_cut() || i % 500 == 1) {
      // Another stream; now and then another life, since a goodbye may have ended this one.
      ++cuts;
      stranger->Open(a);
      stranger->Write(a, RequestFrame(a, "old", uid));
    }
    stranger->Write(a, Mutate(corpus, random, a, i));
    if (i % 100 != 0) continue;
    most = std::max(most, BytesInUse());
    while (sink.pending() > 0) sink.FishFor<std::string>([](const std::string&) { return true; });
    probe.Send(a.From(b, "/user/echo"), Question{static_cast<int64_t>(i)});
    ASSERT_EQ(probe.Expect<Note>().number, static_cast<int64_t>(i) + 1);
  }
  EXPECT_GT(cuts, 100);
  EXPECT_LT(most - std::min(most, before), size_t{16} << 20);
  EXPECT_TRUE(a.IsAssociatedWith(b));
  EXPECT_TRUE(b.IsAssociatedWith(a));
}

}  // namespace
}  // namespace fraktor
