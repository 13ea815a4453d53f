#include "fraktor/actor/tree/internal/actor_tree.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/tree/internal/tree_fixture.h"

namespace fraktor::actor_internal {
namespace {

using Lines = std::vector<std::string>;

Do Failing(const char* text) {
  return Do{[text](ActorContext&) { return absl::InternalError(text); }};
}

// Life

TEST(ActorTree, StartsAnActorBeforeItsFirstMessageAndStopsItAfterItsLast) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  TellText(root, "a");
  TellText(root, "b");
  system.Settle();
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"root starts", "root: a", "root: b", "root stops"}));
  EXPECT_FALSE(system.IsAlive(root));
}

// SCH-5
TEST(ActorTree, ResolvesAPidAsLongAsItsActorLives) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const ActorSlot* const slot = ProcessSlots().At(ActorSlotTable::IndexOf(root.slot()));
  ASSERT_EQ(slot, root.slot());
  EXPECT_EQ(slot->RefAt(root.generation()), root);
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_TRUE(slot->RefAt(root.generation()).IsNoOne());
  // Also after another actor has taken the slot.
  std::vector<ActorRef> others;
  for (int i = 0; i < 200; ++i) others.push_back(system.Spawn(*ProbeProps(log, "other")));
  EXPECT_TRUE(slot->RefAt(root.generation()).IsNoOne());
}

TEST(ActorTree, StartsAnActorThatGetsNoMessage) {
  TestLog log;
  TestSystem system;
  system.Spawn(*ProbeProps(log, "root"));
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"root starts"}));
}

TEST(ActorTree, LetsAnActorFinishItsMessageAndMakesDeadLettersOfTheRest) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  TellText(root, "a");
  Tell(root, Do{[&log](ActorContext& context) {
         ActorTree::Stop(context.self());
         log.Add("still there");
         return absl::OkStatus();
       }});
  TellText(root, "b");
  TellText(root, "c");
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"root starts", "root: a", "still there", "root stops"}));
  EXPECT_EQ(system.dead_letters(DeadLetterReason::kStopped), 2u);
  EXPECT_EQ(system.dead_letters(), 2u);
}

TEST(ActorTree, TellsAChildWhoItIsAndWhoSent) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const ActorRef child = SpawnUnder(system, root, *ProbeProps(log, "child")).value();
  ActorRef self;
  ActorRef sender;
  Tell(root, Do{[&](ActorContext& context) {
         context.Tell(child, Do{[&](ActorContext& inner) {
                        self = inner.self();
                        sender = inner.sender();
                        return absl::OkStatus();
                      }});
         return absl::OkStatus();
       }});
  system.Settle();
  EXPECT_EQ(self, child);
  EXPECT_EQ(sender, root);
  EXPECT_EQ(child.slot()->kin.parent, root.slot());
}

TEST(ActorTree, NumbersSiblingsAndUsesNoNumberTwice) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const PropsPtr props = ProbeProps(log, "child");
  const ActorRef first = SpawnUnder(system, root, *props).value();
  const ActorRef second = SpawnUnder(system, root, *props).value();
  EXPECT_EQ(first.slot()->kin.number, 0u);
  EXPECT_EQ(second.slot()->kin.number, 1u);
  EXPECT_EQ(CountChildren(*root.slot()), 2u);
  ActorTree::Stop(second);
  system.Settle();
  EXPECT_EQ(CountChildren(*root.slot()), 1u);
  EXPECT_EQ(SpawnUnder(system, root, *props).value().slot()->kin.number, 2u);
}

// SCH-7
TEST(ActorTree, StopsChildrenBeforeTheirParents) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const ActorRef middle = SpawnUnder(system, root, *ProbeProps(log, "middle")).value();
  const ActorRef leaf = SpawnUnder(system, middle, *ProbeProps(log, "leaf")).value();
  const ActorRef other = SpawnUnder(system, root, *ProbeProps(log, "other")).value();
  log.Take();
  ActorTree::Stop(root);
  system.Settle();
  Lines lines = log.Take();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines.back(), "root stops");
  const auto at = [&lines](const char* line) { return std::find(lines.begin(), lines.end(), line) - lines.begin(); };
  EXPECT_LT(at("leaf stops"), at("middle stops"));
  for (const ActorRef actor : {root, middle, leaf, other}) EXPECT_FALSE(system.IsAlive(actor));
}

TEST(ActorTree, TakesChildrenOutOfAnyPlaceAmongTheirSiblings) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const PropsPtr props = ProbeProps(log, "child");
  std::vector<ActorRef> children;
  for (int i = 0; i < 5; ++i) children.push_back(SpawnUnder(system, root, *props).value());
  // The list begins with the newest child.
  for (const int i : {2, 4, 0}) {
    ActorTree::Stop(children[static_cast<size_t>(i)]);
    system.Settle();
  }
  EXPECT_EQ(CountChildren(*root.slot()), 2u);
  log.Take();
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"child stops", "child stops", "root stops"}));
}

TEST(ActorTree, RefusesAChildOfAnActorThatIsEnding) {
  TestLog log;
  TestSystem system;
  const PropsPtr child = ProbeProps(log, "child");
  absl::Status refused;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root", {.stop = [&](ActorContext& context) {
                                                   refused = ActorTree::Of(context).Spawn(context, *child).status();
                                                 }}));
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(log.Take(), (Lines{"root starts", "root stops"}));
}

TEST(ActorTree, StopsAChildThatWasSpawnedInTheLastHandler) {
  TestLog log;
  TestSystem system;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const PropsPtr child = ProbeProps(log, "child");
  Tell(root, Do{[&](ActorContext& context) {
         context.Stop();
         return ActorTree::Of(context).Spawn(context, *child).status();
       }});
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"root starts", "child starts", "child stops", "root stops"}));
}

// Failure

struct Family {
  explicit Family(TestSystem& in)
      : system(in),
        root(system.Spawn(*ProbeProps(log, "root"))),
        middle(SpawnUnder(system, root, *ProbeProps(log, "middle")).value()),
        leaf(SpawnUnder(system, middle, *ProbeProps(log, "leaf")).value()) {
    log.Take();
  }

  TestLog log;
  TestSystem& system;
  const ActorRef root;
  const ActorRef middle;
  const ActorRef leaf;
};

TestSystemOptions Always(SupervisionDirective verdict) {
  return {.supervisor = [verdict](ActorRef, const absl::Status&) { return verdict; }};
}

// SCH-7
TEST(ActorTree, RunsNoUserMessageOfAFailingActorAndItsDescendantsBeforeTheVerdict) {
  Lines at_verdict;
  TestLog* log = nullptr;
  TestSystem system({.supervisor = [&](ActorRef, const absl::Status&) {
    at_verdict = log->Take();
    return SupervisionDirective::kResume;
  }});
  Family family(system);
  log = &family.log;
  const ActorRef last = SpawnUnder(system, family.leaf, *ProbeProps(family.log, "last")).value();
  family.log.Take();
  Tell(family.middle, Do{[&](ActorContext& context) {
         TellText(context.self(), "after");
         TellText(family.leaf, "after");
         TellText(last, "after");
         context.Flush();
         return absl::InternalError("broken");
       }});
  system.Settle();
  EXPECT_EQ(at_verdict, Lines());
  Lines lines = family.log.Take();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"last: after", "leaf: after", "middle: after"}));
}

TEST(ActorTree, LeavesNobodySuspendedAfterAResume) {
  TestSystem system(
      TestSystemOptions{.supervisor = [](ActorRef, const absl::Status&) { return SupervisionDirective::kResume; }});
  Family family(system);
  uint16_t leaf_failures = 0;
  Tell(family.middle, Failing("broken"));
  Tell(family.leaf, Do{[&](ActorContext& context) {
         leaf_failures = context.slot().failures;
         return absl::OkStatus();
       }});
  system.Settle();
  EXPECT_EQ(leaf_failures, 0);
  EXPECT_EQ(family.middle.slot()->failures, 0);
  EXPECT_EQ(family.leaf.slot()->failures, 0);
}

// Spawns a child when a reply comes, which it sends itself.
class LateParent final : public ActorInstance {
 public:
  LateParent(TestLog* log, const ActorProps* child) : log_(*log), child_(*child) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    const absl::StatusOr<ActorRef> ask = context.AskOnReply(ActorRef(), 1, absl::InfiniteDuration());
    if (!ask.ok()) return ask.status();
    context.Tell(*ask, 1);
    return absl::InternalError("broken");
  }
  absl::Status OnReply(ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) override {
    if (!answer.ok()) return answer.status();
    log_.Add("answered");
    const absl::StatusOr<ActorRef> child = ActorTree::Of(context).Spawn(context, child_);
    if (!child.ok()) return child.status();
    TellText(*child, "a");
    return absl::OkStatus();
  }

 private:
  TestLog& log_;
  const ActorProps& child_;
};

// SCH-7
TEST(ActorTree, SuspendsAChildThatIsBornToASuspendedParent) {
  TestLog log;
  TestSystem system({.supervisor = [&](ActorRef, const absl::Status&) {
    log.Add("verdict");
    return SupervisionDirective::kResume;
  }});
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  system.Settle();
  const PropsPtr props = ProbeProps(log, "child");
  const ActorRef parent = SpawnUnder(system, root, *MakeProps<LateParent>({}, &log, props.get())).value();
  log.Take();
  Tell(parent, 1);
  system.Settle();
  const Lines lines = log.Take();
  const auto at = [&lines](const char* line) { return std::find(lines.begin(), lines.end(), line) - lines.begin(); };
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_LT(at("answered"), at("verdict"));
  EXPECT_LT(at("verdict"), at("child: a"));
  EXPECT_EQ(lines.back(), "child: a");
}

TEST(ActorTree, KeepsEverythingOnResume) {
  TestSystem system(Always(SupervisionDirective::kResume));
  Family family(system);
  Tell(family.middle, Failing("broken"));
  TellText(family.middle, "a");
  TellText(family.leaf, "b");
  system.Settle();
  Lines lines = family.log.Take();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"leaf: b", "middle: a"}));
  EXPECT_TRUE(system.IsAlive(family.leaf));
}

TEST(ActorTree, MakesANewInstanceOnRestartWhenTheChildrenHaveStoppedAndKeepsTheMailbox) {
  TestSystem system(Always(SupervisionDirective::kRestart));
  Family family(system);
  Tell(family.middle, Failing("broken"));
  TellText(family.middle, "a");
  system.Settle();
  EXPECT_EQ(family.log.Take(), (Lines{"middle stops", "leaf stops", "middle starts", "middle: a"}));
  EXPECT_TRUE(system.IsAlive(family.middle));
  EXPECT_FALSE(system.IsAlive(family.leaf));
  EXPECT_EQ(system.dead_letters(), 0u);
}

TEST(ActorTree, RestartsByDefaultAlsoARoot) {
  TestSystem system;
  Family family(system);
  Tell(family.root, Do{[](ActorContext&) -> absl::Status { throw std::runtime_error("thrown"); }});
  TellText(family.root, "a");
  system.Settle();
  EXPECT_EQ(family.log.Take(), (Lines{"root stops", "leaf stops", "middle stops", "root starts", "root: a"}));
}

TEST(ActorTree, StopsOnTheVerdictStop) {
  TestSystem system(Always(SupervisionDirective::kStop));
  Family family(system);
  Tell(family.middle, Failing("broken"));
  TellText(family.middle, "a");
  system.Settle();
  EXPECT_EQ(family.log.Take(), (Lines{"leaf stops", "middle stops"}));
  EXPECT_TRUE(system.IsAlive(family.root));
  EXPECT_EQ(system.dead_letters(DeadLetterReason::kStopped), 1u);
}

// A36
TEST(ActorTree, LetsASupervisorFailThatThrowsInsteadOfDeciding) {
  TestSystem system({.supervisor = [](ActorRef, const absl::Status&) -> SupervisionDirective { throw 1; }});
  Family family(system);
  Tell(family.leaf, Failing("broken"));
  system.Settle();
  // Its ancestors escalate too, up to the root.
  EXPECT_EQ(family.log.Take(), (Lines{"leaf stops", "middle stops", "root stops"}));
}

TEST(ActorTree, EscalatesUpToTheRootAndEndsIt) {
  std::vector<ActorRef> asked;
  std::vector<std::string> errors;
  TestSystem system({.supervisor = [&](ActorRef child, const absl::Status& error) {
    asked.push_back(child);
    errors.emplace_back(error.message());
    return SupervisionDirective::kEscalate;
  }});
  Family family(system);
  Tell(family.leaf, Failing("broken"));
  system.Settle();
  EXPECT_EQ(asked, (std::vector<ActorRef>{family.leaf, family.middle, family.root}));
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[0], "broken");
  // The escalated error names the actor that failed.
  EXPECT_NE(errors[1].find(") failed: broken"), std::string::npos) << errors[1];
  EXPECT_EQ(errors[2], errors[1]);
  EXPECT_EQ(family.log.Take(), (Lines{"leaf stops", "middle stops", "root stops"}));
}

TEST(ActorTree, ResumesTheChildWhoseFailureWasEscalated) {
  ActorRef leaf;
  TestSystem system({.supervisor = [&](ActorRef child, const absl::Status&) {
    return child == leaf ? SupervisionDirective::kEscalate : SupervisionDirective::kResume;
  }});
  Family family(system);
  leaf = family.leaf;
  const ActorRef sibling = SpawnUnder(system, family.middle, *ProbeProps(family.log, "sibling")).value();
  family.log.Take();
  Tell(leaf, Failing("broken"));
  system.Settle();
  for (const ActorRef actor : {leaf, sibling, family.middle}) TellText(actor, "a");
  system.Settle();
  Lines lines = family.log.Take();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"leaf: a", "middle: a", "sibling: a"}));
}

TEST(ActorTree, RestartsOnceForTwoEscalations) {
  std::vector<ActorRef> leaves;
  TestSystem system({.supervisor = [&](ActorRef child, const absl::Status&) {
    return child == leaves[0] || child == leaves[1] ? SupervisionDirective::kEscalate : SupervisionDirective::kRestart;
  }});
  TestLog log;
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const ActorRef middle = SpawnUnder(system, root, *ProbeProps(log, "middle")).value();
  for (int i = 0; i < 2; ++i) leaves.push_back(SpawnUnder(system, middle, *ProbeProps(log, "leaf")).value());
  log.Take();
  // Both fail before the actor between them handles either failure.
  Tell(middle, Do{[&](ActorContext& context) {
         for (const ActorRef leaf : leaves) context.Tell(leaf, Failing("broken"));
         return absl::OkStatus();
       }});
  system.Settle();
  TellText(middle, "a");
  system.Settle();
  const Lines lines = log.Take();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "middle: a");
  EXPECT_EQ(middle.slot()->failures, 0);
}

TEST(ActorTree, HasNoVerdictOnAChildThatHasEndedMeanwhile) {
  int asked = 0;
  TestSystem system({.supervisor = [&](ActorRef, const absl::Status&) {
    ++asked;
    return SupervisionDirective::kRestart;
  }});
  Family family(system);
  Tell(family.leaf, Do{[](ActorContext& context) {
         ActorTree::Stop(context.self());
         return absl::InternalError("broken");
       }});
  system.Settle();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(family.log.Take(), (Lines{"leaf stops"}));
  EXPECT_EQ(CountChildren(*family.middle.slot()), 0u);
}

TEST(ActorTree, EndsAnActorThatFailsWhileItStops) {
  TestSystem system(Always(SupervisionDirective::kRestart));
  Family family(system);
  Tell(family.middle, Do{[](ActorContext& context) {
         context.Stop();
         return absl::InternalError("broken");
       }});
  system.Settle();
  EXPECT_EQ(family.log.Take(), (Lines{"leaf stops", "middle stops"}));
}

TEST(ActorTree, StopsAnActorThatWaitsForItsChildrenToBeRestarted) {
  TestSystem system(Always(SupervisionDirective::kRestart));
  Family family(system);
  // The stop follows the verdict at once.
  Tell(family.middle, Failing("broken"));
  ActorTree::Stop(family.middle);
  system.Settle();
  const Lines lines = family.log.Take();
  EXPECT_EQ(lines.back(), "middle stops");
  EXPECT_FALSE(system.IsAlive(family.middle));
  EXPECT_EQ(CountChildren(*family.root.slot()), 0u);
}

// Hooks and constructors that fail

struct Thrower final : public ActorInstance {
  explicit Thrower(int* left) {
    if ((*left)-- <= 0) throw std::runtime_error("out of order");
  }
  absl::Status Receive(ActorContext&, Envelope& message) override {
    return message.As<Do>().what == nullptr ? absl::OkStatus() : absl::InternalError("broken");
  }
};

struct IntThrower final : public ActorInstance {
  IntThrower() { throw 1; }
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

TEST(ActorTree, NamesTheTypeWhoseConstructorThrew) {
  TestLog log;
  TestSystem system;
  int left = 0;
  const absl::Status root = system.tree().SpawnRoot(*MakeProps<Thrower>({}, &left)).status();
  EXPECT_EQ(root.code(), absl::StatusCode::kInternal);
  EXPECT_NE(root.ToString().find("Thrower"), std::string::npos) << root;
  EXPECT_NE(root.ToString().find("out of order"), std::string::npos) << root;
}

// A7
TEST(ActorTree, TellsTheSupervisorOfAConstructorThatThrew) {
  TestLog log;
  std::string error;
  TestSystem system({.supervisor = [&](ActorRef, const absl::Status& status) {
    error = status.ToString();
    return SupervisionDirective::kStop;
  }});
  const ActorRef parent = system.Spawn(*ProbeProps(log, "parent"));
  const absl::StatusOr<ActorRef> child = SpawnUnder(system, parent, PropsOf<IntThrower>());
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_FALSE(system.IsAlive(*child));
  EXPECT_NE(error.find("IntThrower"), std::string::npos) << error;
  EXPECT_EQ(CountChildren(*parent.slot()), 0u);
}

TEST(ActorTree, EndsAnActorThatCannotBeMadeAgain) {
  TestSystem system;
  int left = 1;
  const ActorRef actor = system.Spawn(*MakeProps<Thrower>({}, &left));
  Tell(actor, Failing("broken"));
  Tell(actor, Failing("never"));
  system.Settle();
  EXPECT_FALSE(system.IsAlive(actor));
  EXPECT_EQ(system.dead_letters(DeadLetterReason::kStopped), 1u);
}

TEST(ActorTree, TreatsAFailedStartAsAFailure) {
  TestLog log;
  int starts = 0;
  TestSystem system(Always(SupervisionDirective::kRestart));
  const ActorRef actor = system.Spawn(*ProbeProps(
      log, "actor",
      {.start = [&](ActorContext&) { return ++starts < 3 ? absl::UnavailableError("not yet") : absl::OkStatus(); }}));
  TellText(actor, "a");
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"actor starts", "actor starts", "actor starts", "actor: a"}));
}

TEST(ActorTree, EndsAnActorWhoseStartThrowsIfThatIsTheVerdict) {
  TestLog log;
  TestSystem system(Always(SupervisionDirective::kStop));
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const PropsPtr props = ProbeProps(log, "child", {.start = [](ActorContext&) -> absl::Status { throw 1; }});
  const ActorRef child = SpawnUnder(system, root, *props).value();
  EXPECT_FALSE(system.IsAlive(child));
  EXPECT_EQ(log.Take(), (Lines{"root starts", "child starts"}));
}

TEST(ActorTree, EndsAnActorWhoseLastHookThrows) {
  TestLog log;
  TestSystem system;
  const ActorRef root =
      system.Spawn(*ProbeProps(log, "root", {.stop = [](ActorContext&) { throw std::runtime_error("thrown"); }}));
  const PropsPtr props = ProbeProps(log, "child", {.stop = [](ActorContext&) { throw 1; }});
  SpawnUnder(system, root, *props).value();
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"root starts", "child starts", "child stops", "root stops"}));
  EXPECT_FALSE(system.IsAlive(root));
}

class PrivateStart final : public ActorInstance {
 public:
  explicit PrivateStart(bool* started) : started_(*started) {}

 private:
  absl::Status PreStart(ActorContext&) override {
    started_ = true;
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
  bool& started_;
};

TEST(ActorTree, StartsAnActorWhoseHookIsPrivate) {
  TestSystem system;
  bool started = false;
  system.Spawn(*MakeProps<PrivateStart>({}, &started));
  system.Settle();
  EXPECT_TRUE(started);
}

// Recipes

struct Show {
  std::string* to;
};

class Keeper final : public ActorInstance {
 public:
  Keeper(std::string text, std::shared_ptr<int> token) : text_(std::move(text)), token_(std::move(token)) {}
  absl::Status Receive(ActorContext&, Envelope& message) override {
    if (auto* const more = message.TryAs<std::string>()) {
      text_ += *more;
      return absl::OkStatus();
    }
    if (auto* const out = message.TryAs<Show>()) {
      *out->to = text_;
      return absl::OkStatus();
    }
    return absl::InternalError("broken");
  }

 private:
  std::string text_;
  std::shared_ptr<int> token_;
};

TEST(ActorProps, GivesEachInstanceACopyOfTheArguments) {
  TestSystem system;
  const auto token = std::make_shared<int>(0);
  const PropsPtr props = MakeProps<Keeper>({}, "hello", token);
  const ActorRef one = system.Spawn(*props);
  const ActorRef two = system.Spawn(*props);
  EXPECT_EQ(token.use_count(), 4);
  TellText(one, "!");
  Tell(two, Failing("broken"));
  TellText(two, "?");
  std::string first;
  std::string second;
  Tell(one, Show{&first});
  Tell(two, Show{&second});
  system.Settle();
  EXPECT_EQ(first, "hello!");
  EXPECT_EQ(second, "hello?");
  EXPECT_EQ(token.use_count(), 4);
}

// A20
TEST(ActorProps, LiveAsLongAsTheirLastUser) {
  TestSystem system;
  const auto token = std::make_shared<int>(0);
  PropsPtr props = MakeProps<Keeper>({}, "hello", token);
  const ActorRef one = system.Spawn(*props);
  const ActorRef two = system.Spawn(*props);
  props.reset();
  EXPECT_EQ(token.use_count(), 4);
  ActorTree::Stop(one);
  system.Settle();
  EXPECT_EQ(token.use_count(), 3);
  ActorTree::Stop(two);
  system.Settle();
  EXPECT_EQ(token.use_count(), 1);
}

struct Other {
  virtual ~Other() = default;
  int64_t number = 7;
};

template <size_t kBytes, size_t kAlignment>
class alignas(kAlignment) Sized final : public Other, public ActorInstance {
 public:
  explicit Sized(std::atomic<int>* alive) : alive_(*alive) { alive_.fetch_add(1); }
  ~Sized() override { alive_.fetch_sub(1); }
  absl::Status Receive(ActorContext&, Envelope& message) override {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(this) % kAlignment, 0u);
    for (char& c : bytes_) c = 'x';
    return message.Is<Do>() ? absl::InternalError("broken") : absl::OkStatus();
  }

 private:
  std::atomic<int>& alive_;
  char bytes_[kBytes];
};

template <class Actor>
void LiveAndDie() {
  std::atomic<int> alive{0};
  {
    TestSystem system;
    const ActorRef one = system.Spawn(*MakeProps<Actor>({}, &alive));
    const ActorRef two = system.Spawn(*MakeProps<Actor>({}, &alive));
    Tell(one, 1);
    Tell(one, Failing("broken"));
    Tell(one, 2);
    Tell(two, 1);
    ActorTree::Stop(one);
    system.Settle();
    EXPECT_EQ(alive.load(), 1);
  }
  EXPECT_EQ(alive.load(), 0);
}

TEST(ActorProps, MakeInstancesOfAnySizeAndAlignment) {
  LiveAndDie<Sized<1, 8>>();
  LiveAndDie<Sized<100, 8>>();
  LiveAndDie<Sized<150, 8>>();
  LiveAndDie<Sized<193, 8>>();
  LiveAndDie<Sized<5000, 8>>();
  LiveAndDie<Sized<1, 64>>();
  LiveAndDie<Sized<1, 128>>();
  LiveAndDie<Sized<1, 4096>>();
}

// A63: the recipe defines the mailbox. Stashing works with every mailbox, so actors require none.
TEST(ActorProps, GiveTheMailboxItsLimit) {
  TestLog log;
  TestSystem system;
  const PropsOptions options{.mailbox = {.capacity = 2, .overflow = OverflowStrategy::kReject}};
  const ActorRef actor = system.Spawn(*ProbeProps(log, "actor", {}, options));
  system.Settle();
  EXPECT_TRUE(TryTell(actor, std::string("a")).ok());
  EXPECT_TRUE(TryTell(actor, std::string("b")).ok());
  EXPECT_EQ(TryTell(actor, std::string("c")).code(), absl::StatusCode::kResourceExhausted);
  system.Settle();
  EXPECT_EQ(log.Take(), (Lines{"actor starts", "actor: a", "actor: b"}));
}

TEST(ActorProps, AreRefusedWithBadOptions) {
  std::atomic<int> alive{0};
  TestSystem system;
  const absl::Status refused =
      system.tree()
          .SpawnRoot(*MakeProps<Sized<1, 8>>({.mailbox = {.capacity = 2, .reserve_for_system = 2}}, &alive))
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_NE(refused.ToString().find("reserve_for_system"), std::string::npos) << refused;
  EXPECT_EQ(alive.load(), 0);
}

// SCH-4: also options that an unbounded mailbox ignores.
TEST(ActorProps, AreRefusedWithOptionsThatMeanNothing) {
  std::atomic<int> alive{0};
  TestSystem system;
  const auto refuse = [&](const MailboxOptions& mailbox, const char* option) {
    const absl::Status refused =
        system.tree().SpawnRoot(*MakeProps<Sized<1, 8>>({.mailbox = mailbox}, &alive)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << option;
    EXPECT_NE(refused.ToString().find(option), std::string::npos) << refused;
  };
  refuse({.reserve_for_system = 5}, "MailboxOptions.reserve_for_system is 5");
  refuse({.push_timeout = absl::Seconds(-1)}, "MailboxOptions.push_timeout is -1s");
  refuse({.priority = [](const Envelope&) { return 1; }}, "MailboxOptions.priority is set");
  EXPECT_EQ(alive.load(), 0);
}

TEST(ActorTree, SaysOfALateAnswerThatItsAskIsOver) {
  TestLog log;
  TestSystem system;
  std::string recipient;
  const EventSubscription late =
      system.events().Listen<DeadLetter>([&](const DeadLetter& letter) { recipient = std::string(letter.recipient); });
  const ActorRef answers = system.Spawn(*ProbeProps(log, "answers"));
  Tell(system.Spawn(*ProbeProps(log, "asks")), Do{[&](ActorContext& context) {
         const Do twice{[](ActorContext& answering) {
           answering.Reply(std::string("once"));
           answering.Reply(std::string("twice"));
           return absl::OkStatus();
         }};
         return context.AskOnReply(answers, twice, absl::InfiniteDuration()).status();
       }});
  system.Settle();
  EXPECT_EQ(recipient.find("an ask that is over (slot "), 0u) << recipient;
}

// Dispatchers

TEST(ActorTree, RunsActorsOnTheDispatcherOfTheirProps) {
  TestLog log;
  TestSystem system;
  uint16_t on_default = 0;
  uint16_t on_system = 0;
  const auto look = [](uint16_t& number) {
    return Do{[&number](ActorContext& context) {
      number = context.worker().dispatcher;
      return absl::OkStatus();
    }};
  };
  Tell(system.Spawn(*ProbeProps(log, "a")), look(on_default));
  Tell(system.Spawn(*ProbeProps(log, "b", {}, {.dispatcher = DispatcherChoice::kSystem})), look(on_system));
  system.Settle();
  EXPECT_EQ(on_default, system.dispatchers().default_pool().number());
  EXPECT_EQ(on_system, system.dispatchers().system_pool().number());
  EXPECT_NE(on_default, on_system);
}

TEST(ActorTree, GivesAPinnedActorAThreadThatEndsWithIt) {
  TestLog log;
  TestSystemOptions options;
  options.scheduler.dispatchers.max_pinned = 2;
  TestSystem system(Threads(), options);
  const PropsOptions pinned{.dispatcher = DispatcherChoice::kPinned};
  std::thread::id threads[3];
  std::counting_semaphore<> told{0};
  const auto look = [&told](std::thread::id& id) {
    return Do{[&](ActorContext&) {
      id = std::this_thread::get_id();
      told.release();
      return absl::OkStatus();
    }};
  };
  const ActorRef one = system.Spawn(*ProbeProps(log, "one", {}, pinned));
  const ActorRef two = system.Spawn(*ProbeProps(log, "two", {}, pinned));
  const ActorRef free = system.Spawn(*ProbeProps(log, "free"));
  Tell(one, look(threads[0]));
  Tell(two, look(threads[1]));
  Tell(free, look(threads[2]));
  for (int i = 0; i < 3; ++i) told.acquire();
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_NE(threads[0], threads[2]);
  EXPECT_NE(threads[1], threads[2]);
  EXPECT_EQ(system.dispatchers().pinned_count(), 2u);

  const absl::Status refused = system.tree().SpawnRoot(*ProbeProps(log, "three", {}, pinned)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_NE(refused.ToString().find("max_pinned"), std::string::npos) << refused;

  ActorTree::Stop(one);
  system.Settle();
  EXPECT_EQ(system.dispatchers().pinned_count(), 1u);
  system.Spawn(*ProbeProps(log, "three", {}, pinned));
  EXPECT_EQ(system.dispatchers().pinned_count(), 2u);
}

TEST(ActorTree, NeedsNoThreadForAPinnedActorThatDoesNotComeAbout) {
  TestSystem system(Threads(), {});
  int left = 0;
  EXPECT_FALSE(system.tree().SpawnRoot(*MakeProps<Thrower>({.dispatcher = DispatcherChoice::kPinned}, &left)).ok());
  const PropsOptions bad{.dispatcher = DispatcherChoice::kPinned, .mailbox = {.capacity = 1, .reserve_for_system = 1}};
  left = 1;
  EXPECT_FALSE(system.tree().SpawnRoot(*MakeProps<Thrower>(bad, &left)).ok());
  EXPECT_EQ(system.dispatchers().pinned_count(), 0u);
}

TEST(ActorTree, PinsChildrenAsOftenAsItTakes) {
  constexpr int kRounds = kIsSanitized ? 50 : 300;
  TestLog log;
  TestSystemOptions options;
  options.scheduler.dispatchers.max_pinned = 4;
  TestSystem system(Threads(), options);
  const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
  const PropsPtr pinned = ProbeProps(log, "child", {}, {.dispatcher = DispatcherChoice::kPinned});
  for (int i = 0; i < kRounds; ++i) {
    const absl::StatusOr<ActorRef> child = SpawnUnder(system, root, *pinned);
    ASSERT_TRUE(child.ok()) << child.status();
    TellText(*child, "a");
    ActorTree::Stop(*child);
    system.Settle();
    ASSERT_EQ(system.dispatchers().pinned_count(), 0u);
  }
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_FALSE(system.IsAlive(root));
}

// Types

TEST(ActorTree, NamesTheTypesOfSlots) {
  for (const bool with_hub : {true, false}) {
    for (const bool enabled : {true, false}) {
      TestSystemOptions options;
      options.with_hub = with_hub;
      options.scheduler.observability.enabled = enabled;
      TestSystem system(options);
      TestLog log;
      const ActorRef probe = system.Spawn(*ProbeProps(log, "a"));
      const ActorRef keeper = system.Spawn(*MakeProps<Keeper>({}, "hello", nullptr));
      const ActorRef again = system.Spawn(*ProbeProps(log, "b"));
      const uint16_t type = probe.slot()->type.load();
      EXPECT_NE(system.tree().types().NameOf(type).find("Probe"), std::string::npos)
          << system.tree().types().NameOf(type);
      EXPECT_NE(system.tree().types().NameOf(keeper.slot()->type.load()).find("Keeper"), std::string::npos);
      EXPECT_EQ(again.slot()->type.load(), type);
      EXPECT_EQ(system.tree().types().NameOf(60'000), "other");
    }
  }
}

TEST(ActorTree, CallsTypesThatAreTooManyOther) {
  TestSystemOptions options;
  options.scheduler.observability.max_types = 3;  // The guardian, one type, and the type for all others.
  options.scheduler.observability.max_timed_types = 1;
  TestSystem system(options);
  TestLog log;
  const ActorRef probe = system.Spawn(*ProbeProps(log, "a"));
  const ActorRef keeper = system.Spawn(*MakeProps<Keeper>({}, "hello", nullptr));
  EXPECT_NE(system.tree().types().NameOf(probe.slot()->type.load()).find("Probe"), std::string::npos);
  EXPECT_EQ(system.tree().types().NameOf(keeper.slot()->type.load()), "other");
}

// Numbers

class Child final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

TEST(ActorTree, StopsAHundredThousandChildrenAndUsesTheirSlotsAgain) {
  constexpr uint32_t kChildren = 100'000;
  TestLog log;
  TestSystem system;
  size_t chunks = 0;
  for (int round = 0; round < 2; ++round) {
    const ActorRef root = system.Spawn(*ProbeProps(log, "root"));
    Tell(root, Do{[](ActorContext& context) {
           for (uint32_t i = 0; i < kChildren; ++i) {
             const absl::StatusOr<ActorRef> child = ActorTree::Of(context).Spawn(context, PropsOf<Child>());
             if (!child.ok()) return child.status();
             if (i % 2 == 0) context.Tell(*child, i);
           }
           return absl::OkStatus();
         }});
    system.Settle();
    ASSERT_EQ(CountChildren(*root.slot()), kChildren);
    ActorTree::Stop(root);
    system.Settle();
    ASSERT_FALSE(system.IsAlive(root));
    if (round == 0) chunks = ProcessSlots().chunks();
  }
  EXPECT_EQ(ProcessSlots().chunks(), chunks);
}

// Ends

class Asker final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    return context.AskOnReply(message.As<ActorRef>(), 1, absl::Hours(1)).status();
  }
};

class HoldEverything final : public ActorInstance {
 public:
  absl::Status PreStart(ActorContext&) override { return absl::OkStatus(); }
  absl::Status Receive(ActorContext& context, Envelope&) override {
    kept_.push_back(context.Stash());
    return absl::OkStatus();
  }

 private:
  std::vector<EnvelopePtr> kept_;
};

// Actors in all states: some have run, others have not.
void Populate(TestSystem& system, TestLog& log, int count) {
  const ActorRef nobody_answers = system.Spawn(PropsOf<Child>());
  const PropsPtr bounded = MakeProps<Child>({.mailbox = {.capacity = 2, .overflow = OverflowStrategy::kBlockProducer}});
  const PropsPtr ordered = MakeProps<Child>({.mailbox = {.order = MessageOrder::kControlFirst}});
  const PropsPtr probes = ProbeProps(log, "probe");
  const ActorRef full = system.Spawn(*bounded);
  for (int i = 0; i < count / 8; ++i) {
    system.Spawn(PropsOf<Child>());
    system.Spawn(PropsOf<HoldEverything>());
    Tell(system.Spawn(PropsOf<HoldEverything>()), std::string(100, 'x'));
    Tell(system.Spawn(PropsOf<Child>()), std::string(100, 'x'));
    Tell(system.Spawn(PropsOf<Asker>()), ActorRef(nobody_answers));
    const ActorRef limited = system.Spawn(*bounded);
    EXPECT_TRUE(TryTell(limited, 1).ok());
    Tell(system.Spawn(*ordered), std::string("x"));
    // A suspended actor with messages: it has sent to a full mailbox, or it has failed.
    const ActorRef probe = system.Spawn(*probes);
    Tell(probe, Do{[full, i](ActorContext& context) {
           for (int j = 0; j < 5; ++j) context.Tell(full, std::string("y"));
           return i % 2 == 0 ? absl::OkStatus() : absl::InternalError("broken");
         }});
    TellText(probe, "later");
  }
}

TEST(ActorTree, LeavesNothingBehindWhateverItsActorsAreAt) {
  constexpr int kActors = 10'000;
  TestLog log;
  {
    // None of these actors has run.
    TestSystem system;
    Populate(system, log, kActors);
  }
  {
    TestSystem system(Always(SupervisionDirective::kRestart));
    Populate(system, log, kActors);
    int steps = 0;
    const auto enough = [&steps] { return ++steps > 50; };
    ASSERT_TRUE(static_cast<PumpedToolbox&>(system.toolbox()).RunUntil(enough, absl::ZeroDuration()).ok());
    Populate(system, log, kActors);
  }
  {
    TestSystem system;
    Populate(system, log, kActors);
    system.Settle();
  }
}

TEST(ActorTree, LeavesNothingBehindInTheMiddleOfThings) {
  TestLog log;
  for (int round = 0; round < 3; ++round) {
    TestSystem system(Threads(), {});
    Populate(system, log, 1000);
  }
}

TEST(ActorTree, LetsReferencesOutliveTheSystem) {
  TestLog log;
  ActorRef root;
  ActorRef limited;
  {
    TestSystem system;
    root = system.Spawn(*ProbeProps(log, "root"));
    limited = system.Spawn(*ProbeProps(log, "limited", {}, {.mailbox = {.capacity = 2}}));
    system.Settle();
  }
  log.Take();
  TellText(root, "a");
  EXPECT_TRUE(absl::IsUnavailable(TryTell(limited, std::string("a"))));
  ActorTree::Stop(root);
  ActorTree::Stop(limited);
  // Also after other actors have taken the slots.
  TestSystem system;
  TestLog others;
  for (int i = 0; i < 10; ++i) system.Spawn(*ProbeProps(others, "other"));
  TellText(root, "a");
  ActorTree::Stop(root);
  system.Settle();
  EXPECT_EQ(log.Take(), Lines());
  EXPECT_EQ(others.Take(), Lines(10, "other starts"));
}

TEST(ActorTree, DoesNotMixWithAnotherOfTheProcess) {
  TestLog log;
  TestSystem one;
  TestSystem two;
  const PropsPtr props = ProbeProps(log, "actor");
  const ActorRef first = one.Spawn(*props);
  // The two systems number their types differently.
  two.Spawn(PropsOf<Child>());
  const ActorRef second = two.Spawn(*props);
  const ActorRef third = one.Spawn(*props);
  EXPECT_EQ(first.slot()->type.load(), third.slot()->type.load());
  EXPECT_NE(two.tree().types().NameOf(second.slot()->type.load()).find("Probe"), std::string::npos);
  EXPECT_FALSE(one.scheduler().mailboxes().slots().Owns(second.slot()));
  EXPECT_TRUE(two.scheduler().mailboxes().slots().Owns(second.slot()));
  // One system sends to the other, which does not run yet, and ends.
  Tell(first, Do{[second](ActorContext& context) {
         context.Tell(second, std::string("hello"));
         return absl::OkStatus();
       }});
  one.Settle();
  EXPECT_EQ(log.Take(), (Lines{"actor starts", "actor starts"}));
  one.End();
  two.Settle();
  EXPECT_EQ(log.Take(), (Lines{"actor starts", "actor: hello"}));
  EXPECT_EQ(two.dead_letters(), 0u);
}

// Under load, with threads

std::atomic<int> branches_alive{0};

class Branch final : public SupervisedByTest {
 public:
  Branch(uint32_t depth, uint32_t seed) : depth_(depth), random_(seed) { branches_alive.fetch_add(1); }
  Branch(const Branch&) = delete;
  ~Branch() override { branches_alive.fetch_sub(1); }

  absl::Status Receive(ActorContext& context, Envelope&) override {
    switch (random_() % 8) {
      case 0:
      case 1:
        if (depth_ > 0) {
          const absl::StatusOr<ActorRef> child = ActorTree::Of(context).Spawn(
              context, *MakeProps<Branch>({}, depth_ - 1, static_cast<uint32_t>(random_())));
          if (!child.ok()) return child.status();
          children_.push_back(*child);
        }
        break;
      case 2:
        if (!children_.empty()) ActorTree::Stop(children_[random_() % children_.size()]);
        break;
      case 3:
        if (depth_ < 3) context.Stop();
        break;
      case 4:
        return absl::InternalError("broken");
      default:
        break;
    }
    for (const ActorRef child : children_) {
      if (random_() % 2 == 0) context.Tell(child, 1);
    }
    return absl::OkStatus();
  }

 private:
  const uint32_t depth_;
  std::minstd_rand random_;
  std::vector<ActorRef> children_;
};

// SCH-7
TEST(ActorTree, EndsAllOfAnUnrulyFamily) {
  constexpr int kRoots = 8;
  constexpr int kMessages = kIsSanitized ? 300 : 2000;
  std::atomic<uint32_t> verdicts{0};
  TestSystem system(Threads(), {.supervisor = [&](ActorRef, const absl::Status&) {
                      return static_cast<SupervisionDirective>(verdicts.fetch_add(1) * 2654435761u >> 30);
                    }});
  std::vector<ActorRef> roots;
  for (uint32_t i = 0; i < kRoots; ++i) roots.push_back(system.Spawn(*MakeProps<Branch>({}, 4u, i + 1)));
  const auto send = [&roots](int messages) {
    for (int i = 0; i < messages; ++i) {
      for (const ActorRef root : roots) Tell(root, i);
    }
  };
  send(kMessages / 10);
  system.Settle();
  // The actors stop in the middle of the remaining messages.
  send(kMessages);
  for (const ActorRef root : roots) ActorTree::Stop(root);
  system.Settle();
  for (const ActorRef root : roots) EXPECT_FALSE(system.IsAlive(root));
  EXPECT_EQ(branches_alive.load(), 0);
  EXPECT_GT(verdicts.load(), 0u);
}

}  // namespace
}  // namespace fraktor::actor_internal
