// Nodes that talk: references, answers, selections, what cannot be sent.
#include "fraktor/remote/association/remoting.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/path_failure.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/remote/association/nodes_fixture.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

class RemotingTest : public NodesTest {};

TEST_F(RemotingTest, BringsMessagesToAnActorElsewhereAndItsAnswersBack) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  const ActorRef echo = b.From(a, "/user/echo");
  EXPECT_TRUE(echo.IsRemote());
  EXPECT_EQ(a.system().PathOf(echo), "pekko://b@b:2552/user/echo");
  for (int i = 0; i < 10; ++i) probe.Send(echo, Note{.number = i, .text = "hello"});
  for (int i = 0; i < 10; ++i) {
    const Note note = probe.Expect<Note>();
    EXPECT_EQ(note.number, i);
    EXPECT_EQ(note.text, "hello");
  }
  // Who answers is known by its path.
  EXPECT_TRUE(probe.LastSender().IsRemote());
  EXPECT_EQ(a.system().PathOf(probe.LastSender()), "pekko://b@b:2552/user/echo");
  EXPECT_TRUE(a.IsAssociatedWith(b));
  EXPECT_TRUE(b.IsAssociatedWith(a));
}

TEST_F(RemotingTest, HasReferencesThatAreEqualIfTheyMeanTheSameLifeOfAnActor) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  const ActorRef by_path = b.From(a, "/user/echo");
  EXPECT_EQ(by_path, b.From(a, "/user/echo"));
  probe.Send(by_path, Question{1});
  const ActorRef first = probe.Expect<Note>().ref;
  probe.Send(first, Question{2});
  const Note second = probe.Expect<Note>();
  EXPECT_EQ(second.ref, first);
  EXPECT_EQ(probe.LastSender(), first);
  EXPECT_NE(first, by_path);  // Whoever has the path, and the one that had it then.
  EXPECT_EQ(first.word() & ActorRef::kRemote, ActorRef::kRemote);
}

// A coroutine that asks somebody elsewhere.
struct Go {
  using Reply = std::string;
};
class Asker : public Actor<Asker, Go> {
 public:
  explicit Asker(ActorRef target) : target_(target) {}
  Task<std::string> On(Context& context, Go) {
    auto first = context.Ask<Note>(target_, Question{41}, absl::Seconds(5));
    absl::StatusOr<Note> note = co_await first;
    if (!note.ok()) co_return note.status();
    auto second = context.Ask<Note>(note->ref, Question{note->number}, absl::Seconds(5));
    absl::StatusOr<Note> again = co_await second;
    if (!again.ok()) co_return again.status();
    co_return absl::StrCat(again->number, " from ", again->text);
  }

 private:
  ActorRef target_;
};

TEST_F(RemotingTest, AnswersQuestionsOfCoroutinesElsewhere) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto asker = a.kit->Spawn<Asker>(b.From(a, "/user/echo"));
  EXPECT_EQ(a.kit->AskAndWait(asker, Go{}).value(), "43 from pekko://b/user/echo");
}

TEST_F(RemotingTest, SaysWhereTheOneIsThatDoesNotAnswer) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->Probe("silent");
  const absl::StatusOr<Note> note =
      a.system().AskAndWait<Note>(b.From(a, "/system/silent"), Question{1}, absl::Seconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(note.status()));
  EXPECT_EQ(
      note.status().message(),
      "ask timed out: pekko://b@b:2552 has not answered fraktor::Question of pekko://a/temp within 5s; what it is "
      "at is not known here");
}

class Grumpy : public Actor<Grumpy, Question> {
 public:
  absl::StatusOr<Note> On(Context&, const Question&) {
    return MakeError(absl::StatusCode::kAborted, ActorErrorKind::kKilled, "not today");
  }
};

TEST_F(RemotingTest, BringsErrorsBackWithTheirKinds) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Grumpy>("grumpy");
  const absl::StatusOr<Note> note =
      a.system().AskAndWait<Note>(b.From(a, "/user/grumpy"), Question{1}, absl::Seconds(5));
  EXPECT_TRUE(absl::IsAborted(note.status())) << note.status();
  EXPECT_EQ(note.status().message(), "not today");
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(note.status()), ActorErrorKind::kKilled);
}

// Answers by itself.
class Agreeable final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Reply(Done{});
    return absl::OkStatus();
  }
};

TEST_F(RemotingTest, BringsDoneBackWithoutACodecOfTheUsers) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  ASSERT_TRUE(b.system().SpawnActor(PropsOf<Agreeable>(), "agreeable").ok());
  const absl::StatusOr<Done> done =
      a.system().AskAndWait<Done>(b.From(a, "/user/agreeable"), Question{1}, absl::Seconds(5));
  EXPECT_TRUE(done.ok()) << done.status();
}

TEST_F(RemotingTest, CarriesReferencesInMessagesWhereverTheyLead) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const TestNode c = Add("c");
  b.kit->SpawnNamed<Echo>("echo");
  c.kit->SpawnNamed<Echo>("echo");
  auto at_a = a.kit->Probe("pa");
  auto at_b = b.kit->Probe("pb");
  // A reference of a, one of b that a knows, and one of c that a knows, all to b.
  at_a.Send(c.From(a, "/user/echo"), Question{1});
  const ActorRef of_c = at_a.Expect<Note>().ref;
  at_a.Send(b.From(a, "/system/pb"), Note{.number = 1, .ref = at_a.ref()});
  at_a.Send(b.From(a, "/system/pb"), Note{.number = 2, .ref = of_c});
  const ActorRef a_seen_from_b = at_b.Expect<Note>().ref;
  EXPECT_EQ(b.system().PathOf(a_seen_from_b), "pekko://a@a:2552/system/pa");
  const ActorRef c_seen_from_b = at_b.Expect<Note>().ref;
  EXPECT_EQ(b.system().PathOf(c_seen_from_b), "pekko://c@c:2552/user/echo");
  at_b.Send(a_seen_from_b, Note{.number = 3, .ref = at_b.ref()});
  EXPECT_EQ(at_a.Expect<Note>().number, 3);
  at_b.Send(c_seen_from_b, Question{7});
  EXPECT_EQ(at_b.Expect<Note>().number, 8);
  EXPECT_EQ(at_b.LastSender(), c_seen_from_b);
  // It comes home as what it was.
  at_b.Send(a_seen_from_b, Note{.number = 4, .ref = a_seen_from_b});
  EXPECT_EQ(at_a.Expect<Note>().ref, at_a.ref());
  at_b.Send(a_seen_from_b, Note{.number = 5, .ref = ActorRef()});
  EXPECT_TRUE(at_a.Expect<Note>().ref.IsNoOne());
}

// R39
TEST_F(RemotingTest, LosesWhatHasNoCodecAndKeepsTheLink) {
  const TestNode a = Add("a");
  const TestNode b = nodes_.Add("b");
  auto at_b = b.kit->Probe("pb");
  const ActorRef there = b.From(a, "/system/pb");
  auto probe = a.kit->Probe();
  a.kit->ExpectDeadLetters<Private>(1, [&] {
    probe.Send(there, Note{.number = 1});
    probe.Send(there, Private{2});
    probe.Send(there, Note{.number = 3});
    EXPECT_EQ(at_b.Expect<Note>().number, 1);
    EXPECT_EQ(at_b.Expect<Note>().number, 3);
  });
  EXPECT_EQ(a.system().dead_letters().count(DeadLetterReason::kNotSerializable), 1u);
  // Who asked need not wait.
  EXPECT_TRUE(absl::IsDeadlineExceeded(a.system().AskAndWait<Note>(there, Private{4}, absl::Hours(1)).status()));
}

// R39
TEST_F(RemotingTest, LosesWhatCannotBeReadAndKeepsTheLink) {
  const TestNode a = nodes_.Add("a", {}, {}, /*has_rare=*/true);
  const TestNode b = Add("b");
  auto at_b = b.kit->Probe("pb");
  const ActorRef there = b.From(a, "/system/pb");
  auto probe = a.kit->Probe();
  b.kit->ExpectEvents<DeadLetter>(
      1,
      [&] {
        probe.Send(there, Rare{1});
        probe.Send(there, Note{.number = 2});
        EXPECT_EQ(at_b.Expect<Note>().number, 2);
      },
      [](const DeadLetter& letter) {
        return letter.reason == DeadLetterReason::kNotReadable && letter.message.type_name == "test.rare" &&
               letter.recipient == "/system/pb";
      });
}

TEST_F(RemotingTest, LosesWhatIsLargerThanAFrame) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto at_b = b.kit->Probe("pb");
  auto probe = a.kit->Probe();
  a.kit->ExpectDeadLetters<Note>(1, [&] {
    probe.Send(b.From(a, "/system/pb"), Note{.number = 1, .text = std::string(300'000, 'x')});
    probe.Send(b.From(a, "/system/pb"), Note{.number = 2, .text = std::string(200'000, 'x')});
    probe.Send(b.From(a, "/system/pb"), Note{.number = 3, .text = std::string(200'000, 'x')});
    EXPECT_EQ(at_b.Expect<Note>().number, 2);
    EXPECT_EQ(at_b.Expect<Note>().number, 3);
  });
}

TEST_F(RemotingTest, LosesMessagesToActorsThatAreNotThereAtTheirNode) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto echo = b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/user/echo"), Question{1});
  const ActorRef with_uid = probe.Expect<Note>().ref;
  b.system().Stop(echo);
  Advance(absl::Seconds(1));
  b.kit->SpawnNamed<Echo>("echo");
  b.kit->ExpectDeadLetters<Question>(2, [&] {
    probe.Send(with_uid, Question{2});  // Meant the one before.
    probe.Send(b.From(a, "/user/nobody"), Question{3});
    probe.Send(b.From(a, "/user/echo"), Question{4});
    EXPECT_EQ(probe.Expect<Note>().number, 5);
  });
}

// R43: what was found is the same reference each time, also across a quarantine; who is meant by it is not.
TEST_F(RemotingTest, RemembersReferencesAndNotWhoWasThere) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  const ActorRef by_path = b.From(a, "/user/echo");
  probe.Send(by_path, Question{1});
  const ActorRef by_uid = probe.Expect<Note>().ref;
  EXPECT_TRUE(a.remoting->Quarantine(b.address, b.uid(), {}).ok());
  network().Crash(b.address);
  const TestNode again = Add("b");
  again.kit->SpawnNamed<Echo>("echo");
  Meet(again, a);
  EXPECT_EQ(again.From(a, "/user/echo"), by_path);
  probe.Send(by_path, Question{2});
  const Note note = probe.Expect<Note>();
  EXPECT_EQ(note.number, 3);
  EXPECT_NE(note.ref, by_uid);
  a.kit->ExpectDeadLetters<Question>(1, [&] { probe.Send(by_uid, Question{3}); });
}

// R43
TEST_F(RemotingTest, FindsAPathAnewForEachBatch) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto probe = a.kit->Probe();
  const ActorRef by_path = b.From(a, "/user/echo");
  probe.Send(by_path, Question{1});  // Nobody is there: that is not remembered.
  Advance(absl::Seconds(1));
  auto first = b.kit->SpawnNamed<Echo>("echo");
  probe.Send(by_path, Question{2});
  const ActorRef was = probe.Expect<Note>().ref;
  b.system().Stop(first);
  Advance(absl::Seconds(1));
  b.kit->SpawnNamed<Echo>("echo");
  probe.Send(by_path, Question{3});
  EXPECT_NE(probe.Expect<Note>().ref, was);
}

TEST_F(RemotingTest, UnderstandsTheRuntimesOwnMessages) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto echo = b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  const ActorRef there = b.From(a, "/user/echo");
  probe.Send(there, Identify{.id = 9});
  const ActorIdentity identity = probe.Expect<ActorIdentity>();
  EXPECT_EQ(identity.id, 9u);
  EXPECT_EQ(identity.ref, probe.LastSender());
  probe.Send(there, PoisonPill{});
  Advance(absl::Seconds(1));
  EXPECT_FALSE(b.kit->IsAlive(echo));
  auto second = b.kit->SpawnNamed<Echo>("echo");
  a.system().Stop(there);
  Advance(absl::Seconds(1));
  EXPECT_FALSE(b.kit->IsAlive(second));
}

TEST_F(RemotingTest, SelectsActorsOfAnotherNode) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("one");
  b.kit->SpawnNamed<Echo>("two");
  auto probe = a.kit->Probe();
  Select(a.system(), b.Path("/user/*")).TellAs(probe.ref(), Question{1});
  const ActorRef first = (probe.Expect<Note>(), probe.LastSender());
  const ActorRef second = (probe.Expect<Note>(), probe.LastSender());
  EXPECT_NE(first, second);
  Select(a.system(), b.Path("/user/one/../two")).TellAs(probe.ref(), Question{2});
  EXPECT_EQ(probe.Expect<Note>().text, "pekko://b/user/two");
  // Nobody.
  Select(a.system(), b.Path("/user/three")).TellAs(probe.ref(), Identify{.id = 3});
  EXPECT_TRUE(probe.Expect<ActorIdentity>().ref.IsNoOne());
  b.kit->ExpectDeadLetters<Question>(1,
                                     [&] { Select(a.system(), b.Path("/user/th*")).TellAs(probe.ref(), Question{4}); });
  auto resolving = Select(a.system(), b.Path("/user/tw?")).ResolveOne(absl::Seconds(5));
  a.kit->AwaitThat("the answer", [&] { return resolving.IsReady(); });
  EXPECT_EQ(a.system().PathOf(resolving.Take().value()), "pekko://b@b:2552/user/two");
  auto none = Select(a.system(), b.Path("/user/three")).ResolveOne(absl::Seconds(5));
  a.kit->AwaitThat("the answer", [&] { return none.IsReady(); });
  EXPECT_TRUE(absl::IsNotFound(none.Take().status()));
}

// PTH-9: what the running system meets is an error, an event and a dead letter.
TEST_F(RemotingTest, DoesNotReachAuthoritiesThatItCannotSpeakTo) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  EXPECT_TRUE(absl::IsNotFound(a.system().Resolve("pekko://x/user/echo").status()));
  // A node that is called otherwise than who lives there: vector 131.
  auto probe = a.kit->Probe();
  Select(a.system(), "pekko://other@b:2552/user/echo").TellAs(probe.ref(), Identify{.id = 1});
  EXPECT_TRUE(probe.Expect<ActorIdentity>(absl::Minutes(1)).ref.IsNoOne());
  // What is wrong with a selection is found out where it leads.
  b.kit->ExpectEvents<PathFailure>(
      1, [&] { Select(a.system(), "pekko://b@b:2552/user/../../system").TellAs(probe.ref(), Note{}); });
  EXPECT_EQ(b.system().dead_letters().count(DeadLetterReason::kInvalidPath), 1u);
  // One that cannot be read is nowhere.
  a.kit->ExpectEvents<PathFailure>(
      1, [&] { Select(a.system(), "pekko://b@in_valid:2552/user/echo").TellAs(probe.ref(), Note{}); });
}

TEST_F(RemotingTest, SpawnsActorsByAFactoryOfAnotherNode) {
  const TestNode a = Add("a");
  const TestNode b = Add("b", {.allow_deployment = true});
  ASSERT_TRUE(b.remoting
                  ->RegisterFactory("echo",
                                    [](std::string_view argument) -> absl::StatusOr<PropsPtr> {
                                      if (argument != "please") return absl::InvalidArgumentError("say please");
                                      return MakeTypedProps<Echo>({});
                                    })
                  .ok());
  const auto spawn = [&](std::string_view factory, std::string_view argument) {
    auto spawning = a.remoting->SpawnAt(b.remoting->address(), factory, argument, "worker");
    a.kit->AwaitThat("the actor", [&] { return spawning.IsReady(); });
    return spawning.Take();
  };
  const absl::StatusOr<ActorRef> worker = spawn("echo", "please");
  ASSERT_TRUE(worker.ok()) << worker.status();
  auto probe = a.kit->Probe();
  probe.Send(*worker, Question{1});
  EXPECT_EQ(probe.Expect<Note>().text, "pekko://b/system/remote/worker");
  EXPECT_TRUE(absl::IsInvalidArgument(spawn("echo", "now").status()));
  EXPECT_TRUE(absl::IsNotFound(spawn("other", "please").status()));
  EXPECT_TRUE(absl::IsAlreadyExists(spawn("echo", "please").status()));
}

TEST_F(RemotingTest, AnswersForFactoriesThatThrowOrMakeNothing) {
  const TestNode a = Add("a");
  const TestNode b = Add("b", {.allow_deployment = true});
  ASSERT_TRUE(
      b.remoting
          ->RegisterFactory(
              "throws", [](std::string_view) -> absl::StatusOr<PropsPtr> { throw std::runtime_error("no parts left"); })
          .ok());
  ASSERT_TRUE(
      b.remoting->RegisterFactory("null", [](std::string_view) -> absl::StatusOr<PropsPtr> { return nullptr; }).ok());
  for (const char* const factory : {"throws", "null"}) {
    auto spawning = a.remoting->SpawnAt(b.remoting->address(), factory, "");
    a.kit->AwaitThat("the answer", [&] { return spawning.IsReady(); });
    EXPECT_TRUE(absl::IsInternal(spawning.Take().status())) << factory;
  }
}

// R30
TEST_F(RemotingTest, SpawnsNothingForOthersUnlessItIsAllowed) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  ASSERT_TRUE(b.remoting->RegisterFactory("echo", [](std::string_view) { return MakeTypedProps<Echo>({}); }).ok());
  auto spawning = a.remoting->SpawnAt(b.remoting->address(), "echo", "");
  a.kit->AwaitThat("the answer", [&] { return spawning.IsReady(); });
  EXPECT_TRUE(absl::IsPermissionDenied(spawning.Take().status()));
}

// R40
TEST_F(RemotingTest, DropsWhatIsHarmfulFromPeersThatItDoesNotTrust) {
  const TestNode a = Add("a");
  const TestNode b = Add("b", {.untrusted = true, .trusted_selections = {"/user/open"}, .allow_deployment = true});
  ASSERT_TRUE(b.remoting->RegisterFactory("echo", [](std::string_view) { return MakeTypedProps<Echo>({}); }).ok());
  auto open = b.kit->SpawnNamed<Echo>("open");
  b.kit->SpawnNamed<Echo>("closed");
  auto probe = a.kit->Probe();
  const ActorRef there = b.From(a, "/user/open");
  probe.Send(there, PoisonPill{});
  probe.Send(there, Kill{});
  a.system().Stop(there);
  probe.Watch(there);
  Select(a.system(), b.Path("/user/closed")).TellAs(probe.ref(), Question{1});
  Select(a.system(), b.Path("/user/*")).TellAs(probe.ref(), Question{2});
  Select(a.system(), b.Path("/user/open")).TellAs(probe.ref(), Question{3});
  EXPECT_EQ(probe.Expect<Note>().number, 4);
  auto spawning = a.remoting->SpawnAt(b.remoting->address(), "echo", "", "", absl::Seconds(2));
  Advance(absl::Seconds(3));
  EXPECT_FALSE(spawning.Take().ok());
  EXPECT_TRUE(b.kit->IsAlive(open));
  b.system().Stop(open);
  probe.ExpectNoMessage(absl::Seconds(5));  // Watching was not allowed.
}

TEST_F(RemotingTest, RefusesToStartWithoutAnAddressOrTwice) {
  const TestNode a = Add("a");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Remoting::Start(a.system(), network().MakeTransport(AddressOf("x"))).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Remoting::Start(sim_.system(), network().MakeTransport(AddressOf("y"))).status()));
  EXPECT_EQ(Remoting::Of(a.system()), a.remoting);
  EXPECT_FALSE(RemoteOptions{.tick = absl::ZeroDuration()}.Validate().ok());
  EXPECT_FALSE((RemoteOptions{.versions = {1, 9}}).Validate().ok());
  EXPECT_FALSE(RemoteOptions{.max_paths = 0}.Validate().ok());
}

// R44: what others know it by is not where it listens.
TEST_F(RemotingTest, IsKnownByItsCanonicalAddress) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  EXPECT_EQ(a.remoting->address().ToString(), "pekko://a@a:2552");
  // Its own address leads to itself.
  auto local = a.kit->SpawnNamed<Echo>("echo");
  EXPECT_EQ(a.system().Resolve(a.Path("/user/echo")).value(), local.untyped());
}

}  // namespace
}  // namespace fraktor
