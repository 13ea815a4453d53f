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
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/internal/remote_provider.h"
#include "fraktor/remote/association/nodes_fixture.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

class RemotingTest : public NodesTest {};

bool Has(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

// Passes what it gets on.
class Relaying : public Actor<Relaying, Question> {
 public:
  explicit Relaying(ActorRef to) : to_(to) {}
  Forwarded<Note> On(Context& context, const Question& question) { return context.Forward(to_, Question(question)); }

 private:
  ActorRef to_;
};

class TwiceWrong : public Actor<TwiceWrong, Note> {
 public:
  void On(Context& context, const Note&) {
    context.Reply(ErrorReply{absl::InternalError("first")});
    context.Reply(ErrorReply{absl::InternalError("second")});
  }
};

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

// PTH-1, PTH-5
TEST_F(RemotingTest, SaysWhichLifeOfAnActorElsewhereAReferenceMeans) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto probe = a.kit->Probe();
  const ActorRef by_path = b.From(a, "/user/echo");
  std::vector<std::string> lives;
  for (int life = 0; life < 2; ++life) {
    const ActorRef echo = b.kit->SpawnNamed<Echo>("echo").untyped();
    const std::string there = b.system().CanonicalPathOf(echo);
    probe.Send(by_path, Question{1});
    const ActorRef seen = probe.Expect<Note>().ref;
    EXPECT_EQ(a.system().PathOf(seen), "pekko://b@b:2552/user/echo");
    lives.push_back(a.system().CanonicalPathOf(seen));
    EXPECT_EQ(lives.back(), absl::StrCat("pekko://b@b:2552/user/echo", there.substr(there.rfind('#'))));
    b.system().Stop(echo);
    Advance(absl::Seconds(1));
    EXPECT_EQ(a.system().CanonicalPathOf(seen), lives.back());
  }
  EXPECT_NE(lives[0], lives[1]);
  // A reference by path means any actor that has the path.
  EXPECT_EQ(a.system().CanonicalPathOf(by_path), "pekko://b@b:2552/user/echo");
}

TEST_F(RemotingTest, StoresAReferenceToAnActorElsewhereAsItsPath) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Echo>("echo");
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/user/echo"), Question{1});
  const ActorRef echo = probe.Expect<Note>().ref;
  PathRefs refs(a.system());
  std::string bytes;
  ASSERT_TRUE(refs.Write(echo, bytes).ok());
  EXPECT_EQ(bytes, "pekko://b@b:2552/user/echo");
  EXPECT_EQ(refs.Read(bytes).value(), b.From(a, "/user/echo"));
  // A system without remoting reaches nobody there.
  TestKit alone;
  EXPECT_EQ(PathRefs(alone.system()).Read(bytes).value(), ActorRef());
  // A selection is no single actor.
  const ActorRef selected =
      a.system().remote_provider()->SelectionAt(ActorPathParser::Parse("pekko://b@b:2552/user").value(), "/*").value();
  bytes.clear();
  ASSERT_TRUE(refs.Write(selected, bytes).ok());
  EXPECT_EQ(bytes, "");
}

// A100
TEST_F(RemotingTest, BringsAnAnswerBackByThePathOfTheAsk) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto silent = a.kit->Probe("silent");
  Future<Note> answer = a.system().Ask<Note>(silent.ref(), Question{1}, absl::Hours(1));
  silent.Expect<Question>();
  const std::string path = a.system().PathOf(silent.LastSender());
  EXPECT_EQ(path, "pekko://a/temp/silent$a");
  Select(b.system(), a.Path("/temp/silent$a")).Tell(Note{.number = 7});
  Advance(absl::Seconds(1));
  ASSERT_TRUE(answer.IsReady());
  EXPECT_EQ(answer.Take().value().number, 7);
  // And by a reference.
  Future<Note> another = a.system().Ask<Note>(silent.ref(), Question{1}, absl::Hours(1));
  silent.Expect<Question>();
  EXPECT_EQ(a.system().PathOf(silent.LastSender()), "pekko://a/temp/silent$b");
  Tell(a.From(b, "/temp/silent$b"), Note{.number = 8});
  Advance(absl::Seconds(1));
  ASSERT_TRUE(another.IsReady());
  EXPECT_EQ(another.Take().value().number, 8);
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
      "ask timed out: pekko://b@b:2552/system/silent has not replied to fraktor::Question of pekko://a/temp within "
      "5s; its node is connected, but what the target is doing is not known here");
  // By its uid as well.
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/system/silent"), Identify{.id = 1});
  const ActorRef there = probe.Expect<ActorIdentity>().ref;
  EXPECT_NE(there, b.From(a, "/system/silent"));
  const absl::Status again = a.system().AskAndWait<Note>(there, Question{1}, absl::Seconds(5)).status();
  EXPECT_TRUE(Has(again, "ask timed out: pekko://b@b:2552/system/silent has not replied to")) << again;
}

TEST_F(RemotingTest, SaysThatANodeIsNotConnectedAndWhy) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  const ActorRef nowhere = a.system().Resolve("pekko://c@c:2552/user/echo").value();
  a.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "stream to pekko://c@c:2552 could not be opened"}, 1, [&] {
    const absl::Status absent = a.system().AskAndWait<Note>(nowhere, Question{1}, absl::Seconds(5)).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(absent)) << absent;
    EXPECT_TRUE(Has(absent, "pekko://c@c:2552/user/echo has not replied to")) << absent;
    EXPECT_TRUE(Has(absent, "; its node is not connected: nobody answers at pekko://c:2552")) << absent;
  });
  // Somebody is there, who is called otherwise.
  const ActorRef typo = a.system().Resolve("pekko://typo@b:2552/user/echo").value();
  a.kit->ExpectLog({.level = LogLevel::kWarning, .contains = "is the system there called \"typo\""}, 1, [&] {
    const absl::Status other = a.system().AskAndWait<Note>(typo, Question{1}, absl::Seconds(5)).status();
    EXPECT_TRUE(Has(other, "its node is not connected: ")) << other;
    EXPECT_TRUE(Has(other, "does not answer the handshake: is the system there called \"typo\"")) << other;
  });
}

// So long no other warning of the same trouble comes, and then one does.
TEST_F(RemotingTest, WarnsOfATroubleAgainAfterAWhile) {
  const TestNode a = Add("a");
  const ActorRef nowhere = a.system().Resolve("pekko://c@c:2552/user/echo").value();
  const LogFilter warnings{.level = LogLevel::kWarning, .contains = "could not be opened"};
  a.kit->ExpectLog(warnings, 1, [&] {
    Tell(nowhere, Question{1});
    Advance(absl::Seconds(50));
  });
  a.kit->ExpectLog(warnings, 1, [&] { Advance(absl::Seconds(50)); });
}

// Fails in several ways.
class Moody : public Actor<Moody, Question, Rare, Refs> {
 public:
  Note On(Context&, const Question& question) {
    if (question.number == 0) throw std::runtime_error("not in the mood");
    return {.number = question.number};
  }
  Private On(Context&, const Rare&) { return {}; }
  Rare On(Context&, const Refs&) { return {}; }
};

// What a question hears locally, it hears across nodes, and as fast.
TEST_F(RemotingTest, TellsWhoAskedWhyNobodyAnswers) {
  const TestNode a = nodes_.Add("a", {}, {}, /*has_rare=*/true);
  const TestNode b = nodes_.Add("b", {}, {}, /*has_rare=*/true);
  auto moody = b.kit->SpawnNamed<Moody>("moody");
  const ActorRef there = b.From(a, "/user/moody");
  Meet(a, b);
  const auto ask = [&](ActorRef to, auto question) {
    const Instant begin = sim_.toolbox().Now();
    const absl::Status status = a.system().AskAndWait<Note>(to, std::move(question), absl::Hours(1)).status();
    EXPECT_LT(sim_.toolbox().Now() - begin, absl::Seconds(1)) << status;
    return status;
  };
  const absl::Status thrown = ask(there, Question{0});
  EXPECT_TRUE(Has(thrown, "pekko://b/user/moody failed on fraktor::Question")) << thrown;
  EXPECT_TRUE(Has(thrown, "not in the mood")) << thrown;
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(thrown), ActorErrorKind::kThrown) << thrown;
  const absl::Status unhandled = ask(there, Note{});
  EXPECT_TRUE(absl::IsUnimplemented(unhandled)) << unhandled;
  EXPECT_TRUE(Has(unhandled, "pekko://b/user/moody does not handle fraktor::Note")) << unhandled;
  const absl::Status nobody = ask(b.From(a, "/user/nobody"), Question{1});
  EXPECT_TRUE(absl::IsDeadlineExceeded(nobody)) << nobody;
  EXPECT_TRUE(Has(nobody, "fraktor::Question gets no reply")) << nobody;
  EXPECT_TRUE(Has(nobody, "/user/nobody")) << nobody;
  const absl::Status answer = ask(there, Rare{1});
  EXPECT_TRUE(absl::IsInvalidArgument(answer)) << answer;
  EXPECT_TRUE(Has(answer, "the answer fraktor::Private of pekko://b/user/moody cannot leave pekko://b@b:2552"))
      << answer;
  // One that has ended.
  auto probe = a.kit->Probe();
  probe.Send(there, Identify{.id = 1});
  const ActorRef with_uid = probe.Expect<ActorIdentity>().ref;
  b.system().Stop(moody);
  Advance(absl::Seconds(1));
  const absl::Status ended = ask(with_uid, Question{1});
  EXPECT_TRUE(Has(ended, "pekko://b/user/moody has ended")) << ended;
}

TEST_F(RemotingTest, TellsWhoAskedWhatCannotBeRead) {
  const TestNode a = nodes_.Add("a", {}, {}, /*has_rare=*/true);
  const TestNode b = Add("b");
  a.kit->SpawnNamed<Moody>("moody");
  b.kit->SpawnNamed<Echo>("echo");
  const absl::Status question = a.system().AskAndWait<Note>(b.From(a, "/user/echo"), Rare{1}, absl::Hours(1)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(question)) << question;
  EXPECT_TRUE(Has(question, "test.rare gets no reply: pekko://b@b:2552 cannot read it: no codec")) << question;
  const absl::Status answer = b.system().AskAndWait<Note>(a.From(b, "/user/moody"), Refs{1}, absl::Hours(1)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(answer)) << answer;
  EXPECT_TRUE(Has(answer, "the answer test.rare from pekko://a@a:2552 cannot be read here: no codec")) << answer;
}

// Only questions fail: actors do not get what they have not asked for.
TEST_F(RemotingTest, TellsNoActorOfFailures) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Moody>("moody");
  auto probe = a.kit->Probe();
  probe.Send(b.From(a, "/user/moody"), Question{0});
  probe.Send(b.From(a, "/user/moody"), Note{});
  probe.Send(b.From(a, "/user/nobody"), Question{1});
  probe.ExpectNoMessage(absl::Seconds(5));
}

// A question that several get goes on if one of them fails.
TEST_F(RemotingTest, WaitsForOthersOfASelection) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<Moody>("moody");
  auto slow = b.kit->Probe("slow");
  const ActorPath anchor = ActorPathParser::Parse(b.Path("/user")).value();
  const ActorRef both = a.remoting->SelectionAt(anchor, "/user/mood?").value();
  // To one of them alone: it fails.
  EXPECT_TRUE(Has(a.system().AskAndWait<Note>(both, Question{0}, absl::Hours(1)).status(), "not in the mood"));
  b.kit->SpawnNamed<Relaying>("moodz", slow.ref());
  Future<Note> asked = a.system().Ask<Note>(both, Question{0}, absl::Seconds(30));
  slow.Expect<Question>();
  Advance(absl::Seconds(1));
  EXPECT_FALSE(asked.IsReady());
  slow.Reply(Note{.number = 7});
  Advance(absl::Seconds(1));
  ASSERT_TRUE(asked.IsReady());
  EXPECT_EQ(asked.Take().value().number, 7);
}

// What the runtime says to questions that are over is of no use to anybody.
TEST_F(RemotingTest, LogsNoDeadLettersOfErrorsThatComeTooLate) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  b.kit->SpawnNamed<TwiceWrong>("wrong");
  a.kit->ExpectEvents<SuppressedDeadLetter>(
      1,
      [&] {
        a.kit->ExpectEvents<DeadLetter>(0, [&] {
          const absl::Status wrong =
              a.system().AskAndWait<Note>(b.From(a, "/user/wrong"), Note{}, absl::Seconds(5)).status();
          EXPECT_TRUE(Has(wrong, "first")) << wrong;
          Advance(absl::Seconds(1));
        });
      },
      [](const SuppressedDeadLetter& letter) { return letter.reason == DeadLetterReason::kLateReply; });
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

// Fails with the error of the actor that it asks: in OnReply, or from a coroutine.
enum class AskHow { kOnReply, kAwait };
struct AskOther {
  ActorRef other;
  AskHow how;
};
class PassesErrorsOn : public Actor<PassesErrorsOn, AskOther> {
 public:
  Task<absl::Status> On(Context& context, const AskOther& ask) {
    if (ask.how == AskHow::kOnReply) {
      co_return context.AskOnReply<&PassesErrorsOn::OnAnswer>(ask.other, Question{0}, absl::Seconds(5));
    }
    auto asking = context.Ask<Note>(ask.other, Question{0}, absl::Seconds(5));
    co_return (co_await asking).status();
  }
  absl::Status OnAnswer(Context&, const absl::StatusOr<Note>& answer) { return answer.status(); }
};

// Has a child that passes errors on, and remembers how it failed.
class Supervises : public Actor<Supervises, AskOther> {
 public:
  explicit Supervises(std::vector<FailureCause>* causes) : causes_(*causes) {}
  void PreStart(Context& context) { child_ = context.Spawn<PassesErrorsOn>(); }
  void On(Context& context, const AskOther& ask) { context.Tell(child_, AskOther(ask)); }
  SupervisionDirective OnChildFailure(const Failure& failure) {
    causes_.push_back(failure.cause);
    return SupervisorStrategy::DecideByDefault(failure);
  }

 private:
  std::vector<FailureCause>& causes_;
  RefOf<PassesErrorsOn> child_;
};

// A24: a reply carries an error with its kind, but no cause of a failure. An actor that fails with
// the error of a reply has returned an error. No reply of a peer gives its failure another cause.
TEST_F(RemotingTest, NoErrorOfAPeerStopsAnActorOrEndsTheSystem) {
  const TestNode a = Add("a");
  const TestNode b = Add("b");
  auto liar = b.kit->Probe("liar");
  auto asker = a.kit->Spawn<PassesErrorsOn>();
  std::vector<FailureCause> causes;
  auto boss = a.kit->Spawn<Supervises>(&causes);
  const auto last = static_cast<uint8_t>(ErrorKindTraits<ActorErrorKind>::kLast);
  for (const AskHow how : {AskHow::kOnReply, AskHow::kAwait}) {
    for (uint8_t kind = 0; kind <= last; ++kind) {
      const absl::Status lie =
          MakeError(absl::StatusCode::kInternal, static_cast<ActorErrorKind>(kind), "a lie", {{"cause", "thrown"}});
      asker.Tell(AskOther{b.From(a, "/system/liar"), how});
      boss.Tell(AskOther{b.From(a, "/system/liar"), how});
      for (int i = 0; i < 2; ++i) {
        liar.Expect<Question>();
        liar.Reply(ErrorReply{lie});
      }
      Advance(absl::Seconds(1));
      EXPECT_FALSE(a.system().IsTerminated()) << int{kind};
      ASSERT_TRUE(a.kit->IsAlive(asker.untyped())) << int{kind};
      ASSERT_TRUE(a.kit->IsAlive(boss.untyped())) << int{kind};
    }
  }
  EXPECT_EQ(causes, std::vector<FailureCause>(2 * (last + 1u), FailureCause::kReturned));
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
  ASSERT_TRUE(b.system().TrySpawn(PropsOf<Agreeable>(), "agreeable").ok());
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
  const absl::Status status = a.system().AskAndWait<Note>(there, Private{4}, absl::Hours(1)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(ErrorKindOf<SerializationErrorKind>(status), SerializationErrorKind::kNotRegistered) << status;
  EXPECT_TRUE(Has(status,
                  "fraktor::Private, which was for pekko://b@b:2552/system/pb, gets no reply: no codec is "
                  "registered"))
      << status;
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
  const Note large{.number = 4, .text = std::string(300'000, 'x')};
  const absl::Status status = a.system().AskAndWait<Note>(b.From(a, "/system/pb"), large, absl::Hours(1)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Has(status, "RemoteOptions.large_destinations")) << status;
  EXPECT_TRUE(Has(status, "max_frame_bytes (WireLimits)")) << status;
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
