// How typed and untyped actors are spawned, and how their references are shown.
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/typed/typed_actor.h"

namespace fraktor {
namespace {

using Lines = std::vector<std::string>;

struct Balance {
  int cents;
};
struct GetBalance {
  using Reply = Balance;
};
struct Break {};

// Can neither be copied nor moved.
class Account : public Actor<Account, GetBalance, Break> {
 public:
  explicit Account(std::unique_ptr<int> cents) : cents_(std::move(cents)) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  Balance On(Context&, const GetBalance&) { return {*cents_}; }
  void On(Context&, const Break&) { throw std::runtime_error("broken"); }

  int cents() const { return *cents_; }

 private:
  const std::unique_ptr<int> cents_;
};

TEST(Spawn, CallsAFactoryForEachStart) {
  TestKit kit;
  const auto made = std::make_shared<int>(0);
  const auto factory = [made] { return Account(std::make_unique<int>(100 * ++*made)); };
  const RefOf<Account> account = kit.system().Spawn("alice", factory);
  EXPECT_EQ(kit.AskAndWait(account, GetBalance{})->cents, 100);
  account.Tell(Break{});
  EXPECT_EQ(kit.AskAndWait(account, GetBalance{})->cents, 200) << "another one after the restart";
  EXPECT_EQ(kit.system().PathOf(account), "pekko://default/user/alice");
  EXPECT_EQ(kit.system().TrySpawn("alice", factory).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THROW(kit.system().Spawn("alice", factory), SpawnError);
  const auto bounded = kit.system().Spawn("bob", {.mailbox = {.capacity = 1}}, factory);
  EXPECT_TRUE(bounded.TryTell(GetBalance{}).ok());
  EXPECT_FALSE(bounded.TryTell(GetBalance{}).ok());
  kit.Settle();
  EXPECT_EQ(kit.AskAndWait(kit.Spawn(factory), GetBalance{})->cents, 400);
  EXPECT_EQ(kit.AskAndWait(kit.SpawnNamed("carol", factory), GetBalance{})->cents, 500);
  const SpawnOptions small{.mailbox = {.capacity = 1}};
  EXPECT_EQ(kit.AskAndWait(kit.Spawn(small, factory), GetBalance{})->cents, 600);
  EXPECT_EQ(kit.AskAndWait(kit.SpawnNamed("dora", small, factory), GetBalance{})->cents, 700);
}

TEST(Spawn, TakesAFailureOfAFactoryForOneOfTheActor) {
  TestKit kit;
  auto probe = kit.Probe();
  const auto account = kit.system().Spawn("alice", []() -> Account { throw std::runtime_error("no ledger"); });
  probe.ExpectTerminated(account);
}

struct Open {
  using Reply = Balance;
};

class Bank : public Actor<Bank, Open> {
 public:
  Forwarded<Balance> On(Context& context, const Open&) {
    const RefOf<Account> account =
        context.Spawn("account", {.mailbox = {.capacity = 10}}, [] { return Account(std::make_unique<int>(7)); });
    EXPECT_EQ(context.TrySpawn("account", [] { return Account(nullptr); }).status().code(),
              absl::StatusCode::kAlreadyExists);
    EXPECT_THROW(context.Spawn("account", [] { return Account(nullptr); }), SpawnError);
    EXPECT_EQ(context.PathOf(account), absl::StrCat(context.Path(), "/account"));
    return context.Forward(account, GetBalance{});
  }
};

TEST(Spawn, LetsAFactoryMakeAChild) {
  TestKit kit;
  EXPECT_EQ(kit.AskAndWait(kit.Spawn<Bank>(), Open{})->cents, 7);
}

class Untyped final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Spawn(PropsOf<Untyped>(), "child");
    EXPECT_EQ(context.TrySpawn(PropsOf<Untyped>(), "child").status().code(), absl::StatusCode::kAlreadyExists);
    EXPECT_THROW(context.Spawn(PropsOf<Untyped>(), "child"), SpawnError);
    context.Reply(1);
    return absl::OkStatus();
  }
};

TEST(Spawn, ThrowsForAnUntypedActorWhatTrySpawnReturns) {
  TestKit kit;
  const ActorRef actor = kit.system().Spawn(PropsOf<Untyped>(), "actor");
  EXPECT_EQ(kit.AskAndWait<int>(actor, 0).value(), 1);
  const absl::Status taken = kit.system().TrySpawn(PropsOf<Untyped>(), "actor").status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  try {
    kit.system().Spawn(PropsOf<Untyped>(), "actor");
    FAIL() << "the name is taken";
  } catch (const SpawnError& error) {
    EXPECT_EQ(error.status(), taken);
  }
}

TEST(Spawn, ThrowsForASystemWhatCreateReturns) {
  EXPECT_THROW(ActorSystem("no name"), ActorSystemError);
  ActorSystemOptions options;
  options.config.system_name = "no name";
  const absl::Status refused = ActorSystem::Create(options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  try {
    ActorSystem system(options);
    FAIL() << "the name is bad";
  } catch (const ActorSystemError& error) {
    EXPECT_EQ(error.status(), refused);
  }
  options.config.system_name = "good";
  EXPECT_EQ(ActorSystem(options).name(), "good");
}

// References in text

template <class T>
std::string Printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Reference, PrintsItsPathSlotAndGeneration) {
  TestKit kit;
  const RefOf<Account> account = kit.SpawnNamed("alice", [] { return Account(std::make_unique<int>(1)); });
  const std::string living = Printed(account);
  EXPECT_EQ(living, Printed(account.untyped()));
  EXPECT_TRUE(absl::StartsWith(living, "pekko://default/user/alice (slot ")) << living;
  EXPECT_TRUE(absl::EndsWith(living, absl::StrCat(", generation ", account.untyped().generation(), ")"))) << living;
  EXPECT_EQ(testing::PrintToString(account), living) << "in the failures of tests too";
  kit.RunIn(account, [&](ActorContext&) { EXPECT_EQ(Printed(account), living) << "in a turn"; });
  EXPECT_EQ(Printed(ActorRef()), "no one");
  EXPECT_EQ(Printed(TypedRef<Break>()), "no one");
}

// Stands for the sink that newer versions of Abseil pass to AbslStringify.
struct FakeSink {
  void Append(std::string_view text) { out += text; }
  std::string out;
};
template <class T>
std::string Stringified(const T& value) {
  FakeSink sink;
  AbslStringify(sink, value);
  return sink.out;
}

TEST(Reference, IsTextForAbseilToo) {
  TestKit kit;
  const RefOf<Account> account = kit.SpawnNamed("alice", [] { return Account(std::make_unique<int>(1)); });
  EXPECT_EQ(Stringified(account), Printed(account));
  EXPECT_EQ(Stringified(account.untyped()), Printed(account));
  EXPECT_EQ(Stringified(ActorRef()), "no one");
}

// Options

// Records the end of its child.
class Parent : public Actor<Parent, Break> {
 public:
  explicit Parent(Lines* lines) : lines_(*lines) {}

  void PreStart(Context& context) {
    lines_.push_back("PreStart");
    child_ = context.Spawn("child", [] { return Account(std::make_unique<int>(1)); });
  }
  void PostStop(Context&) { lines_.push_back("PostStop"); }
  void PreRestart(Context& context, const absl::Status& reason, Envelope*) {
    lines_.push_back(absl::StrCat("PreRestart: ", reason.message()));
    UsualPreRestart(context);
    lines_.push_back(context.Children().empty() ? "no children" : "children are ending");
  }
  absl::Status On(Context&, const Break&) { return absl::InternalError("broken"); }

 private:
  Lines& lines_;
  RefOf<Account> child_;
};

// A11
TEST(Hooks, PreRestartMayDoWhatIsUsualByOneName) {
  Lines lines;
  TestKit kit;
  auto parent = kit.SpawnNamed<Parent>("parent", &lines);
  kit.Settle();
  const ActorRef child = kit.system().Resolve("/user/parent/child").value();
  parent.Tell(Break{});
  kit.Settle();
  EXPECT_EQ(lines, Lines({"PreStart", "PreRestart: broken", "PostStop", "children are ending", "PreStart"}));
  EXPECT_FALSE(kit.IsAlive(child));
}

class Supervisor : public Actor<Supervisor, GetBalance, Break> {
 public:
  void PreStart(Context& context) {
    child_ = context.Spawn("child", [] { return Account(std::make_unique<int>(1)); });
  }
  Forwarded<Balance> On(Context& context, const GetBalance& get) { return context.Forward(child_, get); }
  void On(Context& context, const Break& order) { context.Tell(child_, order); }

 private:
  RefOf<Account> child_;
};

TEST(SpawnOptions, KeepACopyOfTheStrategy) {
  TestKit kit;
  auto decided = std::make_shared<int>(0);
  RefOf<Supervisor> supervisor;
  {
    const SupervisorStrategy gone({.decider = [decided](const Failure&) {
      ++*decided;
      return Resume();
    }});
    supervisor = kit.Spawn<Supervisor>({.supervision = gone});
  }
  supervisor.Tell(Break{});
  EXPECT_EQ(kit.AskAndWait(supervisor, GetBalance{})->cents, 1);
  EXPECT_EQ(*decided, 1);
}

// The test kit

TEST(TestKit, SpawnsWithOptions) {
  TestKit kit;
  auto named = kit.SpawnNamed<Supervisor>("named", {.mailbox = {.capacity = 1}});
  EXPECT_TRUE(named.TryTell(GetBalance{}).ok());
  EXPECT_FALSE(named.TryTell(GetBalance{}).ok());
  kit.Settle();
}

TEST(TestKit, RunsAFunctionInAnActorsTurn) {
  TestKit kit;
  auto bank = kit.SpawnNamed("alice", [] { return Account(std::make_unique<int>(9)); });
  std::string path;
  kit.RunIn(bank, [&](Account::Context& context) { path = context.Path(); });
  EXPECT_EQ(path, "pekko://default/user/alice");
  kit.RunIn(bank.untyped(), [&](ActorContext& context) { EXPECT_EQ(context.self(), bank.untyped()); });
  int cents = 0;
  kit.RunIn<Account>(bank, [&](Account& account, Account::Context&) { cents = account.cents(); });
  EXPECT_EQ(cents, 9);
  kit.RunIn(bank, [](ActorContext&) { throw std::runtime_error("a failure of the actor"); });
  EXPECT_EQ(kit.AskAndWait(bank, GetBalance{})->cents, 9);
}

TEST(TestKit, RunsAFunctionInAnActorsTurnOnAThread) {
  TestKit kit({.patience = absl::Minutes(1), .threads = 1});
  auto bank = kit.SpawnNamed("alice", [] { return Account(std::make_unique<int>(9)); });
  int cents = 0;
  kit.RunIn<Account>(bank, [&](Account& account, Account::Context&) { cents = account.cents(); });
  EXPECT_EQ(cents, 9);
}

}  // namespace
}  // namespace fraktor
