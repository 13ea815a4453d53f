#include "fraktor/actor/typed/typed_actor.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/typed/function_actor.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

using Lines = std::vector<std::string>;

// A system on virtual time.
class TypedActorTest : public testing::Test {
 protected:
  static ActorSystemOptions OptionsFor(LocalToolbox& toolbox) {
    ActorSystemOptions options;
    options.toolbox = &toolbox;
    options.log_level = LogLevel::kOff;
    return options;
  }

  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  template <class Ref, class Q>
  auto Ask(Ref ref, Q question) {
    return system_->AskAndWait(ref, std::move(question), absl::Seconds(10));
  }

  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<ActorSystem> system_ = ActorSystem::Create(OptionsFor(*toolbox_)).value();
};

struct Greeted {
  std::string text;
};
struct Greet {
  using Reply = Greeted;
  std::string name;
};

class Greeter : public Actor<Greeter, Greet> {
 public:
  Greeted On(Context&, const Greet& greet) { return {"Hello, " + greet.name}; }
};

TEST(TypedActor, AnswersAQuestionFromAnotherThread) {
  ActorSystem system("hello");
  auto greeter = system.Spawn<Greeter>("greeter");
  const absl::StatusOr<Greeted> reply = system.AskAndWait(greeter, Greet{"world"}, absl::Seconds(60));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->text, "Hello, world");
  EXPECT_EQ(system.PathOf(greeter.untyped()), "pekko://hello/user/greeter");
}

// The results of handlers.

struct Number {
  int value;
};
struct Twice {
  using Reply = Number;
  int value;
};
struct Root {
  using Reply = Number;
  int value;
};
struct Note {
  std::string text;
};
struct Check {
  int value;
};
struct Notes {
  using Reply = Note;
};

class Returner : public Actor<Returner, Twice, Root, Note, Check, Notes> {
 public:
  Number On(Context&, Twice twice) { return {2 * twice.value}; }
  absl::StatusOr<Number> On(Context&, const Root& root) {
    for (int i = 0; i * i <= root.value; ++i) {
      if (i * i == root.value) return Number{i};
    }
    return absl::InvalidArgumentError("no square");
  }
  void On(Context&, Note&& note) { notes_ += std::move(note.text); }
  absl::Status On(Context&, const Check& check) {
    return check.value > 0 ? absl::OkStatus() : absl::InvalidArgumentError("not positive");
  }
  Task<Note> On(Context&, Notes) { co_return Note{notes_}; }

 private:
  std::string notes_;
};

TEST_F(TypedActorTest, TakesWhatAHandlerReturnsForTheAnswer) {
  auto actor = system_->Spawn<Returner>();
  EXPECT_EQ(Ask(actor, Twice{21})->value, 42);
  EXPECT_EQ(Ask(actor, Root{49})->value, 7);
  EXPECT_EQ(Ask(actor, Root{50}).status(), absl::InvalidArgumentError("no square"));
  actor.Tell(Note{"a"});
  actor.Tell(Check{1});
  actor.Tell(Note{"b"});
  EXPECT_EQ(Ask(actor, Notes{})->text, "ab");
  EXPECT_EQ(system_->PathOf(actor.untyped()), "pekko://default/user/$b");
}

TEST_F(TypedActorTest, TakesAReturnedStatusForAFailure) {
  auto actor = system_->Spawn<Returner>();
  actor.Tell(Note{"a"});
  actor.Tell(Check{0});  // A new instance takes its place.
  actor.Tell(Note{"b"});
  EXPECT_EQ(Ask(actor, Notes{})->text, "b");
}

// A60: a message that an actor tells to no sender is a dead letter; the result of a handler is for
// the asker.
TEST_F(TypedActorTest, DropsAnAnswerThatNobodyHasAskedFor) {
  std::vector<const void*> lost;
  const EventSubscription listening = system_->events().Listen<AllDeadLetters>(
      [&](const AllDeadLetters& letter) { lost.push_back(letter.message.type); });
  auto actor = system_->Spawn<Returner>();
  actor.Tell(Twice{21});
  actor.Tell(Root{49});
  actor.Tell(Notes{});
  Settle();
  EXPECT_TRUE(lost.empty());
  actor.Tell(Root{50});
  Settle();
  EXPECT_EQ(lost, std::vector<const void*>{MessageTypeOf<ErrorReply>()}) << "an error that nobody hears of is shown";
  EXPECT_EQ(Ask(actor, Twice{1})->value, 2);
}

struct Teller : Actor<Teller, Check, Number, Notes> {
  explicit Teller(RefOf<Returner> its_returner) : returner(its_returner) {}
  void On(Context&, const Check& check) { returner.Tell(Twice{check.value}); }
  void On(Context&, const Number& number) { heard += std::to_string(number.value); }
  Note On(Context&, const Notes&) { return {heard}; }
  RefOf<Returner> returner;
  std::string heard;
};

TEST_F(TypedActorTest, AnswersAnActorThatTells) {
  auto teller = system_->Spawn<Teller>("teller", system_->Spawn<Returner>());
  teller.Tell(Check{4});
  Settle();
  EXPECT_EQ(Ask(teller, Notes{})->text, "8");
}

TEST_F(TypedActorTest, SaysWhichAnswerCameInsteadOfTheOneThatWasAskedFor) {
  auto actor = system_->Spawn<Returner>();
  const absl::Status wrong = system_->AskAndWait<Note>(actor, Twice{1}, absl::Seconds(1)).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(wrong.message().find("Number"), absl::string_view::npos) << wrong;
}

// References

TEST_F(TypedActorTest, NarrowsReferencesAndComparesThem) {
  auto actor = system_->Spawn<Returner>("returner");
  const TypedRef<Note, Notes> notes = actor;
  const TypedRef<Notes, Note> same = notes;
  const TypedRef<Note> narrow = notes;
  EXPECT_EQ(notes, (TypedRef<Note, Notes>(same)));
  EXPECT_EQ(narrow.untyped(), actor.untyped());
  narrow.Tell(Note{"x"});
  EXPECT_EQ(Ask(notes, Notes{})->text, "x");
  EXPECT_TRUE(TypedRef<Note>().IsNoOne());
  narrow.Tell(PoisonPill{});
  Settle();
  EXPECT_FALSE(system_->Resolve("/user/returner").ok());
}

// Coroutines

struct Reserved {
  int id;
};
struct Reserve {
  using Reply = Reserved;
  std::string item;
};
struct Receipt {
  int id;
  std::string item;
};
struct Order {
  using Reply = Receipt;
  std::string item;
};

class Stock : public Actor<Stock, Reserve> {
 public:
  Task<Reserved> On(Context& context, Reserve reserve) {
    auto delay = context.Delay(absl::Milliseconds(100));
    absl::Status waited = co_await delay;
    if (!waited.ok()) co_return waited;
    if (reserve.item.empty()) co_return absl::NotFoundError("nothing");
    if (reserve.item == "bomb") throw std::runtime_error("boom");
    co_return Reserved{static_cast<int>(reserve.item.size())};
  }
};

class Desk : public Actor<Desk, Order, Note, Notes> {
 public:
  void PreStart(Context& context) { stock_ = context.Spawn<Stock>("stock"); }
  // By reference: the message lives while the handler waits.
  Task<Receipt> On(Context& context, const Order& order) {
    const ActorRef sender = context.sender();
    auto asking = context.Ask(stock_, Reserve{order.item}, absl::Seconds(1));
    absl::StatusOr<Reserved> reserved = co_await asking;
    if (context.sender() != sender) co_return absl::InternalError("another sender");
    if (!reserved.ok()) co_return reserved.status();
    log_ += order.item;
    co_return Receipt{reserved->id, order.item};
  }
  void On(Context&, const Note& note) { log_ += note.text; }
  Note On(Context&, const Notes&) { return {log_}; }

 private:
  RefOf<Stock> stock_;
  std::string log_;
};

TEST_F(TypedActorTest, WaitsInAHandlerAndTakesNoOtherMessageMeanwhile) {
  auto desk = system_->Spawn<Desk>("desk");
  auto ordering = system_->Ask(desk, Order{"milk"}, absl::Seconds(10));
  Settle();
  desk.Tell(Note{"!"});
  Settle();
  EXPECT_FALSE(ordering.IsReady());
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(100)).ok());
  ASSERT_TRUE(ordering.IsReady());
  EXPECT_EQ(ordering.Take()->item, "milk");
  EXPECT_EQ(Ask(desk, Notes{})->text, "milk!");
}

TEST_F(TypedActorTest, AnswersWithTheErrorThatACoroutineReturns) {
  auto desk = system_->Spawn<Desk>("desk");
  EXPECT_EQ(Ask(desk, Order{""}).status(), absl::NotFoundError("nothing"));
  EXPECT_EQ(Ask(desk, Order{"egg"})->id, 3);
}

TEST_F(TypedActorTest, GivesWhatACoroutineThrowsToTheSupervisor) {
  auto desk = system_->Spawn<Desk>("desk");
  // The stock restarts, and the asker receives the reason.
  const absl::Status failed = Ask(desk, Order{"bomb"}).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(failed), ActorErrorKind::kThrown) << failed;
  EXPECT_EQ(Ask(desk, Order{"egg"})->id, 3);
}

TEST_F(TypedActorTest, EndsAHandlerThatWaitsWithItsActor) {
  auto desk = system_->Spawn<Desk>("desk");
  auto ordering = system_->Ask(desk, Order{"milk"}, absl::Seconds(10));
  Settle();
  system_->Stop(desk);
  Settle();
  EXPECT_FALSE(system_->Resolve("/user/desk").ok());
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(20)).ok());
  EXPECT_EQ(ordering.Take().status().code(), absl::StatusCode::kDeadlineExceeded);
}

// Asks without a waiting handler: the replies come to a function.
struct Ask1 {
  std::string item;
  absl::Duration timeout = absl::Seconds(1);
};
class Clerk : public Actor<Clerk, Ask1, Note, Notes> {
 public:
  explicit Clerk(RefOf<Stock> stock, Lines* all) : stock_(stock), all_(*all) {}

  absl::Status On(Context& context, const Ask1& ask) {
    return context.AskOnReply<&Clerk::OnReserved>(stock_, Reserve{ask.item}, ask.timeout);
  }
  void On(Context&, const Note& note) { log_ += note.text; }
  Note On(Context&, const Notes&) { return {log_}; }
  absl::Status OnReserved(Context& context, absl::StatusOr<Reserved> reserved) {
    if (context.Path() != "pekko://default/user/clerk") return absl::InternalError("the context of another");
    log_ +=
        reserved.ok() ? std::to_string(reserved->id) : std::string(absl::StatusCodeToString(reserved.status().code()));
    all_.push_back(log_);
    if (reserved.ok() && reserved->id == 4) throw std::runtime_error("four");
    return reserved.ok() && reserved->id == 5 ? absl::OutOfRangeError("five") : absl::OkStatus();
  }

 private:
  const RefOf<Stock> stock_;
  Lines& all_;
  std::string log_;
};

TEST_F(TypedActorTest, TakesAnswersByAFunctionAndOtherMessagesMeanwhile) {
  Lines all;
  auto stock = system_->Spawn<Stock>("stock");
  auto clerk = system_->Spawn<Clerk>("clerk", stock, &all);
  clerk.Tell(Ask1{"milk."});  // Five letters: the failure comes after the reply.
  clerk.Tell(Ask1{"egg"});
  clerk.Tell(Note{"!"});
  EXPECT_EQ(Ask(clerk, Notes{})->text, "!") << "before the answers";
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(100)).ok());
  EXPECT_EQ(all, Lines({"!5"}));
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(100)).ok());
  EXPECT_EQ(all, Lines({"!5", "3"}))
      << "what a function returns is a failure, and the new object gets what still comes";
  clerk.Tell(Ask1{""});
  clerk.Tell(Ask1{"bomb"});
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(200)).ok());
  EXPECT_EQ(all, Lines({"!5", "3", "3NOT_FOUND", "3NOT_FOUNDINTERNAL"}));
  clerk.Tell(Ask1{"milk"});
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(100)).ok());
  EXPECT_EQ(Ask(clerk, Notes{})->text, "") << "so is what it throws";
}

TEST_F(TypedActorTest, GivesAFunctionForAnswersTheErrorInTime) {
  Lines all;
  auto stock = system_->Spawn<Stock>("stock");
  auto clerk = system_->Spawn<Clerk>("clerk", stock, &all);
  clerk.Tell(Ask1{"egg", absl::Milliseconds(50)});
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(50)).ok());
  EXPECT_EQ(all, Lines({"DEADLINE_EXCEEDED"}));
  clerk.Tell(Note{"-"});
  clerk.Tell(Ask1{"egg", absl::ZeroDuration()});
  Settle();
  EXPECT_EQ(all.size(), 1u) << "a question that was not asked has no answer";
  EXPECT_EQ(Ask(clerk, Notes{})->text, "") << "but its error, which the handler has returned";
  clerk.Tell(Ask1{"egg"});
  Settle();
  system_->Stop(clerk);
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok());
  EXPECT_EQ(all.size(), 1u) << "nothing comes to one that has ended";
}

// A class that is spawned as the base of another.
class Derived : public Clerk {
 public:
  using Clerk::Clerk;
};

TEST_F(TypedActorTest, RefusesAFunctionForAnswersOfAnotherClass) {
  Lines all;
  std::vector<std::string> failures;
  auto derived = system_->Spawn<Derived>("clerk", system_->Spawn<Stock>("stock"), &all);
  derived.Tell(Note{"a"});
  derived.Tell(Ask1{"egg"});
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok());
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(Ask(derived, Notes{})->text, "") << "it has failed";
}

class Interleaving : public Actor<Interleaving, Order, Note, Notes> {
 public:
  InterleavingTask<Receipt> On(Context& context, Order order) {
    auto delay = context.Delay(absl::Seconds(1));
    absl::Status waited = co_await delay;
    if (!waited.ok()) co_return waited;
    log_ += order.item;
    co_return Receipt{0, order.item};
  }
  void On(Context&, const Note& note) { log_ += note.text; }
  Note On(Context&, const Notes&) { return {log_}; }

 private:
  std::string log_;
};

TEST_F(TypedActorTest, LetsOtherMessagesInWhileAnInterleavingHandlerWaits) {
  auto actor = system_->Spawn<Interleaving>();
  auto first = system_->Ask(actor, Order{"a"}, absl::Seconds(10));
  auto second = system_->Ask(actor, Order{"b"}, absl::Seconds(10));
  actor.Tell(Note{"!"});
  Settle();
  EXPECT_EQ(Ask(actor, Notes{})->text, "!");
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok());
  EXPECT_EQ(Ask(actor, Notes{})->text, "!ab");
  EXPECT_TRUE(first.IsReady() && second.IsReady());
}

// Hooks

struct Fail {};

struct HookLog {
  Lines lines;
};

class Hooked : public Actor<Hooked, Fail, Note> {
 public:
  explicit Hooked(HookLog* log) : log_(*log) {}

  absl::Status PreStart(Context&) { return Add("PreStart"); }
  void PostStop(Context&) { Add("PostStop").IgnoreError(); }
  void PreRestart(Context& context, const absl::Status& reason, Envelope* message) {
    Add("PreRestart: " + std::string(reason.message()) + " " + std::string(message->type()->name())).IgnoreError();
    context.Reply(Note{"sorry"});
  }
  absl::Status PostRestart(Context&, const absl::Status&) { return Add("PostRestart"); }
  absl::Status On(Context&, const Fail&) { return absl::InternalError("broken"); }
  void On(Context&, const Note& note) { Add(note.text).IgnoreError(); }

 private:
  absl::Status Add(std::string line) {
    log_.lines.push_back(std::move(line));
    return absl::OkStatus();
  }

  HookLog& log_;
};

// A1, A38
TEST_F(TypedActorTest, CallsTheHooksOfALifeInOrder) {
  HookLog log;
  auto actor = system_->Spawn<Hooked>("hooked", &log);
  const absl::StatusOr<Note> sorry = system_->AskAndWait<Note>(actor, Fail{}, absl::Seconds(1));
  ASSERT_TRUE(sorry.ok()) << sorry.status();
  actor.Tell(Note{"on"});
  actor.Tell(PoisonPill{});
  Settle();
  EXPECT_EQ(log.lines, (Lines{"PreStart", "PreRestart: broken fraktor::(anonymous namespace)::Fail", "PostRestart",
                              "on", "PostStop"}));
}

class Parent : public Actor<Parent, Fail, Note> {
 public:
  explicit Parent(HookLog* log) : log_(*log) {}

  void PreStart(Context& context) {
    child_ = context.Spawn<Hooked>("child", &log_);
    context.Watch(child_).IgnoreError();
  }
  SupervisionDirective OnChildFailure(const Failure& failure) {
    log_.lines.push_back("failed: " + std::string(failure.error.message()));
    return fraktor::Stop();
  }
  void On(Context& context, const Fail&) { context.Tell(child_, Fail{}); }
  void On(Context& context, const Note& note) { context.Forward(child_, note); }
  void On(Context& context, const Terminated& terminated) {
    log_.lines.push_back(terminated.actor == child_.untyped() ? "terminated" : "somebody else");
    EXPECT_TRUE(context.Child("child").IsNoOne());
  }

 private:
  HookLog& log_;
  RefOf<Hooked> child_;
};

TEST_F(TypedActorTest, DecidesOnItsChildrenAndHearsOfTheirEnd) {
  HookLog log;
  auto parent = system_->Spawn<Parent>("parent", &log);
  parent.Tell(Note{"hello"});
  parent.Tell(Fail{});
  Settle();
  EXPECT_EQ(log.lines, (Lines{"PreStart", "hello", "failed: broken", "PostStop", "terminated"}));
}

// Options

TEST_F(TypedActorTest, SpawnsWithOptions) {
  HookLog log;
  auto narrow = system_->Spawn<Hooked>("narrow", {.mailbox = {.capacity = 1}}, &log);
  EXPECT_TRUE(narrow.TryTell(Note{"a"}).ok());
  EXPECT_EQ(narrow.TryTell(Note{"b"}).code(), absl::StatusCode::kResourceExhausted);
  Settle();
  EXPECT_EQ(log.lines, (Lines{"PreStart", "a"}));
  EXPECT_EQ(system_->PathOf(narrow.untyped()), "pekko://default/user/narrow");
  // Also with a name, and without arguments.
  SpawnOptions options{.mailbox = {.capacity = 1}};
  auto second = system_->Spawn<Hooked>("second", options, &log);
  EXPECT_TRUE(second.TryTell(Note{"a"}).ok());
  EXPECT_FALSE(second.TryTell(Note{"b"}).ok());
  auto third =
      system_->TrySpawn<Greeter>("third", {.dispatcher = DispatcherChoice::kSystem, .mailbox = {.capacity = 1}});
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_TRUE(third->TryTell(Greet{"a"}).ok());
  EXPECT_FALSE(third->TryTell(Greet{"b"}).ok());
  const absl::Status bad =
      system_->TrySpawn<Greeter>("bad", {.mailbox = {.capacity = 1, .reserve_for_system = 2}}).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument) << bad;
  system_.reset();  // Before the log, into which its actors write.
}

TEST_F(TypedActorTest, SpawnsAChildWithOptions) {
  class Boss : public Actor<Boss, Note> {
   public:
    explicit Boss(HookLog* log) : log_(*log) {}
    void On(Context& context, const Note& note) {
      auto child = context.Spawn<Hooked>("child", {.mailbox = {.capacity = 1}}, &log_);
      log_.lines.push_back(child.TryTell(note).ok() ? "taken" : "full");
      log_.lines.push_back(child.TryTell(note).ok() ? "taken" : "full");
      log_.lines.push_back(context.TrySpawn<Hooked>("child", {}, &log_).ok() ? "two" : "one");
    }

   private:
    HookLog& log_;
  };
  HookLog log;
  system_->Spawn<Boss>("boss", &log).Tell(Note{"a"});
  Settle();
  EXPECT_EQ(log.lines, (Lines{"taken", "full", "one", "PreStart", "a"}));
  system_.reset();  // Before the log, into which its actors write.
}

// The class has no strategy: the one of SpawnOptions counts.
class Warden : public Actor<Warden, Fail, Check, Note> {
 public:
  explicit Warden(HookLog* log) : log_(*log) {}
  void PreStart(Context& context) { child_ = context.Spawn<Hooked>("child", &log_); }
  static const SupervisorStrategy& Supervision() { return SupervisorStrategy::Default(); }
  void On(Context& context, const Fail&) { context.Tell(child_, Fail{}); }
  void On(Context& context, const Check&) { context.Tell(child_, Note{"on"}); }
  void On(Context&, const Note&) {}

 private:
  HookLog& log_;
  RefOf<Hooked> child_;
};

TEST_F(TypedActorTest, SupervisesAsItWasSpawnedTo) {
  const auto life_of = [&](auto warden, HookLog& log) {
    warden.Tell(Fail{});
    warden.Tell(Check{1});
    Settle();
    return log.lines;
  };
  HookLog usual;
  EXPECT_EQ(life_of(system_->Spawn<Warden>("usual", &usual), usual),
            (Lines{"PreStart", "PreRestart: broken fraktor::(anonymous namespace)::Fail", "PostRestart", "on"}));
  HookLog strict;
  EXPECT_EQ(life_of(system_->Spawn<Warden>("strict", {.supervision = SupervisorStrategy::Stopping()}, &strict), strict),
            (Lines{"PreStart", "PostStop"}));
  system_.reset();  // Before the log, into which its actors write.
}

// Behaviours

struct Press {
  using Reply = Note;
};
struct Look {
  using Reply = Note;
};

class Lamp : public Actor<Lamp, Press, Look> {
 public:
  struct Shining {
    Note On(Context& context, const Press&) {
      context.Unbecome();
      return {"off"};
    }
    Note On(Context&, const Look&) { return {"shining, pressed " + std::to_string(lamp.pressed_) + " times"}; }
    Lamp& lamp;
  };

  absl::StatusOr<Note> On(Context& context, const Press&) {
    ++pressed_;
    if (absl::Status stacked = context.BecomeStacked<Shining>(*this); !stacked.ok()) return stacked;
    return Note{"on"};
  }
  Note On(Context&, const Look&) { return {"dark"}; }

 private:
  int pressed_ = 0;
};

// A74
TEST_F(TypedActorTest, BecomesAnotherAndGoesBack) {
  auto lamp = system_->Spawn<Lamp>("lamp");
  EXPECT_EQ(Ask(lamp, Look{})->text, "dark");
  EXPECT_EQ(Ask(lamp, Press{})->text, "on");
  EXPECT_EQ(Ask(lamp, Look{})->text, "shining, pressed 1 times");
  EXPECT_EQ(Ask(lamp, Press{})->text, "off");
  EXPECT_EQ(Ask(lamp, Look{})->text, "dark");
}

// Functions

Number Square(ActorContext&, const Twice& twice) { return {twice.value * twice.value}; }
Task<Number> SlowSquare(ActorContext& context, Twice twice) {
  auto delay = context.Delay(absl::Seconds(1));
  absl::Status waited = co_await delay;
  if (!waited.ok()) co_return waited;
  co_return Number{twice.value * twice.value};
}

TEST_F(TypedActorTest, LetsAFunctionBeAnActor) {
  EXPECT_EQ(Ask(system_->Spawn<FunctionActor<&Square>>("square"), Twice{4})->value, 16);
  EXPECT_EQ(Ask(system_->Spawn<FunctionActor<&SlowSquare>>("slow"), Twice{5})->value, 25);
}

// Mistakes of the program

// An error names its subject, the value, and what to do.
bool Says(const absl::Status& status, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (status.message().find(text) == absl::string_view::npos) return false;
  }
  return true;
}

TEST_F(TypedActorTest, RefusesNamesThatAreBadOrTaken) {
  ASSERT_TRUE(system_->TrySpawn<Greeter>("greeter").ok());
  const absl::Status taken = system_->TrySpawn<Greeter>("greeter").status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(taken), ActorErrorKind::kNameTaken);
  EXPECT_TRUE(Says(taken, {"pekko://default/user", "\"greeter\" is taken", "stop that one first"})) << taken;
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(system_->TrySpawn<Greeter>("$x").status()), ActorErrorKind::kInvalidName);
  const absl::Status bad = system_->TrySpawn<Greeter>("a b").status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(bad), ActorErrorKind::kInvalidName);
  EXPECT_TRUE(Says(bad, {"pekko://default/user", "\"a b\" is no name", "' ' at 1 is not allowed; use "})) << bad;
  EXPECT_THROW(system_->Spawn<Greeter>("greeter"), SpawnError);
}

TEST_F(TypedActorTest, SaysWhoHasNotAnsweredAndWhatMayBeWrong) {
  class Mute : public Actor<Mute, Greet> {
   public:
    Deferred<Greeted> On(Context& context, const Greet&) { return ReplyTo<Greeted>(context); }
  };
  const absl::Status late = Ask(system_->Spawn<Mute>("mute"), Greet{"you"}).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(Says(late, {"pekko://default/user/mute has not replied to", "Greet", "within 10s", "forgotten to reply"}))
      << late;
  const absl::Status bad = system_->AskAndWait(system_->Spawn<Greeter>(), Greet{"you"}, absl::ZeroDuration()).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Says(bad, {"Greet", "timeout 0", "must be positive"})) << bad;
}

TEST_F(TypedActorTest, SaysWhatIsWrongWithAPath) {
  const absl::Status nobody = system_->Resolve("/user/nobody").status();
  EXPECT_TRUE(Says(nobody, {"pekko://default/user/nobody", "check its name"})) << nobody;
  const absl::Status other = system_->Resolve("pekko://shop/user/cart").status();
  EXPECT_TRUE(Says(other, {"pekko://shop/user/cart", "this system is \"default\""})) << other;
  const absl::Status bad = system_->Resolve("/user/a b").status();
  EXPECT_TRUE(Says(bad, {"/user/a b", "' ' at ", "not allowed"})) << bad;
}

struct Save {
  using Reply = Done;
  std::string text;
};

class File : public Actor<File, Save, Notes> {
 public:
  absl::StatusOr<Done> On(Context&, const Save& save) {
    if (save.text.empty()) return absl::InvalidArgumentError("there is nothing to save");
    text_ = save.text;
    return Done{};
  }
  Task<Note> On(Context&, Notes) { co_return Note{text_}; }

 private:
  std::string text_;
};

TEST_F(TypedActorTest, AnswersWithDoneOrAnErrorIfThereIsNothingElseToSay) {
  auto file = system_->Spawn<File>("file");
  EXPECT_EQ(Ask(file, Save{"a"}), absl::StatusOr<Done>(Done{}));
  EXPECT_EQ(Ask(file, Save{""}).status(), absl::InvalidArgumentError("there is nothing to save"));
  EXPECT_EQ(Ask(file, Notes{})->text, "a") << "an error as the answer is no failure of the actor";
  system_->Stop(file);
  Settle();
  EXPECT_EQ(Ask(file, Save{"b"}).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(TypedActorTest, RefusesToWaitInAWorker) {
  class Waiter : public Actor<Waiter, Press> {
   public:
    absl::StatusOr<Note> On(Context& context, const Press&) {
      const absl::StatusOr<Greeted> reply =
          context.system().AskAndWait<Greeted>(context.self(), Press{}, absl::Seconds(1));
      return reply.ok() ? absl::StatusOr<Note>(Note{reply->text}) : absl::StatusOr<Note>(reply.status());
    }
  };
  const absl::Status refused = Ask(system_->Spawn<Waiter>("waiter"), Press{}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(refused, {"AskAndWait in pekko://default/user/waiter", "use context.Ask and co_await"})) << refused;
}

}  // namespace
}  // namespace fraktor
