// How nodes meet and part: handshakes, lives, quarantine, lanes, limits, the end.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/undelivered_message.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/remote/association/nodes_fixture.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

// A frame, as it was seen on its way.
struct Seen {
  std::string from;
  std::string to;
  FrameHeader header;
  wire::ControlMessage control;
};

class AssociationTest : public NodesTest {
 protected:
  explicit AssociationTest(const SimNetworkOptions& options = {}) : NodesTest(options) {}

  // Writes down all frames from now on; those that `lets` says false to are lost.
  void Watch(std::function<bool(const Seen&)> lets = nullptr) {
    network().SetTamper([this, lets = std::move(lets)](const PathAuthority& from, const PathAuthority& to,
                                                       std::string& frame) {
      const FrameView view = ReadFrame(frame, WireLimits()).value();
      Seen seen{.from = std::string(from.host()), .to = std::string(to.host()), .header = view.header, .control = {}};
      if (view.header.kind == FrameKind::kControl) seen.control = DecodeControl(view.body, WireLimits()).value();
      const bool passes = lets == nullptr || lets(seen);
      seen_.push_back(std::move(seen));
      return passes;
    });
  }
  size_t Count(std::string_view from, wire::ControlMessage::BodyCase kind) const {
    size_t count = 0;
    for (const Seen& one : seen_) {
      if (one.from == from && one.header.kind == FrameKind::kControl && one.control.body_case() == kind) ++count;
    }
    return count;
  }
  size_t Batches(std::string_view from, Lane lane = Lane::kOrdinary) const {
    size_t count = 0;
    for (const Seen& one : seen_) {
      if (one.from == from && one.header.kind == FrameKind::kBatch && one.header.lane == lane) ++count;
    }
    return count;
  }
  // A frame of our own making, all on one stream as long as it lives.
  void Inject(const TestNode& to, std::string frame) {
    if (stranger_ == nullptr) stranger_ = std::make_unique<Stranger>(sim_, network(), "stranger");
    stranger_->Write(to, std::move(frame));
  }

  std::vector<Seen> seen_;
  std::unique_ptr<Stranger> stranger_;
};

// R1, R2
TEST_F(AssociationTest, BeginsEveryStreamWithAHandshakeAndSendsNoMessageBeforeTheAnswer) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  Watch();
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/user/echo"), Question{1});
  probe.Expect<Note>();
  std::map<std::pair<std::string, Lane>, int> frames;
  bool knows_b = false;
  for (const Seen& one : seen_) {
    const int nth = frames[{one.from, one.header.lane}]++;
    if (nth == 0) {
      ASSERT_TRUE(one.control.has_handshake_request()) << one.from;
      EXPECT_EQ(one.control.handshake_request().from().uid(), one.from == "a" ? a.uid() : b.uid());
      EXPECT_EQ(one.control.handshake_request().to().host(), one.to);
    }
    if (one.from == "b" && one.control.body_case() != wire::ControlMessage::BODY_NOT_SET) knows_b = true;
    if (one.from == "a" && one.header.kind == FrameKind::kBatch) {
      EXPECT_TRUE(knows_b);
      EXPECT_EQ(one.header.target_uid, b.uid());
    }
  }
  EXPECT_GE(frames[std::make_pair("a", Lane::kOrdinary)], 2);
  EXPECT_GE(frames[std::make_pair("b", Lane::kControl)], 2);
}

// R4
TEST_F(AssociationTest, DeliversWhatWasSentBeforeThePeerWasThere) {
  const TestNode a = Add("a");
  auto probe = a.kit->Probe();
  const ActorRef early = a.system().Resolve("pekko://b@b:2552/user/echo").value();
  for (int i = 0; i < 5; ++i) probe.Send(early, Question{i});
  Advance(absl::Seconds(10));
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(probe.Expect<Note>().number, i + 1);
}

// R3
TEST_F(AssociationTest, AsksAgainGivesUpForAWhileAndTellsSelectionsThatNobodyIsThere) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Watch([](const Seen& seen) { return seen.from != "b"; });  // Nothing comes back.
  auto probe = a.kit->Probe();
  Select(a.system(), b.Path("/user/echo")).TellAs(probe.ref(), Identify{.id = 4});
  probe.ExpectNoMessage(absl::Seconds(19));
  EXPECT_GE(Count("a", wire::ControlMessage::kHandshakeRequest), 18u);
  const ActorIdentity identity = probe.Expect<ActorIdentity>(absl::Seconds(5));
  EXPECT_EQ(identity.id, 4u);
  EXPECT_TRUE(identity.ref.IsNoOne());
}

// Streams that do not end when the peer does.
class ProxiedAssociationTest : public AssociationTest {
 protected:
  ProxiedAssociationTest() : AssociationTest({.survive_restarts = true}) {}
};

// R5
TEST_F(ProxiedAssociationTest, NoticesARestartByHandshakesAheadOfMessages) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  const ActorRef echo = b.From(a, "/user/echo");
  probe.Send(echo, Question{1});
  const ActorRef old_life = probe.Expect<Note>().ref;
  Watch();
  for (int i = 0; i < 50; ++i) {
    probe.Send(echo, Question{i});
    Advance(absl::Milliseconds(100));
  }
  // Once a second, and not more.
  size_t injected = 0;
  for (const Seen& one : seen_) {
    if (one.from == "a" && one.header.lane == Lane::kOrdinary && one.control.has_handshake_request()) ++injected;
  }
  EXPECT_GE(injected, 4u);
  EXPECT_LE(injected, 6u);
  while (probe.pending() > 0) probe.Expect<Note>();
  // The streams of a do not notice that another one is there.
  network().Crash(b.address);
  const TestNode again = Add("b");
  again.kit->SpawnNamed<Echo>("echo");
  for (int i = 0; i < 50 && !a.IsAssociatedWith(again); ++i) {
    probe.Send(echo, Question{100});
    Advance(absl::Milliseconds(100));
  }
  EXPECT_EQ(a.Info(again).open_streams, 2u);
  EXPECT_TRUE(a.IsAssociatedWith(again));
  while (probe.pending() > 0) probe.Expect<Note>();
  probe.Send(echo, Question{7});
  EXPECT_EQ(probe.FishFor<Note>([](const Note& note) { return note.number == 8; }).number, 8);
  // What meant the one before is lost here.
  a.kit->ExpectDeadLetters<Question>(1, [&] { probe.Send(old_life, Question{8}); });
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kNewIncarnation), 1u);
}

// R6
TEST_F(AssociationTest, DropsAHandshakeForSomebodyElse) {
  const TestNode a = Add("a");
  Watch();
  a.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "it is for a@elsewhere:2552"}, 1,
                   [&] { Inject(a, EncodeControl({.origin_uid = 5}, RequestTo(a, "stranger", 5, "elsewhere"))); });
  Advance(absl::Seconds(5));
  EXPECT_EQ(Count("a", wire::ControlMessage::kHandshakeResponse), 0u);
  EXPECT_TRUE(a.remoting->Peers().empty());
}

// R7
TEST_F(AssociationTest, AnswersAHandshakeOverItsOwnControlStream) {
  const TestNode a = Add("a");
  Watch();
  Inject(a, RequestFrame(a, "stranger", 5));
  Advance(absl::Seconds(1));
  ASSERT_EQ(Count("a", wire::ControlMessage::kHandshakeResponse), 1u);
  for (const Seen& one : seen_) {
    if (!one.control.has_handshake_response()) continue;
    EXPECT_EQ(one.header.lane, Lane::kControl);
    EXPECT_EQ(one.to, "stranger");
    EXPECT_EQ(one.header.target_uid, 5u);
    EXPECT_EQ(one.control.handshake_response().nonce(), 77u);
    EXPECT_EQ(one.control.handshake_response().version(), kNewestProtocol);
    EXPECT_EQ(one.control.handshake_response().from().uid(), a.uid());
  }
  ASSERT_EQ(a.remoting->Peers().size(), 1u);
  EXPECT_TRUE(a.remoting->Peers()[0].is_associated);
  EXPECT_EQ(a.remoting->Peers()[0].uid, 5u);
}

std::string BatchTo(const TestNode& node, uint64_t origin, uint64_t number, std::string_view text,
                    uint64_t target_uid = 0) {
  BatchWriter batch;
  batch.AddRef({.path = "/system/sink"});
  batch.AddManifest("fraktor.string", 0);
  batch.AddMessage({.to = 1, .manifest = 1, .payload = text});
  return batch.Seal({.kind = FrameKind::kBatch,
                     .lane = Lane::kOrdinary,
                     .origin_uid = origin,
                     .target_uid = target_uid == 0 ? node.uid() : target_uid,
                     .number = number});
}

// R8
TEST_F(AssociationTest, DropsMessagesOfStrangersAndForEarlierLives) {
  const TestNode a = Add("a");
  auto sink = a.kit->Probe("sink");
  Inject(a, BatchTo(a, 5, 1, "before the handshake"));
  Inject(a, RequestFrame(a, "stranger", 5));
  Inject(a, BatchTo(a, 5, 1, "for another life", a.uid() + 1));
  Inject(a, BatchTo(a, 5, 2, "two"));
  Inject(a, BatchTo(a, 5, 2, "again"));
  Inject(a, BatchTo(a, 5, 1, "late"));
  Inject(a, BatchTo(a, 5, 9, "nine"));
  EXPECT_EQ(sink.Expect<std::string>(), "two");
  EXPECT_EQ(sink.Expect<std::string>(), "nine");
  sink.ExpectNoMessage();
}

TEST_F(AssociationTest, CutsAStreamThatTalksNonsenseAndHearsOthers) {
  const TestNode a = Add("a");
  auto sink = a.kit->Probe("sink");
  a.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "a stream is cut"}, 2, [&] {
    Inject(a, "nonsense");
    Inject(a, RequestFrame(a, "stranger", 5));
    std::string cut = BatchTo(a, 5, 1, "half of it");
    cut.resize(cut.size() - 3);
    Inject(a, cut);
  });
  EXPECT_TRUE(stranger_->is_cut());
  Inject(a, RequestFrame(a, "stranger", 5));
  Inject(a, BatchTo(a, 5, 2, "whole"));
  EXPECT_EQ(sink.Expect<std::string>(), "whole");
}

TEST_F(AssociationTest, TakesOnlySoManyHandshakesOfStrangersInASecond) {
  const TestNode a = Add("a", {.max_handshakes_per_second = 3});
  const TestNode b = Add("b");
  Meet(a, b);
  Advance(absl::Seconds(1));
  for (int i = 0; i < 20; ++i) {
    Stranger one(sim_, network(), absl::StrCat("s", i));
    one.Write(a, RequestFrame(a, absl::StrCat("s", i), 100 + static_cast<uint64_t>(i)));
  }
  EXPECT_EQ(a.remoting->Peers().size(), 4u);
  // The one that is known may ask as often as it likes.
  Watch();
  Stranger as_b(sim_, network(), "somewhere");
  for (int i = 0; i < 10; ++i) {
    as_b.Write(a, RequestFrame(a, "b", b.uid()));
    Advance(absl::Milliseconds(10));
  }
  EXPECT_GE(Count("a", wire::ControlMessage::kHandshakeResponse), 10u);
  Advance(absl::Seconds(1));
  Stranger late(sim_, network(), "late");
  late.Write(a, RequestFrame(a, "late", 300));
  EXPECT_EQ(a.remoting->Peers().size(), 5u);
}

// A late frame of a former life does not bring it back.
TEST_F(AssociationTest, BelievesAnotherLifeOnlyWhenItAnswers) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  Inject(a, RequestFrame(a, "b", 1234));
  Advance(absl::Seconds(2));
  EXPECT_TRUE(a.IsAssociatedWith(b));
}

// R10, R11
TEST_F(AssociationTest, NeedsTheRightUidForAQuarantine) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  EXPECT_TRUE(absl::IsFailedPrecondition(a.remoting->Quarantine(b.address, b.uid(), {})));
  Meet(a, b);
  a.kit->ExpectLog({.level = LogLevel::kInfo, .contains = "no quarantine of"}, 1, [&] {
    EXPECT_TRUE(absl::IsFailedPrecondition(a.remoting->Quarantine(b.address, b.uid() + 2, {})));
  });
  EXPECT_TRUE(a.IsAssociatedWith(b));
  EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok());
  EXPECT_TRUE(a.HasQuarantined(b));
}

// R12, R13, R16, PTH-7, PTH-8
TEST_F(AssociationTest, RefusesAPeerInQuarantineWhichIsToldAndRefusesBack) {
  RemotingConfig config;
  config.quarantine_duration = absl::Minutes(1);
  const TestNode a = nodes_.Add("a", {}, config);
  const TestNode b = nodes_.Add("b", {}, config);
  b.kit->SpawnNamed<Echo>("echo");
  Meet(a, b);
  Meet(b, a);
  auto probe = a.kit->Probe();
  b.kit->ExpectEvents<ThisSystemQuarantined>(
      1,
      [&] {
        a.kit->ExpectEvents<QuarantinedEvent>(
            1, [&] { EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {.reason = "a test"}).ok()); },
            [](const QuarantinedEvent& event) { return event.reason == "a test"; });
      },
      [](const ThisSystemQuarantined& event) { return event.node == "pekko://a@a:2552" && event.reason == "a test"; });
  EXPECT_TRUE(b.HasQuarantined(a));
  a.kit->ExpectEvents<InvalidAssociation>(2, [&] {
    probe.Send(b.From(a, "/user/echo"), Question{1});
    Select(a.system(), b.Path("/user/*")).TellAs(probe.ref(), Question{2});  // Selections are refused too.
  });
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kQuarantined), 2u);
  Advance(absl::Seconds(10));
  EXPECT_EQ(a.Info(b).open_streams, 0u);  // They are closed after a while.
  // R18: it ends at the deadline, and they meet again.
  Advance(absl::Minutes(1));
  probe.Send(b.From(a, "/user/echo"), Question{3});
  EXPECT_EQ(probe.Expect<Note>().number, 4);
}

// What has not left its node may be taken back by whoever sent it: then it is no dead letter, and who asked waits on.
TEST_F(AssociationTest, GivesBackWhatWillNotBeSent) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  Meet(a, b);
  EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok());
  std::vector<int> taken;
  const EventSubscription losses = a.system().events().Listen<UndeliveredMessage>([&](const UndeliveredMessage& lost) {
    EXPECT_EQ(lost.letter.reason, DeadLetterReason::kQuarantined);
    EXPECT_EQ(lost.letter.message.type, MessageTypeOf<Question>());
    const auto& question = *static_cast<const Question*>(lost.letter.message.message);
    if (question.number != 1) return;
    taken.push_back(question.number);
    lost.TakeBack();
  });
  int letters = 0;
  const EventSubscription all = a.system().events().Listen<AllDeadLetters>([&](const AllDeadLetters&) { ++letters; });
  const ActorRef echo = b.From(a, "/user/echo");
  Future<Note> mine = a.system().Ask<Note>(echo, Question{1}, absl::Seconds(5));
  Advance(absl::Seconds(1));
  EXPECT_EQ(taken, std::vector<int>{1});
  EXPECT_FALSE(mine.IsReady());
  EXPECT_EQ(letters, 0);
  EXPECT_EQ(a.system().dead_letters().total(), 0u);
  // Others are lost as ever.
  Future<Note> other = a.system().Ask<Note>(echo, Question{2}, absl::Seconds(5));
  Advance(absl::Seconds(1));
  ASSERT_TRUE(other.IsReady());
  const absl::Status refused = other.Take().status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_NE(std::string(refused.message()).find("pekko://b:2552 is in quarantine for another "), std::string::npos)
      << refused;
  EXPECT_NE(std::string(refused.message()).find("the program says so"), std::string::npos) << refused;
  EXPECT_EQ(letters, 1);
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kQuarantined), 1u);
}

// What waits for a connection is given back when somebody says so, by its type, and in order; the rest waits on. Also
// if the streams were closed for being idle, so that the node was taken for connected.
TEST_F(AssociationTest, GivesBackWhatWaitsForAConnection) {
  for (const absl::Duration idle : {absl::ZeroDuration(), absl::Minutes(11)}) {
    const std::string host = idle == absl::ZeroDuration() ? "b" : "c";
    const TestNode a = Add(absl::StrCat("a", host));
    const TestNode b = Add(host);
    b.kit->SpawnNamed<Echo>("echo");
    Meet(a, b);
    const ActorRef echo = b.From(a, "/user/echo");
    Future<Note> before = a.system().Ask<Note>(echo, Question{1}, absl::Seconds(5));
    Advance(absl::Seconds(1) + idle);
    ASSERT_TRUE(before.IsReady());
    network().Crash(b.address);
    Advance(absl::Seconds(1));
    std::vector<int> taken;
    const EventSubscription losses =
        a.system().events().Listen<UndeliveredMessage>([&taken](const UndeliveredMessage& lost) {
          ASSERT_EQ(lost.letter.message.type, MessageTypeOf<Question>());
          taken.push_back(lost.TakeBack().As<Question>().number);
        });
    for (const int64_t number : {1, 2, 3}) {
      Tell(echo, Question{number});
      Tell(echo, Note{number});
      Advance(absl::Seconds(1));
    }
    EXPECT_EQ(taken, std::vector<int>());
    a.remoting->GiveBack(b.address, {MessageTypeOf<Question>()});
    EXPECT_EQ(taken, (std::vector<int>{1, 2, 3}));
    a.remoting->GiveBack(b.address, {MessageTypeOf<Question>()});
    EXPECT_EQ(taken.size(), 3u) << "once";
    EXPECT_EQ(a.system().dead_letters().total(), 0u) << "the others wait on";
  }
}

// A listener that throws does no harm: not to those behind it, and not to the thread that says what has happened.
TEST_F(AssociationTest, SaysWhatHappensToAllWhateverAListenerThrows) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  Meet(a, b);
  EventStream& events = a.system().events();
  const EventSubscription first = events.Listen<QuarantinedEvent>([](const QuarantinedEvent&) { throw 7; });
  const EventSubscription lost = events.Listen<UndeliveredMessage>(
      [](const UndeliveredMessage&) { throw std::runtime_error("cannot take it back"); });
  int heard = 0;
  const EventSubscription behind = events.Listen<QuarantinedEvent>([&](const QuarantinedEvent&) { ++heard; });
  EXPECT_NO_THROW({ EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok()); });
  Advance(absl::Seconds(1));
  EXPECT_EQ(heard, 1);
  EXPECT_NO_THROW(Tell(b.From(a, "/user/echo"), Question{1}));
  Advance(absl::Seconds(1));
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kQuarantined), 1u) << "it is lost as ever";
}

// R14
TEST_F(AssociationTest, DropsWhatAPeerInQuarantineSendsAndSaysSo) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto sink = a.kit->Probe("sink");
  Meet(a, b);
  Meet(b, a);
  Watch([](const Seen& seen) { return !(seen.from == "a" && seen.control.has_quarantine_notice()); });
  EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok());
  Advance(absl::Seconds(5));
  const size_t before = Count("a", wire::ControlMessage::kQuarantineNotice);
  auto probe = b.kit->Probe();
  probe.Send(a.From(b, "/system/sink"), Note{.number = 1});
  Advance(absl::Milliseconds(500));
  sink.ExpectNoMessage();
  EXPECT_EQ(Count("a", wire::ControlMessage::kQuarantineNotice), before + 1);
  // A heartbeat is not answered with one.
  Advance(absl::Seconds(5));
  Inject(a, RequestFrame(a, "b", b.uid()));
  Advance(absl::Seconds(2));
  const size_t notices = Count("a", wire::ControlMessage::kQuarantineNotice);
  wire::ControlMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_number(1);
  Inject(a, EncodeControl({.origin_uid = b.uid(), .target_uid = a.uid()}, heartbeat));
  Advance(absl::Milliseconds(500));
  EXPECT_EQ(Count("a", wire::ControlMessage::kQuarantineNotice), notices);
}

// R15
TEST_F(AssociationTest, DoesNotTellAPeerOfAHarmlessQuarantine) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  Watch();
  a.kit->ExpectEvents<HarmlessQuarantine>(1, [&] {
    EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {.reason = "it leaves", .is_harmless = true}).ok());
  });
  // Nor when it goes on sending.
  auto probe = b.kit->Probe();
  for (int i = 0; i < 5; ++i) {
    probe.Send(a.From(b, "/system/remote"), Note{.number = i});
    Advance(absl::Seconds(1));
  }
  EXPECT_GE(Batches("b"), 5u);
  EXPECT_EQ(Count("a", wire::ControlMessage::kQuarantineNotice), 0u);
  EXPECT_FALSE(b.HasQuarantined(a));
  EXPECT_TRUE(a.remoting->EndQuarantine(b.address).ok());
  EXPECT_TRUE(a.IsAssociatedWith(b));
  Meet(a, b);
}

// A quarantine does not bind the next life.
TEST_F(AssociationTest, WelcomesAnotherLifeOfAPeerInQuarantine) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok());
  Advance(absl::Seconds(5));
  network().Crash(b.address);
  const TestNode again = Add("b");
  Meet(again, a);
  EXPECT_TRUE(a.IsAssociatedWith(again));
  Meet(a, again);
}

// R17: system messages that nobody acknowledges.
TEST_F(AssociationTest, QuarantinesAPeerForWhichTooManySystemMessagesWait) {
  const TestNode a = Add("a", {.system = {.max_pending = 10}});
  const TestNode b = Add("b");
  Meet(a, b);
  Watch([](const Seen& seen) { return !seen.control.has_system_ack(); });
  auto probe = a.kit->Probe();
  for (int i = 0; i < 10; ++i) probe.Watch(b.From(a, absl::StrCat("/user/nobody-", i)));
  Advance(absl::Milliseconds(10));
  EXPECT_TRUE(a.IsAssociatedWith(b));
  EXPECT_EQ(a.Info(b).pending_system, 10u);
  probe.Watch(b.From(a, "/user/one-more"));
  Advance(absl::Milliseconds(10));
  EXPECT_TRUE(a.HasQuarantined(b));
}

// R17
TEST_F(AssociationTest, QuarantinesAPeerThatAcknowledgesNothingForTooLong) {
  const TestNode a = Add("a", {.system = {.give_up_after = absl::Minutes(2)}});
  const TestNode b = Add("b");
  Meet(a, b);
  Watch([](const Seen& seen) { return !seen.control.has_system_ack(); });
  auto probe = a.kit->Probe();
  probe.Watch(b.From(a, "/user/nobody"));
  Advance(absl::Minutes(1));
  EXPECT_TRUE(a.IsAssociatedWith(b));
  Advance(absl::Seconds(70));
  EXPECT_TRUE(a.HasQuarantined(b));
}

// R17: the control queue.
TEST_F(AssociationTest, QuarantinesAPeerForWhichTooMuchControlWaits) {
  const TestNode a = Add("a", {.max_queued_control = 5});
  const TestNode b = Add("b");
  Meet(a, b);
  auto probe = a.kit->Probe();
  const auto watch = [&](int from, int to) {
    for (int i = from; i < to; ++i) probe.Watch(b.From(a, absl::StrCat("/user/nobody-", i)));
  };
  watch(0, 4);
  Advance(absl::Seconds(1));
  EXPECT_TRUE(a.IsAssociatedWith(b));
  // All at once: only the first leaves.
  a.kit->ExpectEvents<QuarantinedEvent>(
      1, [&] { watch(4, 20); },
      [](const QuarantinedEvent& event) { return event.reason == "too much waits for the control stream"; });
}

// R17: bytes count as well.
TEST_F(AssociationTest, QuarantinesAPeerForWhichTooManyBytesOfControlWait) {
  const TestNode a = Add("a", {.max_queued_bytes = 100'000});
  const TestNode b = Add("b");
  Meet(a, b);
  auto probe = a.kit->Probe();
  for (int i = 0; i < 4; ++i) probe.Watch(b.From(a, absl::StrCat("/user/", std::string(50'000, 'x'), i)));
  Advance(absl::Milliseconds(1));
  EXPECT_TRUE(a.HasQuarantined(b));
}

// R17: nobody answers for hours.
TEST_F(AssociationTest, QuarantinesAPeerThatAnswersNoHandshakeForTooLong) {
  const TestNode a = Add("a", {.unanswered_limit = absl::Minutes(10)});
  const TestNode b = Add("b");
  Meet(a, b);
  network().Crash(b.address);
  Advance(absl::Seconds(1));
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/system/remote"), Note{.number = 1});  // It is wanted.
  Advance(absl::Minutes(9));
  EXPECT_FALSE(a.HasQuarantined(b));
  Advance(absl::Minutes(2));
  EXPECT_TRUE(a.HasQuarantined(b));
}

// R37
TEST_F(AssociationTest, QuarantinesAPeerWhoseStreamsFailAgainAndAgain) {
  const TestNode a = Add("a", {.max_restarts = 3});
  const TestNode b = Add("b");
  Meet(a, b);
  // It cuts every stream with its first batch.
  network().SetTamper([](const PathAuthority& from, const PathAuthority&, std::string& frame) {
    if (from.host() == "a" && frame[1] == 2) frame = "nonsense";
    return true;
  });
  auto probe = a.kit->Probe();
  for (int i = 0; i < 30 && !a.HasQuarantined(b); ++i) {
    probe.Send(b.From(a, "/system/remote"), Note{.number = i});
    Advance(absl::Milliseconds(200));
  }
  EXPECT_TRUE(a.HasQuarantined(b));
  EXPECT_FALSE(a.system().IsTerminated());  // A peer can never end our system.
}

// R37: sporadic ones do not count.
TEST_F(AssociationTest, ForgivesStreamsThatFailNowAndThen) {
  const TestNode a = Add("a", {.max_restarts = 3});
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  Meet(a, b);
  int left = 0;
  network().SetTamper([&](const PathAuthority& from, const PathAuthority&, std::string& frame) {
    if (from.host() == "a" && frame[1] == 2 && left > 0) {
      --left;
      frame = "nonsense";
    }
    return true;
  });
  for (int i = 0; i < 10; ++i) {
    left = 1;
    probe.Send(b.From(a, "/user/echo"), Question{0});
    Advance(absl::Seconds(6));
  }
  EXPECT_TRUE(a.IsAssociatedWith(b));
  probe.Send(b.From(a, "/user/echo"), Question{1});
  EXPECT_EQ(probe.FishFor<Note>([](const Note& note) { return note.number == 2; }).number, 2);
}

// R33, R34
TEST_F(AssociationTest, HasALaneForLargeMessagesAndKeepsTheOrderOfEachRecipient) {
  const TestNode a = Add("a", {.large_destinations = {"/system/big-*"}});
  const TestNode b = Add("b");
  auto big = b.kit->Probe("big-1");
  auto small = b.kit->Probe("small");
  auto probe = a.kit->Probe();
  Meet(a, b);
  Watch();
  const std::string blob(1'000'000, 'x');
  for (int i = 0; i < 5; ++i) {
    probe.Send(b.From(a, "/system/big-1"), Note{.number = i, .text = blob});
    probe.Send(b.From(a, "/system/small"), Note{.number = i});
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(small.Expect<Note>().number, i);
    EXPECT_EQ(big.Expect<Note>().number, i);
  }
  EXPECT_GE(Batches("a", Lane::kLarge), 3u);  // Two of them fit into a frame.
  EXPECT_GE(Batches("a", Lane::kOrdinary), 1u);
}

// R34
class NarrowAssociationTest : public AssociationTest {
 protected:
  NarrowAssociationTest() : AssociationTest({.bytes_per_second = 100'000}) {}
};
TEST_F(NarrowAssociationTest, LargeMessagesDelayNeitherOthersNorHeartbeats) {
  const TestNode a = Add("a", {.large_destinations = {"/system/big"}});
  const TestNode b = Add("b");
  auto big = b.kit->Probe("big");
  auto small = b.kit->Probe("small");
  const ActorRef echo = b.kit->SpawnNamed<Echo>("echo").untyped();
  auto probe = a.kit->Probe();
  Meet(a, b);
  probe.Watch(b.From(a, "/user/echo"));
  Advance(absl::Seconds(2));
  const uint64_t before = a.Info(b).heartbeats;
  probe.Send(b.From(a, "/system/big"), Note{.number = 1, .text = std::string(1'500'000, 'x')});  // 15 seconds.
  const absl::Duration start = a.kit->Elapsed();
  for (int i = 0; i < 10; ++i) {
    probe.Send(b.From(a, "/system/small"), Note{.number = i});
    EXPECT_EQ(small.Expect<Note>().number, i);
    Advance(absl::Milliseconds(900));
  }
  EXPECT_LT(a.kit->Elapsed() - start, absl::Seconds(10));
  EXPECT_GE(a.Info(b).heartbeats, before + 8);
  big.ExpectNoMessage();
  EXPECT_EQ(big.Expect<Note>().number, 1);
  EXPECT_TRUE(a.IsAssociatedWith(b));
  EXPECT_TRUE(b.kit->IsAlive(echo));
}

// R33: the lane of an actor does not change, however many paths are told meanwhile.
TEST_F(AssociationTest, StaysOnTheLaneOfAnActorWhosePathIsForgotten) {
  const TestNode a = Add("a", {.max_path_texts = 2, .large_destinations = {"/user/big-*"}});
  const TestNode b = Add("b", {.max_path_texts = 2});
  auto probe = a.kit->Probe();
  b.kit->SpawnNamed<Echo>("big-1");
  probe.Send(b.From(a, "/user/big-1"), Question{1});
  const ActorRef big = probe.Expect<Note>().ref;
  for (int i = 0; i < 10; ++i) {
    b.kit->SpawnNamed<Echo>(absl::StrCat("other-", i));
    probe.Send(b.From(a, absl::StrCat("/user/other-", i)), Question{1});
    probe.Expect<Note>();
  }
  Watch();
  probe.Send(big, Question{2});
  probe.Expect<Note>();
  EXPECT_EQ(Batches("a", Lane::kLarge), 1u);
  EXPECT_EQ(Batches("a", Lane::kOrdinary), 0u);
}

// R35
TEST_F(AssociationTest, DropsMessagesThatAFullQueueHasNoRoomFor) {
  const TestNode a = Add("a", {.max_queued_messages = 50});
  const TestNode b = Add("b");
  auto sink = b.kit->Probe("sink");
  const ActorRef there = b.From(a, "/system/sink");
  Meet(a, b);
  auto probe = a.kit->Probe();
  a.kit->ExpectEvents<Dropped>(49, [&] {
    for (int i = 0; i < 100; ++i) probe.Send(there, Note{.number = i});  // No time passes: only the first leaves.
  });
  for (int i = 0; i < 51; ++i) EXPECT_EQ(sink.Expect<Note>().number, i);
  sink.ExpectNoMessage(absl::Seconds(1));
}

// PTH-7: so many wait for a peer that is not there.
TEST_F(AssociationTest, DefersOnlySoManyMessages) {
  RemotingConfig config;
  config.max_deferred_per_authority = 20;
  const TestNode a = nodes_.Add("a", {}, config);
  auto probe = a.kit->Probe();
  const ActorRef early = a.system().Resolve("pekko://b@b:2552/system/sink").value();
  for (int i = 0; i < 25; ++i) probe.Send(early, Note{.number = i});
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kUnresolvedFull), 5u);
  const TestNode b = Add("b");
  auto sink = b.kit->Probe("sink");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sink.Expect<Note>().number, i);
}

// R36
TEST_F(AssociationTest, ClosesIdleStreamsAndOpensThemAgain) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/user/echo"), Question{1});
  const ActorRef echo = probe.Expect<Note>().ref;
  // Some system messages, so that the numbers are above those of a new start.
  for (int i = 0; i < 3; ++i) {
    probe.Watch(echo);
    probe.Unwatch(echo);
  }
  Advance(absl::Seconds(3));
  EXPECT_EQ(a.Info(b).pending_system, 0u);
  EXPECT_EQ(a.Info(b).open_streams, 2u);
  Advance(absl::Minutes(6));
  EXPECT_EQ(a.Info(b).open_streams, 0u);
  EXPECT_TRUE(a.IsAssociatedWith(b));  // It is still the same peer.
  probe.Send(echo, Question{2});
  EXPECT_EQ(probe.Expect<Note>().number, 3);
  // Numbers of system messages go on.
  probe.Watch(echo);
  b.system().Stop(b.system().Resolve("/user/echo").value());
  probe.ExpectTerminated(echo);
}

// A message that does not fit takes nothing else with it.
TEST_F(AssociationTest, LosesAMessageWithTooManyReferencesAndNoOther) {
  const WireLimits limits{.max_frame_bytes = 4096};
  const TestNode a = Add("a", {.limits = limits});
  const TestNode b = Add("b", {.limits = limits});
  auto sink = b.kit->Probe("sink");
  const ActorRef there = b.From(a, "/system/sink");
  Meet(a, b);
  auto probe = a.kit->Probe();
  Refs giant{.number = 2};
  for (int i = 0; i < 100; ++i) {
    giant.refs.push_back(a.kit->SpawnNamed<Echo>(absl::StrCat("an-actor-whose-name-is-of-some-length-", i)).untyped());
  }
  a.kit->ExpectDeadLetters<Refs>(2, [&] {
    probe.Send(there, giant);  // Alone,
    Advance(absl::Seconds(1));
    probe.Send(there, Note{.number = 1});
    probe.Send(there, giant);  // and behind others.
    for (int i = 3; i < 10; ++i) probe.Send(there, Note{.number = i});
    EXPECT_EQ(sink.Expect<Note>().number, 1);
    for (int i = 3; i < 10; ++i) EXPECT_EQ(sink.Expect<Note>().number, i);
  });
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kNotSerializable), 2u);
}

// References fill a frame too, to the last byte and no further.
TEST_F(AssociationTest, FillsFramesWithReferencesAndMakesNoneTooLarge) {
  const WireLimits limits{.max_frame_bytes = 4096};
  const TestNode a = Add("a", {.limits = limits});
  const TestNode b = Add("b", {.limits = limits});
  auto sink = b.kit->Probe("sink");
  const ActorRef there = b.From(a, "/system/sink");
  Meet(a, b);
  auto probe = a.kit->Probe();
  std::vector<ActorRef> actors;
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat("n-", i, "-", std::string(static_cast<size_t>(i) % 61, 'x'));
    actors.push_back(a.kit->SpawnNamed<Echo>(name).untyped());
  }
  size_t largest = 0;
  network().SetTamper([&](const PathAuthority& from, const PathAuthority&, std::string& frame) {
    if (from.host() == "a" && frame[1] == 2) largest = std::max(largest, frame.size());
    return true;
  });
  b.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "a stream is cut"}, 0, [&] {
    for (int i = 0; i < 200; ++i) {
      const auto at = static_cast<size_t>(i);
      // From itself, with two references: three new ones in each.
      SendForeign(there,
                  MakeEnvelope<Refs>(actors[at], Refs{.number = i, .refs = {actors[(at + 7) % 200], actors[at]}}))
          .IgnoreError();
    }
    for (int i = 0; i < 200; ++i) {
      const Refs refs = sink.Expect<Refs>();
      ASSERT_EQ(refs.number, i);
      ASSERT_EQ(refs.refs.size(), 2u);
      EXPECT_EQ(refs.refs[1], sink.LastSender());
    }
  });
  EXPECT_LE(largest, 4096u);
  EXPECT_GT(largest, 3500u);
}

// What is watched by long paths goes out in frames that the peer takes.
TEST_F(AssociationTest, FillsFramesOfSystemMessagesByTheirBytes) {
  const TestNode a = Add("a");
  const TestNode b = Add("b", {.limits = {.max_system_messages = 8}});
  const TestNode c = Add("c", {.limits = {.max_system_messages = 8}});
  Meet(a, b);
  Meet(c, b);
  auto probe = a.kit->Probe();
  b.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "a stream is cut"}, 0, [&] {
    for (int i = 0; i < 100; ++i) probe.Watch(b.From(a, absl::StrCat("/user/", std::string(2000, 'x'), i)));
    for (int i = 0; i < 100; ++i) probe.Expect<Terminated>();
  });
  EXPECT_TRUE(a.IsAssociatedWith(b));
  // Nor more of them than it may.
  auto other = c.kit->Probe();
  network().CutOneWay(b.address, c.address);
  for (int i = 0; i < 50; ++i) other.Watch(b.From(c, absl::StrCat("/user/nobody-", i)));
  Advance(absl::Seconds(3));
  network().Heal();
  for (int i = 0; i < 50; ++i) other.Expect<Terminated>();
  // One that is longer than any frame is no reference at all.
  EXPECT_TRUE(absl::IsInvalidArgument(
      a.remoting->SelectionAt(ActorPathParser::Parse(b.Path("/user")).value(), std::string(70'000, 'x')).status()));
}

// What was sent before the peer answered goes in the order in which it was sent, whatever it is.
TEST_F(AssociationTest, KeepsTheOrderOfWhatHasWaited) {
  const TestNode a = Add("a");
  auto probe = a.kit->Probe();
  const ActorRef early = a.system().Resolve("pekko://b@b:2552/user/echo").value();
  probe.Send(early, Question{1});
  probe.Send(early, Identify{.id = 2});
  probe.Send(early, Question{3});
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  EXPECT_EQ(probe.Expect<Note>().number, 2);
  EXPECT_EQ(probe.Expect<ActorIdentity>().id, 2u);
  EXPECT_EQ(probe.Expect<Note>().number, 4);
}

// A codec may do as it likes: it does not run with the node's lock.
TEST_F(AssociationTest, LetsCodecsSendAndAskForPaths) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto sink = b.kit->Probe("sink");
  const ActorRef there = b.From(a, "/system/sink");
  auto probe = a.kit->Probe();
  std::string path;
  const auto restless = [&](int64_t number) {
    return Restless{.number = number, .do_it = [&, number] {
                      path = a.system().PathOf(there);
                      Tell(there, Note{.number = number, .text = "on the way"});
                    }};
  };
  probe.Send(there, restless(1));  // Deferred,
  Meet(a, b);
  probe.Send(there, restless(2));  // and at once.
  EXPECT_EQ(sink.FishFor<Restless>([](const Restless& one) { return one.number == 1; }).number, 1);
  EXPECT_EQ(sink.FishFor<Restless>([](const Restless& one) { return one.number == 2; }).number, 2);
  EXPECT_EQ(path, "pekko://b@b:2552/system/sink");
}

// Nor does a listener that throws end a thread of the transport's.
TEST_F(AssociationTest, OutlivesListenersThatThrow) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  int heard = 0;
  const EventSubscription listening =
      a.system().events().Listen<AuthorityStateChanged>([&](const AuthorityStateChanged&) {
        ++heard;
        throw std::runtime_error("not now");
      });
  Meet(a, b);
  EXPECT_GE(heard, 1);
  EXPECT_TRUE(a.IsAssociatedWith(b));
}

// Numbers go on when the same life comes back after a quarantine: nothing is delivered twice.
TEST_F(AssociationTest, DeliversNothingTwiceAfterAQuarantine) {
  RemotingConfig config;
  config.quarantine_duration = absl::Seconds(30);
  const TestNode a = nodes_.Add("a", {}, config);
  const TestNode b = nodes_.Add("b");
  auto victim = a.kit->SpawnNamed<Echo>("victim");
  Meet(b, a);
  Meet(a, b);
  // b asks a to stop an actor, and a's answer does not get through.
  network().CutOneWay(a.address, b.address);
  b.system().Stop(a.From(b, "/user/victim"));
  Advance(absl::Seconds(1));
  EXPECT_FALSE(a.kit->IsAlive(victim));
  EXPECT_EQ(b.Info(a).pending_system, 1u);
  EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {.is_harmless = true}).ok());
  auto second = a.kit->SpawnNamed<Echo>("victim");
  Advance(absl::Seconds(40));
  network().Heal();
  // The same message comes again, and is known.
  Advance(absl::Seconds(20));
  Meet(a, b);
  EXPECT_EQ(b.Info(a).pending_system, 0u);
  EXPECT_TRUE(a.kit->IsAlive(second));
}

// What waited in a queue as bytes is counted.
TEST_F(AssociationTest, CountsWhatIsLostInTheQueuesOfAPeerThatIsGone) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  auto probe = a.kit->Probe();
  for (int i = 0; i < 10; ++i) probe.Send(b.From(a, "/system/remote"), Note{.number = i});
  a.kit->ExpectEvents<QueuedMessagesLost>(
      1, [&] { EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok()); },
      [](const QueuedMessagesLost& lost) { return lost.count == 9 && lost.node == "pekko://b@b:2552"; });
  EXPECT_EQ(a.Info(b).lost, 9u);
}

// One AddressTerminated for each life.
TEST_F(AssociationTest, SaysOnceThatALifeIsGone) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  a.kit->ExpectEvents<AddressTerminated>(1, [&] {
    EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok());
    network().Crash(b.address);
    const TestNode again = Add("b");
    Meet(again, a);
    EXPECT_TRUE(a.IsAssociatedWith(again));
  });
}

// A name that nobody has there does not stand in the way of the one that somebody has.
TEST_F(AssociationTest, ForgetsAWrongNameOfANode) {
  const TestNode a = Add("a");
  auto probe = a.kit->Probe();
  const ActorRef right = a.system().Resolve("pekko://b@b:2552/user/echo").value();
  a.system().Resolve("pekko://typo@b:2552/user/echo").IgnoreError();
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  probe.Send(right, Question{1});
  EXPECT_EQ(probe.Expect<Note>().number, 2);
  // Once somebody was met, another name leads nowhere.
  EXPECT_FALSE(a.system().Resolve("pekko://typo@b:2552/user/echo").ok());
}

// Two nodes, and two starts of one, are never taken for each other.
TEST_F(AssociationTest, DrawsAnotherUidForEachStart) {
  std::set<uint64_t> uids;
  for (const char* const host : {"x", "y", "x"}) {
    const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();  // The same seed each time.
    ActorSystemOptions options;
    options.toolbox = toolbox.get();
    options.config.remoting = RemotingConfig{.canonical_hostname = host, .canonical_port = 1};
    auto system = ActorSystem::Create(options).value();
    uids.insert(Remoting::Start(*system, network().MakeTransport(AddressOf(host))).value()->system_uid());
  }
  EXPECT_EQ(uids.size(), 3u);
}

// R44: the port that a transport has picked has to be said; what it takes in has to be enough.
TEST_F(AssociationTest, RefusesAnAddressWithoutAPortAndATransportThatIsTooNarrow) {
  const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.config.remoting = RemotingConfig{.canonical_hostname = "x"};
  auto system = ActorSystem::Create(options).value();
  const absl::Status no_port = Remoting::Start(*system, network().MakeTransport(AddressOf("x"))).status();
  EXPECT_TRUE(absl::IsInvalidArgument(no_port)) << no_port;
  EXPECT_NE(std::string(no_port.message()).find("listens at 2552"), std::string::npos) << no_port;
  options.config.remoting->canonical_port = 2552;
  auto second = ActorSystem::Create(options).value();
  const absl::Status narrow = Remoting::Start(*second, network().MakeTransport(AddressOf("x")),
                                              {.limits = {.max_large_frame_bytes = size_t{8} << 20}})
                                  .status();
  EXPECT_TRUE(absl::IsInvalidArgument(narrow)) << narrow;
}

// R41
TEST_F(AssociationTest, BringsEverythingOnItsWayAndSaysGoodbyeAtTheEnd) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto sink = b.kit->Probe("sink");
  auto probe = a.kit->Probe();
  Meet(a, b);
  auto watcher = b.kit->Probe("watcher");
  a.kit->SpawnNamed<Echo>("echo");
  watcher.Send(a.From(b, "/user/echo"), Question{1});
  const ActorRef there = watcher.Expect<Note>().ref;
  watcher.Watch(there);
  Advance(absl::Seconds(1));
  Watch();
  for (int i = 0; i < 100; ++i) probe.Send(b.From(a, "/system/sink"), Note{.number = i});
  b.kit->ExpectEvents<AddressTerminated>(
      1,
      [&] {
        a.system().Terminate();
        for (int i = 0; i < 100; ++i) EXPECT_EQ(sink.Expect<Note>().number, i);
      },
      [&](const AddressTerminated& event) {
        return event.node == "pekko://a@a:2552" && event.system_uid == a.uid() && event.reason == "it has ended";
      });
  watcher.ExpectTerminated(there);
  EXPECT_GE(Count("a", wire::ControlMessage::kFlush), 1u);
  EXPECT_EQ(Count("a", wire::ControlMessage::kGoodbye), 1u);
  EXPECT_FALSE(b.Info(a).is_associated);
  Advance(absl::Seconds(2));
  EXPECT_TRUE(a.system().IsTerminated());
}

TEST_F(AssociationTest, EndsInTimeAlsoIfAPeerDoesNotAnswer) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  auto probe = a.kit->Probe();
  network().Cut(a.address, b.address);
  probe.Send(b.From(a, "/system/remote"), Note{.number = 1});
  const absl::Duration before = a.kit->Elapsed();
  a.system().Terminate();
  a.kit->AwaitThat("the end", [&] { return a.system().IsTerminated(); });
  EXPECT_LE(a.kit->Elapsed() - before, absl::Seconds(2));
}

TEST_F(AssociationTest, DoesNotFallOverReferencesThatOutliveTheirSystem) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const ActorRef there = b.From(a, "/system/remote");
  ActorRef outlived;
  {
    const std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
    ActorSystemOptions options;
    options.toolbox = toolbox.get();
    options.config.system_name = "short";
    options.config.remoting = RemotingConfig{.canonical_hostname = "short", .canonical_port = 1};
    auto system = ActorSystem::Create(options).value();
    ASSERT_TRUE(Remoting::Start(*system, network().MakeTransport(AddressOf("short"))).ok());
    outlived = system->Resolve("pekko://b@b:2552/user/x").value();
  }
  Tell(outlived, Note{.number = 1});  // Nothing happens.
  EXPECT_FALSE(there.IsNoOne());
  EXPECT_EQ(a.system().PathOf(outlived), "pekko://b@b:2552/?");
}

}  // namespace
}  // namespace fraktor
