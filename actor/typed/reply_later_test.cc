#include "fraktor/actor/typed/reply_later.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

struct Meal {
  std::string name;
};
struct Order {
  using Reply = Meal;
  std::string name;
};
struct Sum {
  int cents;
};
struct Bill {
  using Reply = Sum;
  int cents;
};
// The first waiting order gets the meal, or an error if there is no name.
struct Cooked {
  std::string name;
};

class Till : public Actor<Till, Bill> {
 public:
  Sum On(Context&, const Bill& bill) { return {2 * bill.cents}; }
};

class Kitchen : public Actor<Kitchen, Order, Cooked, Bill> {
 public:
  explicit Kitchen(RefOf<Till> till) : till_(till) {}

  Deferred<Meal> On(Context& context, const Order&) {
    const ReplyTo<Meal> reply_to(context);
    waiting_.push_back(reply_to);
    return reply_to;
  }
  void On(Context&, const Cooked& cooked) {
    const ReplyTo<Meal> first = waiting_.front();
    if (cooked.name.empty()) return first.Fail(absl::NotFoundError("sold out"));
    first.Reply(absl::StatusOr<Meal>(Meal{cooked.name}));
    waiting_.erase(waiting_.begin());
  }
  Forwarded<Sum> On(Context& context, const Bill& bill) { return context.Forward(till_, bill); }

 private:
  const RefOf<Till> till_;
  std::vector<ReplyTo<Meal>> waiting_;
};

TEST(ReplyLater, RepliesToEachAskerLater) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>(kit.Spawn<Till>());
  auto first = kit.system().Ask(kitchen, Order{}, absl::Seconds(10));
  auto second = kit.system().Ask(kitchen, Order{}, absl::Seconds(10));
  kit.Settle();
  EXPECT_FALSE(first.IsReady());
  kitchen.Tell(Cooked{"soup"});
  kit.Settle();
  EXPECT_EQ(first.Take()->name, "soup");
  EXPECT_FALSE(second.IsReady());
  kitchen.Tell(Cooked{});
  kit.Settle();
  EXPECT_EQ(second.Take().status(), absl::NotFoundError("sold out"));
}

TEST(ReplyLater, DropsAReplyThatNobodyWaitsForButNotAnError) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>(kit.Spawn<Till>());
  kitchen.Tell(Order{});
  kit.ExpectDeadLetters<Meal>(0, [&] { kitchen.Tell(Cooked{"soup"}); });
  kitchen.Tell(Order{});
  kit.ExpectDeadLetters<ErrorReply>(1, [&] { kitchen.Tell(Cooked{}); });
}

// Fails an order without an error.
class Careless : public Actor<Careless, Order> {
 public:
  Deferred<Meal> On(Context& context, const Order&) {
    const ReplyTo<Meal> reply_to(context);
    reply_to.Fail(absl::OkStatus());
    return reply_to;
  }
};

TEST(ReplyLater, NamesAnErrorReplyWithoutAnError) {
  TestKit kit;
  const absl::Status status = kit.AskAndWait(kit.Spawn<Careless>(), Order{}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(
      absl::EndsWith(status.message(), "Order is an ErrorReply whose status is OK; send an error, or the reply itself"))
      << status;
}

TEST(ReplyLater, LetsTheRecipientOfAForwardedMessageReply) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>(kit.Spawn<Till>());
  EXPECT_EQ(kit.AskAndWait(kitchen, Bill{100})->cents, 200);
}

// Handlers that wait or may fail can defer a reply, too.
class Slow : public Actor<Slow, Order, Bill> {
 public:
  Task<Deferred<Meal>> On(Context& context, Order order) {
    const ReplyTo<Meal> reply_to(context);
    auto delay = context.Delay(absl::Seconds(1));
    (co_await delay).IgnoreError();
    reply_to.Reply(Meal{order.name});
    co_return reply_to;
  }
  absl::StatusOr<Deferred<Sum>> On(Context& context, const Bill& bill) {
    if (bill.cents < 0) return absl::InvalidArgumentError("negative");
    const ReplyTo<Sum> reply_to(context);
    reply_to.Reply(Sum{bill.cents});
    return reply_to;
  }
};

TEST(ReplyLater, TakesADeferredReplyOfATaskAndOfAStatusOr) {
  TestKit kit;
  auto slow = kit.Spawn<Slow>();
  EXPECT_EQ(kit.AskAndWait(slow, Order{"stew"})->name, "stew");
  EXPECT_EQ(kit.AskAndWait(slow, Bill{3})->cents, 3);
  EXPECT_EQ(kit.AskAndWait(slow, Bill{-3}).status(), absl::InvalidArgumentError("negative"));
}

// Fails on the first order, stashes the others until it is told to cook, and then replies.
class Opening : public Actor<Opening, Order, Cooked> {
 public:
  Deferred<Meal> On(Context& context, const Order& order) {
    if (order.name.empty()) return absl::OutOfRangeError("an order without a name");
    return Stash(context);
  }
  void On(Context& context, const Cooked&) {
    UnstashAll(context);
    context.Become<Open>();
  }

 private:
  struct Open {
    Meal On(Context&, const Order& order) { return {order.name}; }
    void On(Context&, const Cooked&) {}
  };
};

TEST(ReplyLater, TakesAStatusOfAHandlerThatStashesOrFails) {
  TestKit kit;
  auto opening = kit.Spawn<Opening>();
  auto stashed = kit.system().Ask(opening, Order{"stew"}, absl::Hours(1));
  auto failed = kit.system().Ask(opening, Order{}, absl::Hours(1));
  kit.Settle();
  ASSERT_TRUE(failed.IsReady()) << "the asker hears of the failure at once";
  EXPECT_EQ(failed.Take().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(stashed.IsReady());
  opening.Tell(Cooked{});
  kit.Settle();
  EXPECT_EQ(stashed.Take()->name, "stew");
}

// Stashes in coroutines, and returns an OK status in place of a reply.
class Waiting : public Actor<Waiting, Order, Bill, Cooked> {
 public:
  Task<Deferred<Meal>> On(Context& context, const Order& order) {
    if (is_open_) co_return Cook(context, order);
    co_return Stash(context);
  }
  Task<Sum> On(Context&, Bill) { co_return absl::OkStatus(); }
  void On(Context& context, const Cooked&) {
    is_open_ = true;
    UnstashAll(context);
  }

 private:
  static absl::Status Cook(Context& context, const Order& order) {
    ReplyTo<Meal>(context).Reply(Meal{order.name});
    return absl::OkStatus();
  }

  bool is_open_ = false;
};

TEST(ReplyLater, TakesAStashOfACoroutine) {
  TestKit kit;
  auto waiting = kit.Spawn<Waiting>();
  auto stashed = kit.system().Ask(waiting, Order{"stew"}, absl::Hours(1));
  kit.Settle();
  EXPECT_FALSE(stashed.IsReady());
  waiting.Tell(Cooked{});
  kit.Settle();
  EXPECT_EQ(stashed.Take()->name, "stew");
}

TEST(ReplyLater, NamesAnOkStatusInPlaceOfAReply) {
  TestKit kit;
  const absl::Status status = kit.AskAndWait(kit.Spawn<Waiting>(), Bill{1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("absl::OkStatus() in place of a value"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace fraktor
