// Asks and blocking work that a std::stop_token cancels.
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/dispatch/blocking_pool.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

struct Meal {
  std::string name;
};
struct Order {
  using Reply = Meal;
};
struct Serve {};

class Kitchen : public Actor<Kitchen, Order, Serve> {
 public:
  Deferred<Meal> On(Context& context, const Order&) { return asker_ = ReplyTo<Meal>(context); }
  void On(Context&, const Serve&) { asker_.Reply(Meal{"soup"}); }

 private:
  ReplyTo<Meal> asker_;
};

// Asks with a token, and replies with the result.
struct Eat {
  using Reply = Meal;
  std::stop_token stop;
};
class Guest : public Actor<Guest, Eat> {
 public:
  explicit Guest(RefOf<Kitchen> kitchen) : kitchen_(kitchen) {}
  Task<Meal> On(Context& context, Eat eat) {
    auto asking = context.Ask(kitchen_, Order{}, absl::Hours(1), eat.stop);
    co_return co_await asking;
  }

 private:
  const RefOf<Kitchen> kitchen_;
};

TEST(Cancellation, EndsAnAskOfASystem) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>();
  std::stop_source stop;
  auto typed = kit.system().Ask(kitchen, Order{}, absl::Hours(1), stop.get_token());
  auto untyped = kit.system().Ask<Meal>(kitchen.untyped(), Order{}, absl::Hours(1), stop.get_token());
  auto answered = kit.system().Ask(kitchen, Order{}, absl::Hours(1), stop.get_token());
  kit.Settle();
  kitchen.Tell(Serve{});
  kit.Settle();
  EXPECT_FALSE(typed.IsReady() || untyped.IsReady());
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(typed.Take().status()));
  EXPECT_TRUE(absl::IsCancelled(untyped.Take().status()));
  EXPECT_EQ(answered.Take()->name, "soup") << "a reply that is there is kept";
}

TEST(Cancellation, EndsTheWaitOfAHandler) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>();
  auto guest = kit.Spawn<Guest>(kitchen);
  std::stop_source stop;
  auto eating = kit.system().Ask(guest, Eat{stop.get_token()}, absl::Hours(2));
  kit.Settle();
  EXPECT_FALSE(eating.IsReady());
  stop.request_stop();
  kit.Settle();
  ASSERT_TRUE(eating.IsReady());
  EXPECT_TRUE(absl::IsCancelled(eating.Take().status()));
  // The ask is over: its late reply is a dead letter, and the next ask has a promise of its own.
  kit.ExpectDeadLetters<Meal>(1, [&] { kitchen.Tell(Serve{}); });
  auto again = kit.system().Ask(guest, Eat{}, absl::Hours(2));
  kit.Settle();
  kitchen.Tell(Serve{});
  kit.Settle();
  EXPECT_EQ(again.Take()->name, "soup");
}

TEST(Cancellation, ReachesBlockingWorkAndDropsWorkThatWaits) {
  const auto toolbox = StdToolbox::Make({}).value();
  auto pool = BlockingPool::Start({.max_threads = 1}, *toolbox).value();
  std::stop_source stop;
  absl::Notification begun;
  absl::Notification seen;
  absl::Notification release;
  bool has_run = false;
  // The work sees the stop and goes on until it is released: the future must not wait for it.
  auto running = RunBlocking(*pool, stop.get_token(), [&](std::stop_token token) {
    begun.Notify();
    absl::Notification stopped;
    const std::stop_callback on_stop(token, [&] { stopped.Notify(); });
    stopped.WaitForNotification();
    seen.Notify();
    release.WaitForNotification();
    return 1;
  });
  auto waiting = RunBlocking(*pool, stop.get_token(), [&](std::stop_token) { has_run = true; });
  begun.WaitForNotification();
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(running.Wait().status())) << "at once";
  EXPECT_TRUE(absl::IsCancelled(waiting.Wait()));
  seen.WaitForNotification();
  release.Notify();
  pool->Stop();
  EXPECT_FALSE(has_run);
}

}  // namespace
}  // namespace fraktor
