// The examples of headers of actor/typed and actor/router, compiled. The header_examples check of
// tools/tidy finds each paragraph of an example here, line by line.
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/routee_load.h"
#include "fraktor/actor/router/router.h"
#include "fraktor/actor/router/routing_logic.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/typed/interleaving_task.h"
#include "fraktor/actor/typed/spawn_options.h"
#include "fraktor/actor/typed/typed_props.h"
#include "fraktor/utils/future/future.h"

// The examples stand as they do in the headers.
// clang-format off
// Readers use the variables that an example leaves unused.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

namespace fraktor {
namespace {

namespace routing_logic {

struct Job { int number = 0; };

class Worker : public Actor<Worker, Job> {
 public:
  explicit Worker(int* handled) : handled_(*handled) {}
  void On(Context&, const Job&) { ++handled_; }

 private:
  int& handled_;
};

// Sends two messages of three to the first routee.
class FavorFirst final : public RoutingLogic {
 public:
  RoutingChoice Choose(const RoutingCall& call) const override {
    const size_t others = call.routees().size() - 1;
    if (others == 0 || call.ticket() % 3 != 0) return RoutingChoice::One(0);
    return RoutingChoice::One(1 + call.random() % others);
  }
};

TEST(HeaderExamples, RoutingLogic) {
  TestKit kit;
  int handled = 0;
  PoolOptions options{.strategy = RouterStrategy::Using<FavorFirst>(), .size = 4};
  const auto workers = SpawnPool<Worker>(kit.system(), options, "workers", &handled);
  for (int i = 0; i < 30; ++i) workers.Tell(Job{i});
  kit.Settle();
  EXPECT_EQ(handled, 30);
}

TEST(HeaderExamples, RouteeLoad) {
  TestKit kit;
  int handled = 0;
  const ActorRef first = kit.Spawn<Worker>(&handled).untyped();
  const ActorRef second = kit.Spawn<Worker>(&handled).untyped();
  kit.Settle();
  Tell(second, Job{1});
  const bool first_is_less_busy = RouteeLoad(first) < RouteeLoad(second);
  EXPECT_TRUE(first_is_less_busy);
}

}  // namespace routing_logic

namespace typed_context {

struct Line { std::string text; };
struct Greet { std::string name; };

class Writer : public Actor<Writer, Line> {
 public:
  void On(Context&, const Line&) {}
};

class Greeter : public Actor<Greeter, Greet> {
 public:
  Greeter() = default;
  explicit Greeter(RefOf<Writer> log) : log_(log) {}
  void On(Context& context, const Greet& greet) {
    context.Tell(log_, Line{"Hello, " + greet.name});       // log_ is a TypedRef: it must take a Line
    auto child = context.Spawn<Greeter>("helper");          // TypedRef<Greet>
    context.Watch(child).IgnoreError();
  }

 private:
  RefOf<Writer> log_;
};

TEST(HeaderExamples, TypedContext) {
  TestKit kit;
  const auto greeter = kit.Spawn<Greeter>(kit.Spawn<Writer>());
  greeter.Tell(Greet{"world"});
  kit.Settle();
}

}  // namespace typed_context

namespace interleaving_task {

struct Price { int cents = 0; };
struct GetPrice { using Reply = Price; std::string symbol; };
struct Quote { int cents = 0; };
struct GetQuote { using Reply = Quote; std::string symbol; };

class Exchange : public Actor<Exchange, GetPrice> {
 public:
  Price On(Context&, const GetPrice&) { return {100}; }
};

class Broker : public Actor<Broker, GetQuote> {
 public:
  explicit Broker(RefOf<Exchange> exchange) : exchange_(exchange) {}
  InterleavingTask<Quote> On(Context& context, const GetQuote& get) {
    Future<Price> asking = context.Ask(exchange_, GetPrice{get.symbol}, absl::Seconds(1));
    co_return Quote{(co_await asking)->cents};                   // meanwhile, other messages are handled
  }

 private:
  RefOf<Exchange> exchange_;
};

TEST(HeaderExamples, InterleavingTask) {
  TestKit kit;
  const auto broker = kit.Spawn<Broker>(kit.Spawn<Exchange>());
  EXPECT_EQ(kit.AskAndWait(broker, GetQuote{"ACME"}).value().cents, 100);
}

}  // namespace interleaving_task

namespace spawning {

struct Put { int number = 0; };
class Sink : public Actor<Sink, Put> {
 public:
  void On(Context&, const Put&) {}
};
struct Greet {};
class Greeter : public Actor<Greeter, Greet> {
 public:
  void On(Context&, const Greet&) {}
};
class Account : public Actor<Account, Put> {
 public:
  explicit Account(int balance) : balance_(balance) {}
  void On(Context&, const Put& put) { balance_ += put.number; }

 private:
  int balance_;
};

[[maybe_unused]] void SpawnWithOptions(TypedContext<Put>& context) {
  auto sink = context.Spawn<Sink>("sink", {.dispatcher = DispatcherChoice::kPinned, .mailbox = {.capacity = 9}});
}

TEST(HeaderExamples, TypedProps) {
  TestKit kit;
  ActorSystem& system = kit.system();
  PropsPtr recipe = MakeTypedProps<Account>(PropsOptions(), /*balance=*/100);
  ActorRef account = system.TrySpawn(*recipe, "alice").value();
  const ActorProps& shared = TypedPropsOf<Greeter>();          // one for the whole process
  kit.Spawn(shared);
  kit.Settle();
  EXPECT_TRUE(account.IsCurrent());
}

}  // namespace spawning

}  // namespace
}  // namespace fraktor
