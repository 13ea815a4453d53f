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
#include "fraktor/actor/pattern/retry.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/future/with_timeout.h"
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

Task<std::string> EatAt(ActorSystem& system, RefOf<Kitchen> kitchen) {
  auto asking = system.Ask(kitchen, Order{}, absl::Hours(1));
  absl::StatusOr<Meal> meal = co_await asking;
  co_return meal.ok() ? meal->name : std::string(meal.status().message());
}

TEST(Cancellation, EndsATaskOfASystem) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>();
  std::stop_source stop;
  Future<std::string> cancelled = StartTask(kit.system(), EatAt(kit.system(), kitchen), stop.get_token());
  kit.Settle();
  EXPECT_FALSE(cancelled.IsReady());
  stop.request_stop();
  ASSERT_TRUE(cancelled.IsReady());
  EXPECT_TRUE(absl::IsCancelled(cancelled.Take().status()));
  kit.Settle();
  // The task has ended, and its ask with it.
  kit.ExpectDeadLetters<Meal>(1, [&] { kitchen.Tell(Serve{}); });

  Future<std::string> late = StartTask(kit.system(), EatAt(kit.system(), kitchen), stop.get_token());
  ASSERT_TRUE(late.IsReady());
  EXPECT_TRUE(absl::IsCancelled(late.Take().status()));
  Future<std::string> done = StartTask(kit.system(), EatAt(kit.system(), kitchen), std::stop_token());
  kit.Settle();
  kitchen.Tell(Serve{});
  kit.Settle();
  EXPECT_EQ(done.Take().value(), "soup");
}

TEST(Cancellation, EndsATaskThatALambdaMakes) {
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>();
  std::stop_source stop;
  auto kept = std::make_shared<int>(0);
  Future<std::string> cancelled = StartTask(
      kit.system(), [kept, &kit, kitchen]() -> Task<std::string> { return EatAt(kit.system(), kitchen); },
      stop.get_token());
  kit.Settle();
  EXPECT_FALSE(cancelled.IsReady());
  stop.request_stop();
  ASSERT_TRUE(cancelled.IsReady());
  EXPECT_TRUE(absl::IsCancelled(cancelled.Take().status()));
  kit.Settle();
  EXPECT_EQ(kept.use_count(), 1) << "the lambda ends with its task";
}

struct Begin {
  std::stop_token stop;
};
struct Diary {
  int meals = 0;
  int ended = 0;
  absl::Status begun;
};
// Runs a task in its own turns until a stop is requested.
class Regular : public Actor<Regular, Begin> {
 public:
  Regular(RefOf<Kitchen> kitchen, Diary* diary) : kitchen_(kitchen), diary_(*diary) {}
  void On(Context& context, const Begin& begin) {
    diary_.begun = context.Run([this, &context]() -> Task<void> { return Eat(context); }, begin.stop);
  }

 private:
  struct CountEnd {
    ~CountEnd() { ++diary.ended; }
    Diary& diary;
  };
  Task<void> Eat(Context& context) {
    const CountEnd end{diary_};
    for (;;) {
      auto asking = context.Ask(kitchen_, Order{}, absl::Hours(1));
      auto meal = co_await asking;
      if (meal.ok()) ++diary_.meals;
    }
  }

  const RefOf<Kitchen> kitchen_;
  Diary& diary_;
};

TEST(Cancellation, EndsATaskOfAnActorInItsTurn) {
  Diary diary;
  TestKit kit;
  auto kitchen = kit.Spawn<Kitchen>();
  auto guest = kit.Spawn<Regular>(kitchen, &diary);
  std::stop_source stop;
  guest.Tell(Begin{stop.get_token()});
  kit.Settle();
  kitchen.Tell(Serve{});
  kit.Settle();
  EXPECT_EQ(diary.meals, 1);
  stop.request_stop();
  EXPECT_EQ(diary.ended, 0) << "the frames end in a turn of the actor";
  kit.Settle();
  EXPECT_EQ(diary.ended, 1);
  EXPECT_TRUE(kit.IsAlive(guest.untyped())) << "a stop is no failure";
  // The ask has ended too.
  kit.ExpectDeadLetters<Meal>(1, [&] { kitchen.Tell(Serve{}); });
  EXPECT_EQ(diary.meals, 1);
  guest.Tell(Begin{stop.get_token()});
  kit.Settle();
  EXPECT_TRUE(absl::IsCancelled(diary.begun)) << diary.begun;
}

TEST(Cancellation, EndsTheAttemptThePauseAndFurtherAttemptsOfARetry) {
  TestKit kit;
  for (const bool waits_in_attempt : {true, false}) {
    SCOPED_TRACE(waits_in_attempt);
    std::stop_source stop;
    int attempts = 0;
    const RetryOptions options{.max_retries = 100, .delay = absl::Hours(1), .stop = stop.get_token()};
    Future<void> retrying = StartTask(kit.system(), Retry(kit.toolbox(), options, [&]() -> Future<void> {
                                        ++attempts;
                                        if (waits_in_attempt) return SleepFor(kit.toolbox(), absl::Hours(1));
                                        return MakeReadyFuture<void>(absl::UnavailableError("busy"));
                                      }));
    kit.Settle();
    EXPECT_FALSE(retrying.IsReady());
    stop.request_stop();
    kit.Settle();
    ASSERT_TRUE(retrying.IsReady());
    EXPECT_TRUE(absl::IsCancelled(retrying.Take()));
    EXPECT_EQ(attempts, 1);
  }
  std::stop_source stop;
  stop.request_stop();
  bool has_tried = false;
  Future<void> never = StartTask(kit.system(), Retry(kit.toolbox(), {.stop = stop.get_token()}, [&]() -> Future<void> {
                                   has_tried = true;
                                   return MakeReadyFuture();
                                 }));
  kit.Settle();
  EXPECT_TRUE(absl::IsCancelled(never.Take()));
  EXPECT_FALSE(has_tried);
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
