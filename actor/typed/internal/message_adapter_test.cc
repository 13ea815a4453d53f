// Context::Adapt: messages of other protocols.
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
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

// A foreign protocol.
struct Quote {
  int cents;
};
struct GetQuote {
  using Reply = Quote;
  int cents;
};
class Exchange : public Actor<Exchange, GetQuote> {
 public:
  Quote On(Context&, const GetQuote& get) { return {get.cents}; }
};

// The protocol of the actor.
struct PriceChanged {
  using Reply = Quote;
  std::unique_ptr<int> cents;  // Messages may be move-only.
};
struct Watch {};
struct Prices {
  using Reply = Quote;
};
struct Settings {
  bool waits = false;
  bool stashes = false;
  bool forwards = false;
};
struct Unstash {};

class Trader : public Actor<Trader, PriceChanged, Watch, Prices, Settings, Unstash> {
 public:
  explicit Trader(RefOf<Exchange> exchange) : exchange_(exchange) {}

  void PreStart(Context& context) {
    context.Adapt<Quote>([](const Quote&) { return PriceChanged{nullptr}; });
    // The second function replaces the first.
    quotes_ = context.Adapt<Quote>([](Quote&& quote) {
      if (quote.cents < 0) throw std::runtime_error("negative price");
      return PriceChanged{std::make_unique<int>(quote.cents)};
    });
  }
  // The exchange replies to actors that tell.
  void On(Context& context, const Watch&) { context.Tell(exchange_, GetQuote{7}); }
  Task<Deferred<Quote>> On(Context& context, const PriceChanged& changed) {
    const ReplyTo<Quote> reply_to(context);
    if (settings_.stashes) {
      settings_.stashes = false;
      Stash(context).IgnoreError();
      co_return reply_to;
    }
    if (settings_.forwards) {
      context.Forward(exchange_, GetQuote{50});
      throw std::runtime_error("after the message was forwarded");
    }
    if (settings_.waits) {
      auto delay = context.Delay(absl::Seconds(1));
      (co_await delay).IgnoreError();
    }
    sum_ += *changed.cents;
    reply_to.Reply(Quote{sum_});
    co_return reply_to;
  }
  Quote On(Context&, const Prices&) { return {sum_}; }
  void On(Context&, const Settings& settings) { settings_ = settings; }
  void On(Context& context, const Unstash&) { UnstashAll(context); }

 private:
  const RefOf<Exchange> exchange_;
  TypedRef<Quote> quotes_;
  Settings settings_;
  int sum_ = 0;
};

class MessageAdapterTest : public testing::Test {
 protected:
  TestKit kit_;
  RefOf<Trader> trader_ = kit_.Spawn<Trader>(kit_.Spawn<Exchange>());
  // The reference that Adapt has returned.
  TypedRef<Quote> quotes_ = TypedRef<Quote>::Unchecked(trader_.untyped());
};

TEST_F(MessageAdapterTest, MakesAReplyOneOfTheActorsMessages) {
  trader_.Tell(Watch{});
  kit_.Settle();
  EXPECT_EQ(kit_.AskAndWait(trader_, Prices{})->cents, 7);
}

TEST_F(MessageAdapterTest, KeepsTheSenderAndTheOrderOfMessages) {
  quotes_.Tell(Quote{1});
  quotes_.Tell(Quote{2});
  EXPECT_EQ(kit_.AskAndWait(trader_, Prices{})->cents, 3);
  EXPECT_EQ(kit_.AskAndWait<Quote>(quotes_, Quote{4})->cents, 7)
      << "the reply goes to the sender of the foreign message";
}

TEST_F(MessageAdapterTest, KeepsTheMessageWhileItsHandlerWaits) {
  trader_.Tell(Settings{.waits = true});
  auto asking = kit_.system().Ask<Quote>(quotes_, Quote{5}, absl::Seconds(10));
  kit_.Settle();
  EXPECT_FALSE(asking.IsReady());
  kit_.Advance(absl::Seconds(1));
  EXPECT_EQ(asking.Take()->cents, 5);
}

TEST_F(MessageAdapterTest, LetsTheMessageBeStashed) {
  trader_.Tell(Settings{.stashes = true});
  auto asking = kit_.system().Ask<Quote>(quotes_, Quote{5}, absl::Seconds(10));
  kit_.Settle();
  EXPECT_FALSE(asking.IsReady());
  trader_.Tell(Unstash{});
  kit_.Settle();
  ASSERT_TRUE(asking.IsReady());
  EXPECT_EQ(asking.Take()->cents, 5);
}

TEST_F(MessageAdapterTest, FailsTheAskOfAMessageWhoseFunctionThrows) {
  quotes_.Tell(Quote{1});
  const absl::Status failed = kit_.AskAndWait<Quote>(quotes_, Quote{-1}).status();
  EXPECT_NE(failed.message().find("negative price"), absl::string_view::npos) << failed;
  EXPECT_EQ(kit_.AskAndWait(trader_, Prices{})->cents, 0) << "a failure of the actor";
  quotes_.Tell(Quote{3});
  EXPECT_EQ(kit_.AskAndWait(trader_, Prices{})->cents, 3) << "PreStart has added the function again";
}

TEST_F(MessageAdapterTest, LeavesTheReplyToTheRecipientOfAForwardedMessage) {
  trader_.Tell(Settings{.forwards = true});
  EXPECT_EQ(kit_.AskAndWait<Quote>(quotes_, Quote{1})->cents, 50) << "though the handler has failed since";
}

TEST_F(MessageAdapterTest, DoesNotHandleAMessageWithoutAFunction) {
  kit_.ExpectUnhandled<std::string>(1, [&] { Tell(trader_.untyped(), std::string("x")); });
}

// The adapted message goes to the behaviour.
class Mood : public Actor<Mood, Watch, Prices> {
 public:
  struct Happy {
    void On(Context&, const Watch&) { ++mood.seen; }
    Quote On(Context&, const Prices&) { return {mood.seen}; }
    Mood& mood;
  };
  void PreStart(Context& context) {
    context.Adapt<Quote>([](const Quote&) { return Watch{}; });
    context.Become<Happy>(*this);
  }
  void On(Context&, const Watch&) {}
  Quote On(Context&, const Prices&) { return {-1}; }
  int seen = 0;
};

TEST(MessageAdapter, IsHandledByTheBehaviour) {
  TestKit kit;
  auto mood = kit.Spawn<Mood>();
  TypedRef<Quote>::Unchecked(mood.untyped()).Tell(Quote{1});
  EXPECT_EQ(kit.AskAndWait(mood, Prices{})->cents, 1);
}

}  // namespace
}  // namespace fraktor
