#include "fraktor/actor/selection/selection.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/internal/actor_path_comparator.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {

using path_internal::ActorPathComparator;

namespace {

struct Ping {
  std::string text;
};
struct Unique {
  std::unique_ptr<int> value;
};
struct Do {
  std::function<void(ActorContext&)> what;
};

// Records the events of the actors of a test, on one thread.
struct Notes {
  std::vector<std::string> pings;
  std::vector<ActorIdentity> identities;
};

class Node final : public ActorInstance {
 public:
  explicit Node(Notes* notes) : notes_(*notes) {}

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* ping = message.TryAs<Ping>()) {
      notes_.pings.push_back(context.Path() + " " + ping->text);
    } else if (const auto* identity = message.TryAs<ActorIdentity>()) {
      notes_.identities.push_back(*identity);
    } else if (const auto* action = message.TryAs<Do>()) {
      action->what(context);
    }
    return absl::OkStatus();
  }

 private:
  Notes& notes_;
};

// Below /user: c1; c2 with c21 and c22; c21 has a child d; a has b1, which has no children.
class SelectionTest : public testing::Test {
 protected:
  SelectionTest() {
    ActorSystemOptions options;
    options.config.system_name = "S";
    options.toolbox = toolbox_.get();
    options.log_level = LogLevel::kOff;
    system_ = ActorSystem::Create(options).value();
    c1_ = Spawn("c1");
    c2_ = Spawn("c2");
    c21_ = SpawnBelow(c2_, "c21");
    c22_ = SpawnBelow(c2_, "c22");
    SpawnBelow(c21_, "d");
    SpawnBelow(Spawn("a"), "b1");
    probe_ = system_->SpawnSystemActor(*MakeProps<Node>({}, &notes_), "probe");
  }

  ActorRef Spawn(std::string_view name) { return system_->TrySpawn(*MakeProps<Node>({}, &notes_), name).value(); }
  ActorRef SpawnBelow(ActorRef parent, std::string_view name) {
    ActorRef child;
    In(parent, [&](ActorContext& context) { child = context.TrySpawn(*MakeProps<Node>({}, &notes_), name).value(); });
    return child;
  }
  // Runs a function in an actor's turn, and everything that follows from it.
  void In(ActorRef actor, std::function<void(ActorContext&)> what) {
    Tell(actor, Do{std::move(what)});
    Settle();
  }
  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }

  // Returns the actors that reply to an Identify by a selection from outside, or no one for a reply
  // without an actor.
  std::vector<ActorRef> Identified(std::string_view text) { return IdentifiedBy(Select(*system_, text)); }
  std::vector<ActorRef> IdentifiedBy(const Selection& selection) {
    notes_.identities.clear();
    selection.TellAs(probe_, Identify{.id = 7});
    Settle();
    std::vector<ActorRef> refs;
    for (const ActorIdentity& identity : notes_.identities) {
      EXPECT_EQ(identity.id, 7u);
      refs.push_back(identity.ref);
    }
    return refs;
  }
  std::vector<ActorRef> IdentifiedFrom(ActorRef actor, std::string_view text) {
    notes_.identities.clear();
    In(actor, [&](ActorContext& context) { Select(context, text).TellAs(probe_, Identify{.id = 7}); });
    std::vector<ActorRef> refs;
    for (const ActorIdentity& identity : notes_.identities) refs.push_back(identity.ref);
    return refs;
  }

  static bool AreSame(std::vector<ActorRef> a, std::vector<ActorRef> b) {
    return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
  }

  const std::vector<ActorRef> nobody_ = {ActorRef()};
  Notes notes_;
  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<ActorSystem> system_;
  ActorRef c1_;
  ActorRef c2_;
  ActorRef c21_;
  ActorRef c22_;
  ActorRef probe_;
};

// Vector 100. `..` above the guardian is an error here.
TEST_F(SelectionTest, NothingAndASlashAreTheRoot) {
  EXPECT_EQ(Identified(""), std::vector<ActorRef>{system_->root_guardian()});
  EXPECT_EQ(Identified("/"), std::vector<ActorRef>{system_->root_guardian()});
  EXPECT_EQ(Identified(".."), nobody_);
  EXPECT_EQ(Identified("/user/../.."), nobody_);
  EXPECT_EQ(IdentifiedFrom(c1_, "../../c2"), nobody_);
}

// Behaviour 16; vector 100: nothing is above the guardian, not even the root.
TEST_F(SelectionTest, OddSelectionsAreAnsweredOnceToo) {
  const std::vector<ActorRef> user = {system_->user_guardian()};
  EXPECT_EQ(Identified("/user/c2/.."), user);
  EXPECT_EQ(Identified("/user/c2/c21/../../"), user);
  EXPECT_EQ(Identified("/user//c1///"), std::vector<ActorRef>{c1_});
  EXPECT_EQ(Identified("/user/c2/../c2/../c1"), std::vector<ActorRef>{c1_});
  EXPECT_EQ(Identified("/user/missing/../c1"), std::vector<ActorRef>{c1_}) << "names are not looked at on the way";
  EXPECT_EQ(Identified("/user/missing*/../c1"), nobody_) << "but who matches a pattern is";
  EXPECT_EQ(Identified("/user/**"), Identified("/user/*"));
  EXPECT_EQ(IdentifiedFrom(c21_, ".."), std::vector<ActorRef>{c2_});
  EXPECT_EQ(IdentifiedFrom(c21_, ""), std::vector<ActorRef>{c21_});
  for (const std::string_view text : {"/user/..", "/user/../system", "/user/../user/c1", "/..", "/../user", "/*/..",
                                      "/*/../user", "/user/c2/../..", "/user/*/../..", "pekko://S/user/.."}) {
    EXPECT_EQ(Identified(text), nobody_) << text;
    const uint64_t before = system_->dead_letters().total();
    Select(*system_, text).Tell(Ping{"hello"});
    Settle();
    EXPECT_EQ(system_->dead_letters().total(), before + 1) << text;
    Future<ActorRef> finding = Select(*system_, text).ResolveOne(absl::Seconds(1));
    ASSERT_TRUE(finding.IsReady()) << text;
    const absl::Status escaped = finding.Take().status();
    EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(escaped), ActorPathErrorKind::kRelativeEscape) << text << ": " << escaped;
  }
  EXPECT_TRUE(notes_.pings.empty());
}

// Vector 101
TEST_F(SelectionTest, TheUserGuardianIsFoundHoweverItIsWritten) {
  for (const std::string_view text : {"user", "user/", "/user", "/user/", "//user", "pekko://S/user"}) {
    EXPECT_EQ(Identified(text), std::vector<ActorRef>{system_->user_guardian()}) << text;
  }
  EXPECT_EQ(Identified("/system"), std::vector<ActorRef>{system_->system_guardian()});
}

// Vectors 102, 103
TEST_F(SelectionTest, NobodyAnswersForDeadLettersOtherSystemsAndNonsense) {
  for (const std::string_view text : {"/deadLetters", "deadLetters/", "pekko://all-systems/user", "foo://user",
                                      "pekko://S@host:1/user", "/nowhere/a", "/user/[a]", "/user/a b", "%zz"}) {
    EXPECT_EQ(Identified(text), nobody_) << text;
  }
}

TEST_F(SelectionTest, ActorsAreFoundByNameUidAndAutomaticName) {
  EXPECT_EQ(Identified("/user/c2/c21"), std::vector<ActorRef>{c21_});
  EXPECT_EQ(Identified("user/c2/../c1"), std::vector<ActorRef>{c1_});
  const std::string canonical = system_->CanonicalPathOf(c21_);
  EXPECT_EQ(Identified(canonical), std::vector<ActorRef>{c21_});
  EXPECT_EQ(Identified(canonical + "/d").size(), 1u);
  EXPECT_EQ(Identified("/user/c2/c21#1"), nobody_);
  const ActorRef unnamed = SpawnBelow(c1_, "");
  const std::string name = system_->PathOf(unnamed).substr(std::string("pekko://S").size());
  EXPECT_EQ(Identified(name), std::vector<ActorRef>{unnamed});
  EXPECT_EQ(Identified("/user/c1/$*"), std::vector<ActorRef>{unnamed});
}

// Vectors 104, 105
TEST_F(SelectionTest, WildcardsReachEachMatchOnce) {
  const ActorRef a = Select(*system_, "/user/a").Find().front();
  EXPECT_TRUE(AreSame(IdentifiedFrom(c21_, "../../*"), {a, c1_, c2_}));
  EXPECT_TRUE(AreSame(Identified("/user/c?"), {c1_, c2_}));
  EXPECT_TRUE(AreSame(Identified("/user/c2/*"), {c21_, c22_}));
  EXPECT_TRUE(AreSame(Identified("/user/*/c2*"), {c21_, c22_}));
  EXPECT_TRUE(AreSame(Identified("/user/c2/c*1"), {c21_}));
  EXPECT_TRUE(AreSame(Identified("/user/c2/*/.."), {c2_})) << "by two ways, but once";
  Select(*system_, "/user/c?").Tell(Ping{"hello"});
  Settle();
  EXPECT_EQ(notes_.pings, (std::vector<std::string>{"pekko://S/user/c1 hello", "pekko://S/user/c2 hello"}));
}

// Vector 106
TEST_F(SelectionTest, LooksAtAnActorOnceHoweverManyWaysLeadToIt) {
  for (int i = 0; i < 10; ++i) Spawn(absl::StrCat("way", i));
  // Thirty wildcards, each with ten ways.
  std::string text = "/user";
  for (int i = 0; i < 30; ++i) text += "/way*/..";
  EXPECT_EQ(Select(*system_, text + "/way3").Find().size(), 1u);
  EXPECT_EQ(Select(*system_, text + "/way*").Find().size(), 10u);
}

TEST_F(SelectionTest, RefusesToLookAtTooManyActors) {
  for (int i = 0; i < 1000; ++i) Spawn(absl::StrCat("many", i));
  std::string text = "/user";
  for (int i = 0; i < 6000; ++i) text += "/*/..";
  Future<ActorRef> resolving = Select(*system_, text).ResolveOne(absl::Seconds(1));
  EXPECT_EQ(resolving.Take().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SelectionTest, DeadEndsBehindAWildcardAreSilent) {
  EXPECT_EQ(IdentifiedFrom(c21_, "../../*/c21"), std::vector<ActorRef>{c21_});
  const uint64_t before = system_->dead_letters().total();
  In(c21_, [](ActorContext& context) { Select(context, "../../*/c21").Tell(Ping{"hello"}); });
  EXPECT_EQ(notes_.pings, std::vector<std::string>{"pekko://S/user/c2/c21 hello"});
  EXPECT_EQ(system_->dead_letters().total(), before);
}

// Vector 107
TEST_F(SelectionTest, AWildcardWithoutAMatchIsAnsweredOnce) { EXPECT_EQ(Identified("/user/a/b1/*"), nobody_); }

// Vectors 99, 110; A96
TEST_F(SelectionTest, WhatReachesNobodyIsADeadLetterOfTheMessageItself) {
  struct Seen {
    std::string sender;
    std::string recipient;
    std::string text;
    DeadLetterReason reason;
  };
  std::vector<Seen> letters;
  std::vector<std::string> failures;
  const EventSubscription letter_listener = system_->events().Listen<DeadLetter>([&](const DeadLetter& letter) {
    ASSERT_EQ(letter.message.type, MessageTypeOf<Ping>());
    letters.push_back({std::string(letter.sender), std::string(letter.recipient),
                       static_cast<const Ping*>(letter.message.message)->text, letter.reason});
  });
  const EventSubscription failure_listener = system_->events().Listen<PathFailure>(
      [&](const PathFailure& failure) { failures.push_back(std::string(failure.recipient)); });
  In(c1_, [](ActorContext& context) {
    Select(context, "/user/missing").Tell(Ping{"boom"});
    Select(context, "../missing/child").Tell(Ping{"below"});
    Select(context, "nobody/*").Tell(Ping{"any"});
    Select(context, "/user/a b").Tell(Ping{"malformed"});
    Select(context, "../../..").Tell(Ping{"escape"});
    Select(context, "/deadLetters").Tell(Ping{"dead"});
  });
  Select(*system_, "/user/missing").Tell(Ping{"outside"});
  ASSERT_EQ(letters.size(), 7u);
  const std::string c1 = "pekko://S/user/c1";
  EXPECT_EQ(letters[0].sender, c1);
  EXPECT_EQ(letters[0].recipient, "pekko://S/user/missing");
  EXPECT_EQ(letters[0].text, "boom");
  EXPECT_EQ(letters[0].reason, DeadLetterReason::kNoRecipient);
  EXPECT_EQ(letters[1].recipient, "pekko://S/user/missing/child");
  EXPECT_EQ(letters[2].recipient, "pekko://S/user/c1/nobody/*");
  EXPECT_EQ(letters[3].recipient, "/user/a b");
  EXPECT_EQ(letters[3].reason, DeadLetterReason::kInvalidPath);
  EXPECT_EQ(letters[4].reason, DeadLetterReason::kInvalidPath);
  EXPECT_EQ(letters[5].recipient, "pekko://S/deadLetters");
  EXPECT_EQ(letters[5].text, "dead");
  EXPECT_EQ(letters[6].sender, "");
  EXPECT_EQ(failures.size(), 7u);
  EXPECT_EQ(failures[3], "/user/a b");
}

// A96
TEST_F(SelectionTest, APathOfAnEarlierLifeSaysSo) {
  const std::string canonical = system_->CanonicalPathOf(c1_);
  system_->Stop(c1_);
  Settle();
  Spawn("c1");
  Select(*system_, canonical).Tell(Ping{"late"});
  EXPECT_TRUE(notes_.pings.empty());
  EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kUidReserved), 1u);
  // Without a uid the path means the current actor.
  Select(*system_, "/user/c1").Tell(Ping{"now"});
  Settle();
  EXPECT_EQ(notes_.pings.size(), 1u);
}

// A100
TEST_F(SelectionTest, AnAskIsAnsweredByThePathOfItsSender) {
  std::string path;
  const auto ask = [&] {
    Future<Ping> answer = system_->Ask<Ping>(
        c1_, Do{[&](ActorContext& context) { path = context.system().PathOf(context.sender()); }}, absl::Seconds(5));
    Settle();
    return answer;
  };
  Future<Ping> by_selection = ask();
  const std::string first = path;
  EXPECT_EQ(first, "pekko://S/temp/c1$a");
  Select(*system_, first).Tell(Ping{"selected"});
  Settle();
  ASSERT_TRUE(by_selection.IsReady());
  EXPECT_EQ(by_selection.Take().value().text, "selected");
  Future<Ping> by_reference = ask();
  EXPECT_EQ(path, "pekko://S/temp/c1$b");
  Tell(system_->Resolve("/temp/c1$b").value_or(ActorRef()), Ping{"resolved"});
  Settle();
  ASSERT_TRUE(by_reference.IsReady());
  EXPECT_EQ(by_reference.Take().value().text, "resolved");
  // From an actor, level by level.
  Future<Ping> by_steps = ask();
  In(c2_, [](ActorContext& context) { Select(context, "/*emp/c1$c").Tell(Ping{"stepped"}); });
  ASSERT_TRUE(by_steps.IsReady());
  EXPECT_EQ(by_steps.Take().value().text, "stepped");
  // A path never means another ask than its own.
  EXPECT_EQ(system_->dead_letters().total(), 0u);
  Future<Ping> later = ask();
  Select(*system_, first).Tell(Ping{"too late"});
  Settle();
  EXPECT_FALSE(later.IsReady());
  EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kNoRecipient), 1u);
  EXPECT_FALSE(system_->Resolve(first).ok());
  EXPECT_FALSE(system_->Resolve("/temp/c2$d").ok());
  EXPECT_FALSE(system_->Resolve("/user/c1$d").ok());
  EXPECT_FALSE(system_->Resolve("/temp/c1$d/x").ok());
  EXPECT_TRUE(system_->Resolve("/temp/c1$d").ok());
}

// PTH-5
TEST_F(SelectionTest, TheUidOfAnAskMeansThatAsk) {
  ActorRef promise;
  Future<Ping> answer =
      system_->Ask<Ping>(c1_, Do{[&](ActorContext& context) { promise = context.sender(); }}, absl::Seconds(5));
  Settle();
  const std::string path = system_->PathOf(promise);
  const std::string canonical = system_->CanonicalPathOf(promise);
  EXPECT_EQ(canonical.rfind(path + "#", 0), 0u) << canonical;
  EXPECT_FALSE(system_->Resolve(path + "#1").ok());
  EXPECT_EQ(system_->Resolve(canonical).value_or(ActorRef()), promise);
  // The path stays known after the ask has ended.
  Tell(promise, Ping{"done"});
  Settle();
  EXPECT_EQ(system_->PathOf(promise), path);
  EXPECT_EQ(system_->CanonicalPathOf(promise), canonical);
}

// A search finds an ask by its name and does not end it.
TEST_F(SelectionTest, AnAskIsIdentifiedAndNotEndedByIt) {
  ActorRef promise;
  Future<Ping> answer =
      system_->Ask<Ping>(c1_, Do{[&](ActorContext& context) { promise = context.sender(); }}, absl::Seconds(5));
  Settle();
  const std::string path = system_->PathOf(promise);
  EXPECT_EQ(Identified(path), std::vector<ActorRef>{promise});
  Future<ActorRef> resolved = Select(*system_, path).ResolveOne(absl::Seconds(1));
  Settle();
  ASSERT_TRUE(resolved.IsReady());
  EXPECT_EQ(resolved.Take().value_or(ActorRef()), promise);
  EXPECT_FALSE(answer.IsReady());
  // No wildcard matches an ask.
  EXPECT_TRUE(Select(*system_, "/temp/*").Find().empty());
  Select(*system_, "/temp/*").Tell(Ping{"to all"});
  Settle();
  EXPECT_FALSE(answer.IsReady());
  Tell(promise, Ping{"done"});
  Settle();
  ASSERT_TRUE(answer.IsReady());
  EXPECT_EQ(answer.Take().value().text, "done");
  EXPECT_EQ(Identified(path), nobody_);
}

// Vectors 111, 112
TEST_F(SelectionTest, SaysWhereItStartsAndWhatItMeans) {
  const std::string anchor = system_->CanonicalPathOf(c21_);
  In(c21_, [&](ActorContext& context) {
    EXPECT_EQ(Select(context, "../*/hello").ToString(), "ActorSelection[Anchor(" + anchor + "), Path(/../*/hello)]");
    EXPECT_EQ(Select(context, "../*/hello").ToWireText(), "pekko://S/user/c2/c21/../*/hello");
    EXPECT_EQ(Select(context, "/user/x").ToString(), "ActorSelection[Anchor(pekko://S/), Path(/user/x)]");
  });
  const Selection bad = Select(*system_, "/user/a\nb");
  EXPECT_EQ(bad.ToString(), "ActorSelection[\"/user/a\\x0ab\"]");
  EXPECT_FALSE(bad.status().ok());
  EXPECT_TRUE(Select(*system_, "/user/*").status().ok());
}

// Vector 113
TEST_F(SelectionTest, EqualIsTheSameStartAndTheSameElements) {
  const Selection users = Select(*system_, "/user/*");
  EXPECT_EQ(users, Select(*system_, "user//*/"));
  EXPECT_EQ(absl::HashOf(users), absl::HashOf(Select(*system_, "user//*/")));
  EXPECT_FALSE(users == Select(*system_, "/user/?"));
  In(c21_, [&](ActorContext& context) {
    EXPECT_EQ(users, Select(context, "/user/*"));
    EXPECT_EQ(Select(context, "../x"), Select(context, "..//x"));
    EXPECT_FALSE(Select(context, "user/*") == users);
  });
}

// Vector 114
TEST_F(SelectionTest, ResolveOneFindsALivingActorOrSaysWhyNot) {
  const auto resolve = [&](std::string_view text) {
    Future<ActorRef> finding = Select(*system_, text).ResolveOne(absl::Seconds(1));
    EXPECT_TRUE(toolbox_->RunUntil([&] { return finding.IsReady(); }, absl::Hours(1)).ok());
    return finding.Take();
  };
  EXPECT_EQ(*resolve("/user/c2/c21"), c21_);
  EXPECT_EQ(*resolve("/user/c2/*"), c21_) << "the first of several";
  EXPECT_EQ(ErrorKindOf<PathResolutionErrorKind>(resolve("/user/missing").status()),
            PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(ErrorKindOf<PathResolutionErrorKind>(resolve("/user/a/b1/*").status()),
            PathResolutionErrorKind::kPidUnknown);
  EXPECT_EQ(ErrorKindOf<ActorPathErrorKind>(resolve("/user/[a]").status()), ActorPathErrorKind::kInvalidSegment);
  EXPECT_EQ(resolve("/user/missing").status().code(), absl::StatusCode::kNotFound);

  // The actor ends before it replies.
  Future<ActorRef> late = Select(*system_, "/user/c1").ResolveOne(absl::Seconds(1));
  system_->Stop(c1_);
  Settle();
  ASSERT_TRUE(late.IsReady());
  EXPECT_EQ(ErrorKindOf<PathResolutionErrorKind>(late.Take().status()), PathResolutionErrorKind::kPidUnknown);

  // A zero timeout.
  Future<ActorRef> never = Select(*system_, "/user/c2").ResolveOne(absl::ZeroDuration());
  Settle();
  ASSERT_TRUE(never.IsReady());
  EXPECT_EQ(never.Take().status().code(), absl::StatusCode::kInvalidArgument);
}

// Vector 123; A14
TEST_F(SelectionTest, TwoLivesOfOnePathAreOrderedByUid) {
  const ActorPath first = ActorPathParser::Parse(system_->CanonicalPathOf(c1_)).value();
  const ActorRef before = c1_;
  system_->Stop(c1_);
  Settle();
  const ActorRef again = Spawn("c1");
  const ActorPath second = ActorPathParser::Parse(system_->CanonicalPathOf(again)).value();
  EXPECT_FALSE(before == again);
  EXPECT_EQ(first, second);
  EXPECT_EQ(ActorPathComparator::RefCompare(first, second), first.uid().value() <=> second.uid().value());
  EXPECT_EQ(Identified("/user/c1"), std::vector<ActorRef>{again});
}

TEST_F(SelectionTest, WhatCannotBeCopiedGoesToOneButNotToSeveral) {
  Select(*system_, "/user/c*").Tell(Unique{std::make_unique<int>(1)});
  EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kNotCopyable), 1u);
  Select(*system_, "/user/c1").Tell(Unique{std::make_unique<int>(1)});
  Settle();
  EXPECT_EQ(system_->dead_letters().total(), 1u);
}

// A message whose copies throw after the first `allowed`.
struct Fragile {
  Fragile() = default;
  Fragile(Fragile&&) noexcept = default;
  Fragile(const Fragile&) {
    if (++copies > allowed) throw std::runtime_error("no copy");
  }
  static inline int copies = 0;
  static inline int allowed = 0;
};

TEST_F(SelectionTest, ACopyThatThrowsIsADeadLetterAndDoesNotThrowOutOfTell) {
  EXPECT_NO_THROW(Select(*system_, "/user/c*").Tell(Fragile{}));
  Settle();
  EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kNotCopyable), 1u);
  Select(*system_, "/user/c1").Tell(Fragile{});
  Settle();
  EXPECT_EQ(system_->dead_letters().total(), 1u);
}

TEST_F(SelectionTest, ACopyThatThrowsFailsAnAskOnlyIfNoRecipientHasIt) {
  for (const int allowed : {0, 1}) {
    ActorRef promise;
    Future<Ping> answer =
        system_->Ask<Ping>(c1_, Do{[&](ActorContext& context) { promise = context.sender(); }}, absl::Seconds(5));
    Settle();
    const uint64_t lost = system_->dead_letters().count(DeadLetterReason::kNotCopyable);
    Fragile::copies = 0;
    Fragile::allowed = allowed;
    const Selection all = Select(*system_, "/user/*");
    ASSERT_EQ(all.Find().size(), 3u);
    all.TellAs(promise, Fragile{});
    Fragile::allowed = 0;
    Settle();
    EXPECT_EQ(system_->dead_letters().count(DeadLetterReason::kNotCopyable), lost + 1);
    EXPECT_EQ(answer.IsReady(), allowed == 0) << "the recipients that have the ask may reply";
    Tell(promise, Ping{"from the first"});
    Settle();
    ASSERT_TRUE(answer.IsReady());
    const absl::StatusOr<Ping> reply = answer.Take();
    EXPECT_EQ(reply.ok(), allowed == 1) << reply.status();
    if (!reply.ok()) {
      EXPECT_NE(reply.status().message().find("no copy"), absl::string_view::npos) << reply.status();
    }
  }
}

TEST_F(SelectionTest, MessagesOfTheRuntimeGoByItToo) {
  Select(*system_, "/user/c2/*").Tell(PoisonPill{});
  Settle();
  EXPECT_TRUE(Select(*system_, "/user/c2/*").Find().empty());
  EXPECT_EQ(Select(*system_, "/user/c2").Find(), std::vector<ActorRef>{c2_});
  // A pill that comes too late is no dead letter.
  std::vector<std::string> letters;
  const EventSubscription listener = system_->events().Listen<DeadLetter>(
      [&](const DeadLetter& letter) { letters.push_back(std::string(letter.recipient)); });
  Select(*system_, "/user/c2/*").Tell(PoisonPill{});
  EXPECT_TRUE(letters.empty());
  EXPECT_EQ(system_->dead_letters().total(), 1u);
}

}  // namespace
}  // namespace fraktor
