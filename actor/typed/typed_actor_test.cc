#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor {
namespace {

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

TEST(TypedActor, AnswersAQuestionFromOutside) {
  ActorSystem system("hello");
  auto greeter = system.Spawn<Greeter>("greeter");
  const absl::StatusOr<Greeted> reply = system.AskAndWait(greeter, Greet{"world"}, absl::Seconds(10));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->text, "Hello, world");
  EXPECT_EQ(system.PathOf(greeter.untyped()), "pekko://hello/user/greeter");
}

struct Reserved {
  int id;
};
struct Reserve {
  using Reply = Reserved;
  std::string item;
};
struct Receipt {
  int id;
};
struct Order {
  using Reply = Receipt;
  std::string item;
};

class Stock : public Actor<Stock, Reserve> {
 public:
  absl::StatusOr<Reserved> On(Context&, const Reserve& reserve) {
    if (reserve.item.empty()) return absl::NotFoundError("nothing");
    return Reserved{static_cast<int>(reserve.item.size())};
  }
};

class Desk : public Actor<Desk, Order> {
 public:
  void PreStart(Context& context) { stock_ = context.Spawn<Stock>("stock"); }
  Task<Receipt> On(Context& context, Order order) {
    auto asking = context.Ask(stock_, Reserve{order.item}, absl::Seconds(1));
    absl::StatusOr<Reserved> reserved = co_await asking;
    if (!reserved.ok()) co_return reserved.status();
    co_return Receipt{reserved->id};
  }

 private:
  RefOf<Stock> stock_;
};

TEST(TypedActor, WaitsForAnAnswerInAHandler) {
  auto toolbox = LocalToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  auto system = ActorSystem::Create(options).value();
  auto desk = system->Spawn<Desk>("desk");
  const absl::StatusOr<Receipt> receipt = system->AskAndWait(desk, Order{"milk"}, absl::Seconds(10));
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->id, 4);
  EXPECT_EQ(system->AskAndWait(desk, Order{""}, absl::Seconds(10)).status().code(), absl::StatusCode::kNotFound);
  const ShutdownReport report = system->Shutdown(absl::Seconds(5));
  EXPECT_TRUE(report.ok()) << report.not_stopped.front();
}

}  // namespace
}  // namespace fraktor
