// Watching actors of other nodes.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/remote/association/nodes_fixture.h"
#include "fraktor/remote/association/peer.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/testing/counted_key.h"

namespace fraktor {
namespace {

class RemoteWatchTest : public NodesTest {
 protected:
  // An echo at `node`, and how `from` knows it.
  std::pair<ActorRef, ActorRef> EchoAt(const TestNode& node, const TestNode& from, std::string_view name = "echo") {
    const ActorRef here = node.kit->SpawnNamed<Echo>(name).untyped();
    auto probe = from.kit->Probe();
    probe.Send(node.From(from, absl::StrCat("/user/", std::string(name))), Question{1});
    return {here, probe.Expect<Note>().ref};
  }
};

// R24
TEST_F(RemoteWatchTest, TellsOfTheEndOfAnActorElsewhere) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto one = a.kit->Probe();
  auto two = a.kit->Probe();
  one.Watch(there);
  two.Watch(there);
  Advance(absl::Seconds(1));
  b.system().Stop(here);
  for (auto* probe : {&one, &two}) {
    const auto terminated = probe->Expect<Terminated>();
    EXPECT_EQ(terminated.actor, there);
    EXPECT_TRUE(terminated.existence_confirmed);
    EXPECT_FALSE(terminated.address_terminated);
  }
  one.ExpectNoMessage(absl::Minutes(1));
  EXPECT_EQ(a.Info(b).watches, 0u);
}

// R24, R27
TEST_F(RemoteWatchTest, AsksOnlyNodesWithWatchedActorsHowTheyAre) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const TestNode c = Add("c");
  const auto at_b = EchoAt(b, a);
  EchoAt(c, a);
  Advance(absl::Seconds(10));
  EXPECT_EQ(a.Info(b).heartbeats, 0u);
  auto probe = a.kit->Probe();
  probe.Watch(at_b.second);
  Advance(absl::Seconds(10));
  const uint64_t sent = a.Info(b).heartbeats;
  EXPECT_GE(sent, 9u);
  EXPECT_LE(sent, 11u);
  EXPECT_EQ(a.Info(c).heartbeats, 0u);
  EXPECT_EQ(b.Info(a).heartbeats, 0u);
  EXPECT_TRUE(a.Info(b).has_detector);
  probe.Unwatch(at_b.second);
  Advance(absl::Seconds(10));
  EXPECT_LE(a.Info(b).heartbeats, sent + 1);
  EXPECT_FALSE(a.Info(b).has_detector);
  b.system().Stop(at_b.first);
  probe.ExpectNoMessage(absl::Seconds(5));
}

// R25
TEST_F(RemoteWatchTest, TakesANodeForDeadWhoseHeartbeatsStop) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(30));
  network().Cut(a.address, b.address);
  const absl::Duration before = a.kit->Elapsed();
  a.kit->ExpectEvents<AddressTerminated>(
      1,
      [&, gone = there] {
        const auto terminated = probe.Expect<Terminated>();
        EXPECT_EQ(terminated.actor, gone);
        EXPECT_TRUE(terminated.address_terminated);
      },
      [&](const AddressTerminated& event) { return event.system_uid == b.uid(); });
  const absl::Duration took = a.kit->Elapsed() - before;
  EXPECT_GE(took, absl::Seconds(10));
  EXPECT_LE(took, absl::Seconds(14));
  EXPECT_TRUE(a.HasQuarantined(b));
  EXPECT_TRUE(b.kit->IsAlive(here));
}

// R29
TEST_F(RemoteWatchTest, TellsWhoWatchesAtAHostWhereNobodyIs) {
  const TestNode a = Add("a");
  auto probe = a.kit->Probe();
  const ActorRef nowhere = a.system().Resolve("pekko://nobody@nowhere:2552/user/echo").value();
  probe.Watch(nowhere);
  const auto terminated = probe.Expect<Terminated>();
  EXPECT_EQ(terminated.actor, nowhere);
  EXPECT_TRUE(terminated.address_terminated);
  EXPECT_FALSE(terminated.existence_confirmed);
  probe.Send(nowhere, Identify{.id = 2});
  EXPECT_TRUE(probe.Expect<ActorIdentity>().ref.IsNoOne());
}

// R29
TEST_F(RemoteWatchTest, TellsWhoWatchesAnActorThatIsNotThere) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  b.system().Stop(here);
  Advance(absl::Seconds(1));
  auto probe = a.kit->Probe();
  probe.ExpectTerminated(there);
  const ActorRef nobody = b.From(a, "/user/nobody");
  probe.Watch(nobody);
  const auto terminated = probe.Expect<Terminated>();
  EXPECT_EQ(terminated.actor, nobody);
  EXPECT_FALSE(terminated.existence_confirmed);
}

TEST_F(RemoteWatchTest, TellsOfTheEndOfALifeAlsoThoseWhoWatchByPath) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto by_path = a.kit->Probe();
  auto by_uid = a.kit->Probe();
  const ActorRef path = b.From(a, "/user/echo");
  by_path.Watch(path);
  by_uid.Watch(there);
  Advance(absl::Seconds(3));
  network().Crash(b.address);
  const TestNode again = Add("b");
  const ActorRef second = again.kit->SpawnNamed<Echo>("echo").untyped();
  // The one that was meant is gone with its node, by whichever name he was watched.
  const auto terminated = by_uid.Expect<Terminated>();
  EXPECT_EQ(terminated.actor, there);
  EXPECT_TRUE(terminated.address_terminated);
  const auto at_path = by_path.Expect<Terminated>();
  EXPECT_EQ(at_path.actor, path);
  EXPECT_TRUE(at_path.address_terminated);
  // Whoever has the path now is watched anew. By another probe: one does not watch the same actor twice.
  auto anew = a.kit->Probe();
  anew.Watch(path);
  anew.ExpectNoMessage(absl::Seconds(5));
  again.system().Stop(second);
  EXPECT_FALSE(anew.Expect<Terminated>().address_terminated);
}

// R26: a watch that the former life was not told of is one of the next life.
TEST_F(RemoteWatchTest, WatchesAPathThatTheFormerLifeWasNotToldOf) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  Meet(a, b);
  network().Crash(b.address);
  Advance(absl::Seconds(1));
  auto probe = a.kit->Probe();
  const ActorRef path = b.From(a, "/user/echo");
  probe.Watch(path);
  const TestNode again = Add("b");
  const ActorRef second = again.kit->SpawnNamed<Echo>("echo").untyped();
  probe.ExpectNoMessage(absl::Seconds(5));
  again.system().Stop(second);
  const auto terminated = probe.Expect<Terminated>();
  EXPECT_EQ(terminated.actor, path);
  EXPECT_FALSE(terminated.address_terminated);
}

// R28
TEST_F(RemoteWatchTest, BeginsAfreshWithANodeThatWasTakenForDead) {
  RemotingConfig config;
  config.quarantine_duration = absl::Seconds(20);
  const TestNode a = nodes_.Add("a", {}, config);
  const TestNode b = nodes_.Add("b", {}, config);
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(10));
  network().Cut(a.address, b.address);
  EXPECT_TRUE(probe.Expect<Terminated>().address_terminated);
  network().Heal();
  Advance(absl::Minutes(1));
  auto later = a.kit->Probe();
  later.Watch(b.From(a, "/user/echo"));
  later.ExpectNoMessage(absl::Minutes(1));
  b.system().Stop(here);
  EXPECT_FALSE(later.Expect<Terminated>().address_terminated);
}

TEST_F(RemoteWatchTest, DoesNotTakeShortSilencesForTheEnd) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(10));
  for (int i = 0; i < 5; ++i) {
    network().Cut(a.address, b.address);
    Advance(absl::Seconds(5));
    network().Heal();
    Advance(absl::Seconds(20));
  }
  probe.ExpectNoMessage();
  EXPECT_TRUE(a.IsAssociatedWith(b));
  b.system().Stop(here);
  EXPECT_FALSE(probe.Expect<Terminated>().address_terminated);
}

// R42
TEST_F(RemoteWatchTest, BringsTheLastWordsOfAnActorBeforeTheNewsOfItsEnd) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(1));
  // Ordinary frames are slow for a while, system messages are not.
  std::vector<std::string> late;
  network().SetTamper([&](const PathAuthority& from, const PathAuthority&, std::string& frame) {
    if (from.host() != "b" || frame[1] != 2) return true;
    late.push_back(frame);
    return false;
  });
  for (int i = 0; i < 5; ++i) probe.Send(there, Question{i});
  probe.Send(there, PoisonPill{});
  Advance(absl::Seconds(1));
  EXPECT_FALSE(b.kit->IsAlive(here));
  probe.ExpectNoMessage();
  ASSERT_FALSE(late.empty());
  network().SetTamper(nullptr);
  // They arrive after all, on whatever stream of b.
  Stranger other(sim_, network(), "other");
  other.Write(a, RequestFrame(a, "b", b.uid()));
  Advance(absl::Milliseconds(1100));
  for (const std::string& frame : late) other.Write(a, frame);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(probe.Expect<Note>().number, i + 1);
  EXPECT_EQ(probe.Expect<Terminated>().actor, there);
}

// R42
TEST_F(RemoteWatchTest, DoesNotWaitForLastWordsForEver) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(1));
  network().SetTamper([&](const PathAuthority& from, const PathAuthority&, std::string& frame) {
    return from.host() != "b" || frame[1] != 2;
  });
  probe.Send(there, Question{1});
  probe.Send(there, PoisonPill{});
  const absl::Duration before = a.kit->Elapsed();
  EXPECT_EQ(probe.Expect<Terminated>().actor, there);
  EXPECT_GE(a.kit->Elapsed() - before, absl::Seconds(3));
  EXPECT_LE(a.kit->Elapsed() - before, absl::Seconds(4));
}

// Who knows an actor by its path and by its uid hears of both.
TEST_F(RemoteWatchTest, TellsOfTheEndByEachNameByWhichAnActorIsWatched) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  const ActorRef path = b.From(a, "/user/echo");
  auto both = a.kit->Probe();
  auto one = a.kit->Probe();
  both.Watch(there);
  both.Watch(path);
  one.Watch(path);
  one.Watch(there);
  one.Unwatch(there);
  Advance(absl::Seconds(1));
  b.system().Stop(here);
  const ActorRef first = both.Expect<Terminated>().actor;
  const ActorRef second = both.Expect<Terminated>().actor;
  EXPECT_TRUE((first == there && second == path) || (first == path && second == there));
  EXPECT_EQ(one.Expect<Terminated>().actor, path);
  one.ExpectNoMessage(absl::Seconds(5));
  both.ExpectNoMessage();
}

// R32: another detector decides by the deadline alone.
TEST_F(RemoteWatchTest, TakesANodeForDeadByTheDetectorOfItsOptions) {
  const TestNode a = Add("a", {.detector_kind = RemoteOptions::Detector::kDeadline,
                               .deadline_detector = {.acceptable_pause = absl::Seconds(40)}});
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(30));
  network().Cut(a.address, b.address);
  probe.ExpectNoMessage(absl::Seconds(39));
  EXPECT_TRUE(probe.Expect<Terminated>(absl::Seconds(3)).address_terminated);
}

TEST_F(RemoteWatchTest, ForgetsWatchersOfANodeThatIsGone) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Seconds(1));
  network().Crash(a.address);
  const TestNode again = Add("a");
  Meet(again, b);
  // Nobody is told, and nothing is sent to the former life.
  b.kit->ExpectEvents<AllDeadLetters>(0, [&, actor = here] {
    b.system().Stop(actor);
    Advance(absl::Seconds(5));
  });
  EXPECT_EQ(b.Info(again).pending_system, 0u);
}

// R23: what has to get through gets through while system messages wait.
TEST_F(RemoteWatchTest, SendsHeartbeatsPastSystemMessagesThatWait) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const auto [here, there] = EchoAt(b, a);
  Meet(b, a);
  network().SetTamper([](const PathAuthority&, const PathAuthority&, std::string& frame) {
    if (frame[1] != 1) return true;
    const FrameView view = ReadFrame(frame, WireLimits()).value();
    return !DecodeControl(view.body, WireLimits())->has_system_ack();
  });
  auto probe = a.kit->Probe();
  probe.Watch(there);
  Advance(absl::Minutes(2));
  EXPECT_GT(a.Info(b).pending_system, 0u);
  EXPECT_GE(a.Info(b).heartbeats, 100u);
  EXPECT_TRUE(a.IsAssociatedWith(b));
}

// The cost of a watch does not depend on the number of watchers. Counts comparisons and not time.
TEST(OutboundWatchTest, ComparesAConstantNumberOfWatchersInEachCall) {
  constexpr uint64_t kCount = 30'000;
  OutboundWatchOf<CountedKey> watch;
  CountedKey::comparisons = 0;
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(watch.watchers.Insert({i}));
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_FALSE(watch.watchers.Insert({i}));
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(watch.watchers.Erase({i}));
  EXPECT_LT(CountedKey::comparisons, 4 * kCount * IndexedSet<CountedKey>::kMaxUnindexed);
}

}  // namespace
}  // namespace fraktor
